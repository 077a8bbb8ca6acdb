"""The stored rows of the table of launchers: each has its version and its date, and the page names them."""

import json
import sys
from datetime import date
from pathlib import Path

import nbformat
import pytest

LAUNCHING = Path(__file__).parents[2] / "book" / "launching"
ROWS = json.loads((LAUNCHING / "scripts" / "launchers.json").read_text())
# What the page calls those whose rows it shows without having run them.
PAGE = {name: name for name in ("ipyparallel", "submitit", "TorchX")} | {"mpirun": "Open MPI", "Ray Train": "Ray"}


@pytest.fixture
def scripts(monkeypatch):
    """The two programs that make a row."""
    monkeypatch.syspath_prepend(str(LAUNCHING / "scripts"))
    import launchers
    import told

    yield launchers, told
    del sys.modules["launchers"], sys.modules["told"]


def test_every_launcher_has_a_row_with_its_version_and_its_date(scripts):
    launchers, told = scripts
    assert list(ROWS) == list(launchers.LAUNCHERS)
    for row in ROWS.values():
        assert row["version"][0].isdigit() and date.fromisoformat(row["date"]).year >= 2026
        assert len(row["names"]) == len(told.NAMES)
        assert all(name in ["-", *known] for name, known in zip(row["names"], told.NAMES, strict=True))


def test_the_page_names_the_versions_that_were_run():
    page = "".join(cell.source for cell in nbformat.read(LAUNCHING / "slurm-and-schedulers.ipynb", 4).cells)
    for launcher, words in PAGE.items():
        assert f"{words} {ROWS[launcher]['version']}" in page


def test_what_is_told_is_found_between_a_launchers_own_words(scripts):
    launchers, _ = scripts
    said = "INFO  Waiting for the app\ntold/0 [0]:RANK LOCAL_RANK WORLD_SIZE MASTER_ADDR\nJob finished: SUCCEEDED\n"
    assert launchers.FOUR_NAMES.search(said)[1] == "RANK LOCAL_RANK WORLD_SIZE MASTER_ADDR"
    assert launchers.FOUR_NAMES.search("a - b\n- - - -\n")[1] == "- - - -"
    assert launchers.FOUR_NAMES.search("nothing was told\n") is None


def test_a_launcher_that_is_missing_keeps_its_row(scripts, monkeypatch, tmp_path, capsys):
    launchers, _ = scripts
    stored = tmp_path / "launchers.json"
    stored.write_text(json.dumps(ROWS, indent=1) + "\n")
    monkeypatch.setattr(launchers, "STORED", stored)
    monkeypatch.setattr(launchers, "LAUNCHERS", launchers.LAUNCHERS | {"mpirun": ("no-such-package", [])})
    monkeypatch.setattr(sys, "argv", ["launchers.py", "mpirun"])
    launchers.main()
    assert capsys.readouterr().out == "mpirun: no package no-such-package here, so the stored row stays\n"
    assert json.loads(stored.read_text()) == ROWS


def test_told_names_what_is_set(scripts, monkeypatch):
    _, told = scripts
    for name in (name for names in told.NAMES for name in names):
        monkeypatch.delenv(name, raising=False)
    assert told.line() == "- - - -"
    monkeypatch.setenv("SLURM_PROCID", "1")
    monkeypatch.setenv("MASTER_ADDR", "computer1")
    assert told.line() == "SLURM_PROCID - - MASTER_ADDR"
