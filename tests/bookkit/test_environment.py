import contextlib
import os
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from bookkit import environment

ROOT = Path(__file__).parents[2]


@pytest.fixture
def wanted(tmp_path, monkeypatch):
    """A folder whose requirements.txt and pyproject.toml ask for nothing, as the working directory."""
    for name in environment.WANTED:
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def existing(tmp_path):
    """Write an interpreter for VENV= as a shell script; returns the folder of its environment."""

    def write(script, mode=0o755):
        python = tmp_path / "env" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(script)
        python.chmod(mode)
        return str(tmp_path / "env")

    return write


def test_a_python_that_is_too_old_gets_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(environment.sys, "version_info", (3, 9, 1))
    assert environment.main(["some-folder"]) == 1
    assert "This is Python 3.9; the book needs Python 3.11 or newer" in capsys.readouterr().err


def test_a_fresh_environment_is_left_alone(wanted, capsys):
    (wanted / "env" / "bin").mkdir(parents=True)
    (wanted / "env" / "bin" / "python").touch()
    (wanted / "env" / environment.STAMP).write_text(environment.fingerprint())
    assert environment.main(["env"]) == 0
    assert capsys.readouterr().out == ""


@pytest.fixture
def added(wanted, monkeypatch):
    """A fresh environment, and a file that can be added; returns the list of what pip was asked for."""
    asked = []
    monkeypatch.setattr(environment, "pip_install", lambda python, what: asked.append(what) or 0)
    (wanted / "env" / "bin").mkdir(parents=True)
    (wanted / "env" / "bin" / "python").touch()
    (wanted / "env" / environment.STAMP).write_text(environment.fingerprint())
    (wanted / "further.txt").write_text("one==1\n")
    return asked


BOTH = ["-r", environment.REQUIREMENTS, "-r", "further.txt"]


def test_a_further_file_is_installed_once_with_the_first_beside_it(added):
    for _ in range(2):
        assert environment.main(["env", "--add", "further.txt"]) == 0
    assert added == [BOTH]


def test_what_was_added_stays_and_follows_its_file(wanted, added):
    environment.main(["env", "--add", "further.txt"])
    environment.main(["env"])
    assert added == [BOTH]
    (wanted / "further.txt").write_text("one==2\n")
    environment.main(["env"])
    assert added == [BOTH, BOTH]
    (wanted / "further.txt").unlink()
    assert environment.main(["env"]) == 0
    assert added == [BOTH, BOTH]


def test_what_pip_could_not_add_is_asked_for_again(added, monkeypatch):
    monkeypatch.setattr(environment, "pip_install", lambda python, what: 1)
    assert environment.main(["env", "--add", "further.txt"]) == 1
    assert not os.path.exists(os.path.join("env", environment.ADDED))


def test_a_file_that_is_not_there_gets_a_sentence(added, capsys):
    assert environment.main(["env", "--add", "nowhere.txt"]) == 1
    assert capsys.readouterr().err == "There is no nowhere.txt here\n"


@pytest.mark.parametrize("name", environment.WANTED)
def test_a_changed_wish_makes_it_stale(wanted, name):
    before = environment.fingerprint()
    (wanted / name).write_text("torch==9\n")
    assert environment.fingerprint() != before


def test_the_interpreter_is_linked_as_python_m_venv_does(wanted, monkeypatch):
    create = venv.create
    monkeypatch.setattr(venv, "create", lambda folder, **wishes: create(folder, **(wishes | {"with_pip": False})))
    monkeypatch.setattr(environment, "pip_install", lambda python, what: 0)
    assert environment.main(["env"]) == 0
    assert (wanted / "env" / "bin" / "python").is_symlink()


def test_a_folder_that_cannot_be_written_gets_a_sentence(wanted, capsys):
    (wanted / "file").write_text("no folder")  # root may write everywhere, but in no file as in a folder
    assert environment.main(["file/env"]) == 1
    assert "file/env could not be made" in capsys.readouterr().err


def slow_pip(folder):
    """An environment's interpreter that says two words of pip's and then downloads for ever."""
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho Collecting torch\necho Downloading torch\nexec sleep 300\n")
    python.chmod(0o755)
    return str(python)


def test_ctrl_c_ends_with_a_sentence_and_leaves_no_pip(tmp_path):
    program = (
        "import sys\nfrom bookkit import environment\n"
        f"environment.refresh = lambda folder: environment.pip_install({slow_pip(tmp_path)!r}, [])\n"
        "sys.exit(environment.main(['env']))"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, **pipes) as making:
        for _ in range(2):
            making.stdout.readline()
        # To all of them, as a terminal does: a signal for the parent alone can come before Popen returned, and then
        # nobody would end pip.
        os.killpg(making.pid, signal.SIGINT)
        # Its pipes reach their end only when pip has gone too.
        assert making.communicate(timeout=300)[1] == "Stopped. The next make begins again.\n"
    assert making.returncode == 130


