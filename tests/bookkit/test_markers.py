"""Markers follow from what tests start, and a test that starts something else is stopped."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from guard import sitecustomize
from guard.sitecustomize import kind_of
from starts import FIXTURES, NAMED, always, markers, seconds

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("python -m ranklab.engines.forkserver", "ranks"),
        ("env -C . torchrun program.py", "ranks"),
        ("/usr/bin/python -m torch.distributed.run --nnodes=2 program.py", "ranks"),
        ("python -m ipyparallel.engine", "ranks"),
        ("unshare --net --uts python -m ranklab.lab.holder computer1", "hosts"),
        ("/usr/bin/chromium --headless", "site"),
        ("python -m bookkit.leash jupyter_book.cli.main:main build source", "build"),
        ("python -m pip wheel .", "build"),
        ("python -c ranklab.start(2)", "ranks"),
        ("python -m ranklab doctor", None),
        ("python -m ipykernel_launcher -f connection.json", "kernel"),
        ("ls book", None),
        ("", None),
    ],
)
def test_a_command_gives_away_what_it_starts(command, kind):
    assert kind_of(command.split(" ")) == kind


@pytest.mark.parametrize(("may", "stopped"), [("", True), ("build", False), ("ranks", False)])
def test_a_chapters_kernel_is_left_to_tests_that_take_their_time(may, stopped):
    says = pytest.raises(RuntimeError, match="without the marker 'build'") if stopped else contextlib.nullcontext()
    with pytest.MonkeyPatch.context() as patch, says:
        patch.setenv(sitecustomize.MAY, may)
        patch.delenv(sitecustomize.CAUGHT)
        sitecustomize._look("subprocess.Popen", ["python", ["python", "-m", "ipykernel_launcher"]])


def test_a_test_is_marked_by_its_fixtures_its_name_and_its_file():
    assert markers("ranklab/test_new.py", "test_it", ["tmp_path", "notebook"]) == {"ranks"}
    assert markers("faults/test_matrix.py", "test_it", ["figures"]) == {"ranks"}
    assert markers("ranklab/test_new.py", "test_it", ["tmp_path"]) == set()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def test_a(notebook):\n    pass\ndef test_b(tmp_path, four):\n    pass\n", {"ranks"}),
        ("def test_a(site):\n    pass\ndef test_b(\n    chromium,\n):\n    pass\n", {"site"}),
        (
            "@pytest.fixture(scope='module')\ndef pages(site):\n    pass\ndef test_a(pages):\n    pass\n",
            {"site", "build"},
        ),
        ("def pages(site):\n    pass\ndef test_a(pages):\n    pass\n", set()),
        ("def test_a(notebook):\n    pass\ndef test_b():\n    pass\n", set()),
        ("", set()),
    ],
    ids=["two tests", "in common", "by a fixture", "no fixture", "one test of two", "none"],
)
def test_a_file_is_left_out_where_each_of_its_tests_would_be(tmp_path, text, told):
    (tmp_path / "test_new.py").write_text(text)
    assert always(tmp_path / "test_new.py", tmp_path) == told


def test_files_whose_tests_start_something_themselves_come_before_those_that_share_it():
    launches = seconds("ranklab/test_torchrun_faults.py", "test_it", [])
    assert seconds("ranklab/test_names.py", "test_it", ["known"]) > launches
    assert (
        launches > seconds("ranklab/test_px.py", "test_it", ["notebook"]) > seconds("ranklab/test_px.py", "test_it", [])
    )


def test_the_table_names_tests_that_exist():
    for key in NAMED:
        path, _, name = key.partition("::")
        assert f"def {name}{'(' if name else ''}" in (TESTS / path).read_text(), key
    fixtures = "".join(path.read_text() for path in TESTS.rglob("*.py"))
    assert [name for name in FIXTURES if f"def {name}(" not in fixtures] == []


def test_no_test_is_marked_by_hand():
    names = set(" ".join([*FIXTURES.values(), *NAMED.values()]).split())
    by_hand = [f"mark.{name}" for name in names]  # written so that this file is none of them
    found = [path.name for path in TESTS.rglob("*.py") if any(mark in path.read_text() for mark in by_hand)]
    assert found == []


SLY = """
import contextlib, subprocess, sys
{start}
def test_it():
    with contextlib.suppress(Exception):
        start()
"""
HERE = "def start(): subprocess.run([sys.executable, '-m', 'ranklab.nothing'])"
BELOW = """
PROGRAM = "import subprocess; subprocess.run(['torchrun', '--help'])"
def start(): subprocess.run([sys.executable, '-c', PROGRAM], stderr=subprocess.DEVNULL)
"""


@pytest.mark.parametrize("start", [HERE, BELOW], ids=["itself", "a program of its own"])
def test_a_test_that_starts_ranks_unmarked_fails_also_where_it_swallows_the_error(tmp_path, start):
    (tmp_path / "test_sly.py").write_text(SLY.format(start=start))
    # Under the same conftest, as if it stood among the tests.
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    path = os.pathsep.join([str(TESTS), str(TESTS.parent / "src"), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path)]
    command += ["-p", "no:cacheprovider", "-p", "no:nbval", str(tmp_path)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "A test without the marker 'ranks' started `" in done.stdout
    assert "tests/starts.py" in done.stdout
