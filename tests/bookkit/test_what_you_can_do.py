"""The last page of Part 7: each line links to an exercise that is there, and no chapter with exercises is left out."""

import functools
import re
from pathlib import Path

from bookkit.chapters import chapters
from bookkit.notebook import read

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "book/capstone/what-you-can-do.md"
LABEL = re.compile(r"\{exercise-start\}[^:]*:label: *(\S+)")
LINK = re.compile(r"\{ref\}`[^<`]+<([\w-]+)>`")


@functools.cache
def exercises():
    """The labels of the exercises of each chapter that has some."""
    found = {}
    for path in chapters(ROOT):
        cells = read(path).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        if labels := LABEL.findall(text):
            found[path.stem] = labels
    return found


def linked():
    return LINK.findall(PAGE.read_text(encoding="utf-8"))


def test_each_link_leads_to_an_exercise_and_none_is_there_twice():
    known = {label for labels in exercises().values() for label in labels}
    assert [label for label in linked() if label not in known] == []
    assert len(linked()) == len(set(linked()))


def test_every_line_is_proved_by_an_exercise():
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("- ")]
    assert len(lines) > 50
    assert [line for line in lines if not LINK.search(line)] == []


def test_no_exercise_is_left_out():
    """A new exercise gets its line."""
    known = [label for labels in exercises().values() for label in labels]
    assert sorted(known) == sorted(linked()), set(known) ^ set(linked())


def test_a_link_to_nowhere_would_be_found():
    assert LINK.findall("- Do it: {ref}`the way <no-such-exercise>`.") == ["no-such-exercise"]
    assert "no-such-exercise" not in {label for labels in exercises().values() for label in labels}
