"""Another torch: an environment that lies above this one, what is noted of a cell, and the page that is written."""

import datetime
import json
import re
from types import SimpleNamespace

import pytest

from bookkit import drift, drifted, overlay
from bookkit.__main__ import main
from bookkit.drift_page import page
from bookkit.errors import BookError
from bookkit.foot import linked

VERSIONS = {"book": "2.13.0", "other": "2.11.0", "python": "3.12.1", "system": "Linux", "gpu": "without a GPU"}
VERSIONS |= {"book_for": "CPUs only", "other_for": "CUDA 12.8"}
DAY = datetime.date(2026, 11, 23)
CELL = {"cell": 7, "kind": "changed", "stored": "a | b", "printed": "a `c`", "where": ""}
JUDGED = CELL | {"lines": []}


def test_the_overlay_asks_pip_for_one_package_and_lies_above_this_environment(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(overlay.venv, "create", lambda folder, **wishes: made(folder))
    monkeypatch.setattr(overlay.subprocess, "call", lambda command: asked.append(command) or 0)

    def made(folder):
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").touch()
        version = f"{overlay.sys.version_info.major}.{overlay.sys.version_info.minor}"
        (folder / "lib" / f"python{version}" / "site-packages").mkdir(parents=True)

    monkeypatch.setattr(overlay, "version_in", lambda python, package: "2.13.0")  # what lies below
    python = overlay.overlay(tmp_path / "other", "torch==2.11.0")
    assert asked == [[python, "-m", "pip", *asked[0][3:-1], "torch==2.11.0"]]
    (below,) = (tmp_path / "other").rglob(overlay.BELOW)
    assert all(repr(folder) in below.read_text() for folder in overlay.site.getsitepackages())


def test_an_overlay_that_is_there_is_used(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    monkeypatch.setattr(overlay.sysconfig, "get_path", lambda *_, **__: str(tmp_path))
    monkeypatch.setattr(overlay, "version_in", lambda python, package: "2.11.0")
    assert overlay.overlay(tmp_path, "torch==2.11.0") == str(tmp_path / "bin" / "python")


def test_a_torch_that_pip_does_not_have_is_told(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    monkeypatch.setattr(overlay.sysconfig, "get_path", lambda *_, **__: str(tmp_path))
    monkeypatch.setattr(overlay, "version_in", lambda python, package: "2.13.0")
    monkeypatch.setattr(overlay.subprocess, "call", lambda command: 1)
    with pytest.raises(BookError, match=r"pip could not install torch==9\.9"):
        overlay.overlay(tmp_path, "torch==9.9")


def outputs(text):
    return [{"output_type": "stream", "name": "stdout", "text": text}]


def error(name, words, *frames):
    return [{"output_type": "error", "ename": name, "evalue": words, "traceback": list(frames)}]


def test_a_changed_cell_is_noted_with_its_first_line_that_differs():
    note = drifted.judged(outputs("one\ntwo\n"), outputs("one\nthree\n"), "Cell outputs differ")
    assert note == {"kind": "changed", "stored": "two", "printed": "three", "where": ""}


def test_a_line_that_is_missing_and_html_are_compared_as_text():
    panel = [{"output_type": "display_data", "data": {"text/html": "<p>rank <b>0</b></p>", "text/plain": "…"}}]
    note = drifted.judged(panel, outputs(""), "Cell outputs differ")
    assert (note["kind"], note["stored"], note["printed"]) == ("changed", "rank 0", "")


def test_a_claim_falls_where_an_assertion_fails():
    printed = error("AssertionError", "", "Cell In[3], line 2\n      1 x = 1\n\x1b[32m----> 2\x1b[39m assert x == 2")
    note = drifted.judged([], printed, "Cell execution caused an exception")
    assert (note["kind"], note["stored"], note["printed"]) == ("fell", "assert x == 2", "AssertionError")


def test_a_claim_falls_too_where_a_rank_says_so():
    printed = error("RankError", "rank 2 raised AssertionError: 3")
    assert drifted.judged([], printed, "Cell execution caused an exception")["kind"] == "fell"


def test_an_error_is_noted_with_the_last_line_of_torch_that_raised_it():
    frames = (
        "File lib/torch/distributed/a.py:12, in f()",
        "\x1b[0mFile lib/torch/distributed/device_mesh.py:345, in g()",
    )
    printed = error("AttributeError", "no attribute 'size_of'", *frames)
    note = drifted.judged([], printed, "Cell execution caused an exception")
    assert (note["kind"], note["where"]) == ("raised", "torch/distributed/device_mesh.py:345")
    assert note["printed"] == "AttributeError: no attribute 'size_of'"


def test_what_is_another_in_every_run_is_left_out_of_a_line():
    assert drifted.clean("at 0x7f00aa11bb22 in /home/me/x.py with pid 4711") == "at … in … with …"  # bookkit: planted
    assert drifted.clean("x" * 500).endswith(" …")


def reported(outcome, printed=(), failure="", when="call"):
    """The plugin's report of a cell that stores ``rank 0``, as pytest makes it around nbval's own."""
    cell = SimpleNamespace(outputs=outputs("rank 0\n"))
    item = SimpleNamespace(cell=cell, cell_num=6, test_outputs=list(printed), path=drift.Path("part/chapter.ipynb"))
    call = SimpleNamespace(when=when, excinfo=SimpleNamespace(value=failure))
    report = SimpleNamespace(outcome=outcome, failed=outcome == "failed", when=when, user_properties=[])
    around = drifted.pytest_runtest_makereport(item, call)
    next(around)
    with pytest.raises(StopIteration) as finished:
        around.send(report)
    return finished.value.value


def test_the_plugin_writes_what_the_reports_of_cells_carry(tmp_path, monkeypatch):
    monkeypatch.setattr(drifted, "_notes", {})
    monkeypatch.setenv(drifted.NOTES, str(tmp_path / "notes.json"))
    for report in (
        reported("passed"),
        reported("skipped", when="setup"),
        reported("failed", outputs("rank 1\n"), "Cell outputs differ"),
    ):
        drifted.pytest_runtest_logreport(report)
    drifted.pytest_sessionfinish(SimpleNamespace(config=SimpleNamespace()))
    (note,) = json.loads((tmp_path / "notes.json").read_text()).items()
    cell = {"cell": 7, "kind": "changed", "stored": "rank 0", "printed": "rank 1", "where": ""}
    assert note == ("chapter", {"compared": 2, "cells": [cell]})


def test_a_worker_leaves_the_writing_to_the_one_that_started_it(tmp_path, monkeypatch):
    monkeypatch.setenv(drifted.NOTES, str(tmp_path / "notes.json"))
    drifted.pytest_sessionfinish(SimpleNamespace(config=SimpleNamespace(workerinput={})))
    assert not (tmp_path / "notes.json").exists()


def test_a_comparison_that_does_not_end_writes_nothing(book, make, monkeypatch):
    path = book.add("chapter", make.clean())
    monkeypatch.setattr(drift, "overlay", lambda folder, wanted: "python")
    monkeypatch.setattr(drift.subprocess, "call", lambda command, **_: 3)
    with pytest.raises(BookError, match="status 3"):
        drift.drift([path], book.root, "2.11.0")
    assert not (book.root / drift.PAGE).exists()


def test_the_verb_writes_the_page(book, make, monkeypatch):
    path = book.add("chapter", make.clean())
    asked = []
    monkeypatch.setattr(drift, "overlay", lambda folder, wanted: asked.append(wanted) or "python")
    monkeypatch.setattr(drift, "version_in", lambda python, package: "2.11.0" if python else "2.13.0")
    monkeypatch.setattr(drift, "built_for", lambda python: "CUDA 12.8" if python else "CPUs only")

    def compare(command, cwd, env):
        notes = {"chapter": {"compared": 3, "cells": [CELL]}}
        asked.append(command[-1])
        drift.Path(env[drift.NOTES]).write_text(json.dumps(notes))
        return 1

    monkeypatch.setattr(drift.subprocess, "call", compare)
    assert main(["--root", str(book.root), "drift", "--torch", "2.11.0", "chapter"]) == 0
    text = (book.root / drift.PAGE).read_text()
    assert asked == ["torch==2.11.0", str(path.resolve())] and "## A chapter\n" in text
    assert (
        "| Compared with | torch 2.11.0, built for CUDA 12.8; Python" in text
        and "1 of the book: {doc}`/book/part/chapter`" in text
    )
    assert main(["--root", str(book.root), "drift"]) == 0
    assert asked[2] == "torch" and "| all 1 |" in (book.root / drift.PAGE).read_text()


def test_the_page_counts_and_a_bar_ends_no_cell_of_its_table():
    one, two = {"compared": 20, "cells": [JUDGED], "title": "One"}, {"compared": 10, "cells": [], "title": "Two"}
    notes = {"book/part/one": one, "book/part/two": two}
    text = page(notes, VERSIONS, DAY, whole=True)
    assert "| Cells | 30 compared, 29 as stored, 1 not |" in text and "23 November 2026" in text
    assert "| 7 prints something else | `a \\| b` | `` a `c` `` |  |" in text
    assert "## One\n" in text and "20 cells of {doc}`/book/part/one`" in text and "part/two" not in text


@pytest.mark.parametrize(
    ("kind", "printed", "told"),
    [
        ("raised", "AttributeError: module 'torch.distributed' has no attribute 'x'", "needs a name"),
        ("changed", "Not yet: it got an unexpected keyword argument 'x'", "needs a name"),
        ("raised", "RankError: ranks 0–3 raised NameError: name 'x' is not defined", "follows from a cell above"),
        ("raised", "ValueError: 7", "raises an error"),
        ("fell", "AssertionError", "claim fell"),
    ],
)
def test_the_words_of_an_error_say_what_it_follows_from(kind, printed, told):
    notes = {"book/one": {"compared": 9, "title": "One", "cells": [JUDGED | {"kind": kind, "printed": printed}]}}
    text = page(notes, VERSIONS, DAY, whole=True)
    assert f"| 7 {told}" in text and re.search(rf"What became of these \| {told}[^|]*: 1 \|", text)


def test_a_book_that_holds_says_so():
    text = page({"book/part/one": {"compared": 20, "cells": []}}, VERSIONS, DAY, whole=False)
    assert "Every cell that was compared printed what is stored." in text


def test_reports_of_workers_are_collected():
    notes = {}
    for note in ({"outcome": "passed"}, {"outcome": "skipped"}, {"outcome": "failed"}):
        drifted.collect(notes, CELL | {"chapter": "one"} | note)
    assert notes == {"one": {"compared": 2, "cells": [CELL]}}


def test_the_foot_leads_to_a_page_from_wherever_it_stands():
    foot = '<a href="doc:book/does-it-still-hold">'
    assert linked(foot, lambda name: f"../../{name}.html") == '<a href="../../book/does-it-still-hold.html">'


def test_the_stored_page_is_one_that_a_run_wrote():
    stored = (drift.Path(__file__).parents[2] / drift.PAGE).read_text(encoding="utf-8")
    assert stored.startswith(page({}, VERSIONS, DAY, whole=True).split("\n")[0])
    assert "| Compared with | torch " in stored


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("torch/a.py:90 (f)", "`f`, `torch/a.py:90`"),
        ("torch/a.py:90 (F_1, new)", "`F_1` (new), `torch/a.py:90`"),
    ],
)
def test_a_line_of_torch_is_two_pieces_which_a_narrow_column_can_part(line, told):
    notes = {"book/one": {"compared": 9, "title": "One", "cells": [JUDGED | {"lines": [line]}]}}
    assert f"| {told} |" in page(notes, VERSIONS, DAY, whole=True)


def test_two_builds_are_told_apart():
    alike = page({}, VERSIONS | {"other_for": "CPUs only"}, DAY, whole=False)
    assert "built for different devices" in page({}, VERSIONS, DAY, whole=False) and "different" not in alike


@pytest.mark.parametrize(
    ("cuda", "hip", "told"), [(None, None, "CPUs only"), ("13.0", None, "CUDA 13.0"), (None, "7.0", "ROCm 7.0")]
)
def test_an_environment_says_what_its_torch_was_built_for(cuda, hip, told, tmp_path, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("print('a warning')")
    (tmp_path / "torch" / "version.py").write_text(f"cuda, hip = {cuda!r}, {hip!r}")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert overlay.built_for(None) == told