def test_through_a_pipe_the_reason_stands_before_the_refusal(tmp_path):
    python = slow_pip(tmp_path)
    Path(python).write_text("#!/bin/sh\necho 'ERROR: no space'\nexit 1\n")
    program = f"from bookkit import environment\nenvironment.pip_install({python!r}, ['-e', '.'])"
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=buffered, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.stdout.splitlines() == ["ERROR: no space", "pip could not install -e .; its last lines say why"]


def test_an_existing_environment_is_used_as_it_is(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert environment.main(["--existing", sys.prefix]) == 0
    assert capsys.readouterr().out == ""


def test_what_is_no_environment_gets_a_sentence(tmp_path, capsys):
    assert environment.main(["--existing", str(tmp_path)]) == 1
    assert "holds no bin/python" in capsys.readouterr().err


def test_an_environment_without_the_packages_gets_their_names_and_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    folder = tmp_path / "bare"
    venv.create(folder, symlinks=True)
    assert environment.main(["--existing", str(folder)]) == 1
    sentence = capsys.readouterr().err
    assert sentence.startswith(f"VENV={folder} lacks torch, ipyparallel, ")
    assert f"`{folder}/bin/python -m pip install -r requirements.txt` adds them (and puts torch at 2." in sentence


def test_an_existing_environment_that_lacks_what_is_added_gets_the_command(existing, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    folder = existing("#!/bin/sh\necho 3.12\necho accelerate\n")
    assert environment.main(["--existing", "--add", "requirements-frameworks.txt", folder]) == 1
    asked = "pip install -r requirements.txt -r requirements-frameworks.txt"
    assert f"lacks accelerate: `{folder}/bin/python -m {asked}` adds them" in capsys.readouterr().err


def test_what_the_verbs_do_without_may_be_missing(existing, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert environment.main(["--existing", existing("#!/bin/sh\necho 3.12\necho playwright ruff mypy\n")]) == 0


def test_the_module_of_every_requirement_is_known(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert len(environment.requirements()) > 15
    assert set(environment.MODULES) | environment.DISPENSABLE <= set(environment.requirements())


@pytest.mark.parametrize(
    ("script", "mode", "sentence"),
    [
        ("#!/bin/sh\necho 3.9\necho\n", 0o755, "is 3.9; the book needs Python 3.11 or newer"),
        ("#!/bin/sh\nexit 127\n", 0o755, "bin/python does not work as a Python: it ended with status 127\n"),
        ("#!/bin/sh\n", 0o644, "bin/python does not work as a Python: "),
        ("#!/bin/sh\necho hello\n", 0o755, "bin/python does not work as a Python: "),
    ],
)
def test_an_interpreter_that_is_old_is_told_from_one_that_is_none(existing, capsys, script, mode, sentence):
    assert environment.main(["--existing", existing(script, mode)]) == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["src/bookkit", "src/ranklab"])
def test_no_module_beside_a_file_that_is_run_by_its_path_hides_one_of_the_standard_library(folder):
    names = {path.stem for path in (ROOT / folder).glob("*.py")}
    assert not names & sys.stdlib_module_names


def test_the_first_command_runs_on_a_python_that_has_imported_next_to_nothing(tmp_path):
    command = [sys.executable, "-S", ROOT / "src/bookkit/environment.py", "--existing", tmp_path / "none"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode and "Traceback" not in done.stderr, done.stderr


def test_an_environment_behind_a_link_is_not_emptied(wanted, capsys):
    (wanted / "elsewhere").mkdir()
    (wanted / "elsewhere" / "mine").touch()
    (wanted / "env").symlink_to(wanted / "elsewhere")
    assert environment.refresh("env") and "Remove the link" in capsys.readouterr().err
    assert (wanted / "elsewhere" / "mine").exists()


def test_a_link_to_an_empty_folder_is_where_an_environment_is_made(wanted, monkeypatch):
    (wanted / "elsewhere").mkdir()
    (wanted / "env").symlink_to(wanted / "elsewhere")
    made = []
    monkeypatch.setattr(venv, "create", lambda folder, **_: made.append(folder))
    with contextlib.suppress(OSError, subprocess.CalledProcessError):  # there is no pip in it
        environment.refresh("env")
    assert made == ["env"]
