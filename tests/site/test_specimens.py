"""The panels printed in Markdown pages are the ones ranklab makes, byte for byte."""

import json
import os
from pathlib import Path

import pytest

from ranklab.cells.panel import Panel
from ranklab.outcome import CellOutcome, RankOutcome

BOOK = Path(__file__).parents[2] / "book"

SUM = CellOutcome([RankOutcome(rank, stdout=f"put in {10 * rank}, has 60\n") for rank in range(4)])
FAILURE = CellOutcome(
    [
        RankOutcome(0, stdout="my share is -30\n"),
        RankOutcome(1, stdout="my share is -60\n"),
        RankOutcome(
            2,
            error="ZeroDivisionError: integer division or modulo by zero",
            traceback=[
                "line 1:  share = 60 // (rank - 2)",
                "ZeroDivisionError: integer division or modulo by zero",
            ],
            state="raised",
        ),
        RankOutcome(3, stdout="my share is 60\n"),
    ],
    headline="rank 2 raised ZeroDivisionError: integer division or modulo by zero",
)
CHECK = CellOutcome([RankOutcome(rank, stdout="6\n") for rank in range(4)])


@pytest.mark.parametrize(
    ("page", "number", "outcome"),
    [("index.md", 0, SUM), ("index.md", 1, FAILURE), ("setup.md", 0, CHECK)],
    ids=["index: the sum", "index: the failure", "setup: the check"],
)
def test_a_specimen_is_what_the_panel_makes(page, number, outcome):
    path = BOOK / page
    text = path.read_text(encoding="utf-8")
    begin, end = '<div class="rl-specimen">\n', "\n</div>\n"
    pieces = text.split(begin)
    assert len(pieces) > number + 1, f"{page} shows {len(pieces) - 1} panels"
    stored, rest = pieces[number + 1].split(end, 1)
    wanted = Panel(outcome).html()
    if stored != wanted and os.environ.get("UPDATE_SPECIMENS"):
        pieces[number + 1] = wanted + end + rest
        path.write_text(begin.join(pieces), encoding="utf-8")
        stored = wanted
    assert stored == wanted, "the panel has changed: UPDATE_SPECIMENS=1 pytest tests/site/test_specimens.py"


def test_the_hang_on_the_first_page_is_the_one_that_a_chapter_stores():
    stored = json.loads((BOOK / "ranks" / "your-first-ranks.ipynb").read_text(encoding="utf-8"))
    outputs = [output for cell in stored["cells"] for output in cell.get("outputs", [])]
    panels = ["".join(output.get("data", {}).get("text/html", "")).strip() for output in outputs]
    page = (BOOK / "index.md").read_text(encoding="utf-8")
    shown = page.split('<div class="rl-specimen rl-stored">\n')[1].split("\n</div>\n", 1)[0]
    assert "waits in all_reduce" in shown
    assert shown in panels, "copy the panel of the chapter's hang anew"
