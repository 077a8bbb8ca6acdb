"""What the verbs of the Makefile would type; none of it is run."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What a make that runs these tests tells its children: its own words, and what was typed behind its verb.
TOLD = re.compile(r"MAKE.*|MFLAGS|ALL|CH|FRAMEWORKS|GPU|HUB|LAB|PYTHON|T|TORCH|VENV")


def typed(*words):
    """The commands of a verb, as `make -n` prints them."""
    environment = {name: value for name, value in os.environ.items() if not TOLD.fullmatch(name)}
    command = ["make", "--no-print-directory", "-n", *words]
    return subprocess.run(
        command, cwd=ROOT, env=environment | {"HOME": "/somebody"}, capture_output=True, text=True, check=True
    ).stdout


def test_what_was_typed_behind_the_outer_verb_changes_nothing(monkeypatch):
    verbs = ["test", "environment", "record", "hub", "lab", "drift", "clean", "doctor"]
    before = [typed(verb) for verb in verbs]
    named = re.findall(r"^#   (\w+)=", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert {"T", "CH", "GPU"} <= set(named)
    for name in [*named, "ALL"]:
        monkeypatch.setenv(name, "1")
    assert [typed(verb) for verb in verbs] == before


def test_a_slip_in_the_chapters_is_told_before_the_tests_run():
    commands = typed("test")
    assert commands.index("bookkit chapters") < commands.index("tests/ranklab") < commands.index("--nbval")


def test_files_of_tests_run_side_by_side():
    (beside,) = (line for line in typed("test").splitlines() if "tests/ranklab" in line)
    assert "-n auto --dist loadfile" in beside and '-m "not site"' in beside


def test_the_browser_has_workers_of_its_own():
    (site,) = (line for line in typed("test").splitlines() if "tests/site" in line and "tests/ranklab" not in line)
    assert "-m site" in site


def test_one_file_of_tests_runs_without_chapters():
    commands = typed("test", "T=tests/ranklab/test_layout.py::test_it")
    assert 'pytest -p no:nbval -p bookkit.until "tests/ranklab/test_layout.py::test_it"' in commands
    assert "chapters" not in commands and "--nbval" not in commands


def test_quick_leaves_out_whatever_starts_something():
    commands = typed("quick")
    assert '-m "not ranks and not hosts and not site and not build"' in commands
    assert "--nbval" not in commands


def test_one_chapter_is_compared_without_the_tests():
    commands = typed("test", "CH=meeting-up")
    assert "tests/ranklab" not in commands
    assert commands.count("bookkit chapters meeting-up") == 2


def test_the_frameworks_are_installed_when_they_are_asked_for():
    assert "--add" not in typed("environment")
    assert "--add" not in typed("environment", "FRAMEWORKS=0")
    assert " --add requirements-frameworks.txt " in typed("environment", "FRAMEWORKS=1")


def test_the_hub_brings_its_own_requirements_and_takes_more_words():
    assert " --add requirements-hub.txt " in typed("hub")
    assert "--add requirements-hub.txt" not in typed("lab")
    assert typed("hub", "HUB=--names names.txt").endswith(" -m bookkit.hub --names names.txt\n")


@pytest.mark.parametrize("verb", ["run", "record", "check"])
def test_a_verb_takes_a_chapter(verb):
    assert f"bookkit {verb} meeting-up\n" in typed(verb, "CH=meeting-up")


def test_gpu_records_the_cells_alone_that_need_one():
    assert "bookkit record --gpu meeting-up\n" in typed("record", "GPU=1", "CH=meeting-up")
    assert "bookkit record --gpu \n" in typed("record", "GPU=1")
    assert "--gpu" not in typed("record", "GPU=0")


def test_what_is_skipped_is_told():
    assert "--nbval" in typed("test") and " -rs " in typed("test")


def test_the_home_folder_is_found_where_the_shell_did_not_look():
    assert '"/somebody/torch/bin/python" -m ranklab doctor' in typed("doctor", "VENV=~/torch")


def test_jupyterlab_trusts_the_chapters_and_reads_our_settings():
    assert "-m nbformat.sign book/*/*.ipynb" in typed("lab")
    folder = re.search(r'JUPYTER_CONFIG_PATH="([^"]+)"', typed("lab"))[1]
    for name in ("default_setting_overrides.json", "page_config.json"):
        assert json.loads((Path(folder) / "labconfig" / name).read_text(encoding="utf-8"))


def test_jupyterlab_gets_more_words():
    assert typed("lab", "LAB=--allow-root").endswith(" --allow-root\n")
