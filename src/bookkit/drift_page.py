"""The page *Does it still hold?*: what the cells of the book print with another torch."""

import re
from collections import Counter

from bookkit.drifted import CHANGED, FELL, RAISED, STOPPED
from bookkit.errors import count

LACKS, FOLLOWS = "lacks", "follows"
KINDS = {
    FELL: "claim fell",
    LACKS: "needs a name that this torch lacks",
    CHANGED: "prints something else",
    RAISED: "raises an error",
    STOPPED: "was stopped",
    FOLLOWS: "follows from a cell above",
}
LACKING = re.compile(r"has no attribute|unexpected keyword argument|cannot import name")
# What a cell says that uses what an earlier one, which failed, should have made.
FOLLOWING = re.compile(r"\bNameError\b|\bNo variable '")
OPENING = """\
<!-- Written by `make drift`; a run writes it, nobody else. -->
# Does it still hold?

Every output of this book was printed by torch {book}. You may have another version, and some sentence of a chapter may
no longer be true there. So the chapters are run again with another torch, and each cell is compared with what is
stored. This page is what the last such run wrote.

| What | The last run |
|---|---|
| Recorded with | torch {book}, built for {book_for} |
| Compared with | torch {other}, built for {other_for}; Python {python}, {system}, {gpu} |
| Compared on | {day} |
| Chapters | {chapters} |
| Cells | {compared} compared, {same} as stored, {changed} not |
| What became of these | {kinds} |

`make drift TORCH={other}` makes this comparison on your machine, and `CH=path` takes one chapter. It makes an
environment that differs from the book's in torch alone. A cell is counted where its text differs. Figures are not
compared, and measured times are not.
{builds}
"""
BUILDS = """
The two were built for different devices. So a cell can print something else for that reason, in the same version too.
"""
SAME = "Every cell that was compared printed what is stored.\n"
SECTION = """\
## {title}

{told}

| Cell | Stored | Printed with {other} | In torch {book} |
|---|---|---|---|
{rows}
"""
LAST = """\
## How to read this

*Claim fell* is an assertion of the page that is false here; it stands in the column *Stored*, unless it fell on the
ranks. Where a cell above it failed, the assertion may only miss what that cell should have made. *Needs a name that
this torch lacks* is a function or an option that came or went between the two versions. *Prints something else* is a
changed output: often a word of an error message, or a count.

The last column names, of the functions and classes of torch that the cell itself uses, those that the other version
lacks (*new*) or has with other code, each with the line of torch {book} where the first difference stands. It comes
from a comparison of the two sources, so it is a place to begin to look, and not yet the reason. Where nothing stands
the reason is deeper inside torch, or in what another cell has left.
"""


def page(notes, versions, day, whole):
    """The text of the page.

    Args:
        notes: what ``drift.compared`` returned: for each chapter its title, the cells compared and those that differ.
        versions: ``book`` and ``other``, of torch; ``python`` and ``system``.
        day: when the run was.
        whole: whether these are all chapters.
    """
    compared = sum(each["compared"] for each in notes.values())
    changed = sum(len(each["cells"]) for each in notes.values())
    listed = ", ".join(f"{{doc}}`/{path}`" for path in notes)
    kinds = Counter(_kind(cell) for each in notes.values() for cell in each["cells"])
    facts = {
        "day": f"{day.day} {day:%B} {day.year}",
        "chapters": f"all {len(notes)}" if whole else f"{len(notes)} of the book: {listed}",
        "compared": compared,
        "same": compared - changed,
        "changed": changed,
        "kinds": "; ".join(f"{KINDS[kind]}: {kinds[kind]}" for kind in KINDS if kinds[kind]) or "nothing",
    }
    sections = [_section(path, each, versions) for path, each in notes.items() if each["cells"]]
    facts["builds"] = "" if versions["book_for"] == versions["other_for"] else BUILDS
    return OPENING.format(**versions, **facts) + ("\n".join(sections) or SAME) + "\n" + LAST.format(**versions)


def _section(path, note, versions):
    total, changed = note["compared"], len(note["cells"])
    told = f"{count(total, 'cell')} of {{doc}}`/{path}` compared; of these, {changed} did not print what is stored."
    rows = "\n".join(_row(cell) for cell in note["cells"])
    return SECTION.format(title=note["title"], told=told, rows=rows, **versions)


def _kind(cell):
    """The kind of a cell, told by its words where the run did not know it."""
    if cell["kind"] in (RAISED, CHANGED) and LACKING.search(cell["printed"]):
        return LACKS
    return FOLLOWS if cell["kind"] == RAISED and FOLLOWING.search(cell["printed"]) else cell["kind"]


def _row(cell):
    where = f", in {_code(cell['where'])}" if cell["where"] else ""
    lines = "; ".join(map(_place, cell["lines"]))
    told = f"{KINDS[_kind(cell)]}{where}"
    return f"| {cell['cell']} {told} | {_code(cell['stored'])} | {_code(cell['printed'])} | {lines} |"


def _place(line):
    """A name of torch and where it stands, from ``torch/file.py:12 (Name, new)``: two short pieces, which can wrap."""
    where, name = line.removesuffix(")").split(" (", 1)
    name, new, _ = name.partition(", new")
    return f"{_code(name)}{' (new)' if new else ''}, {_code(where)}"


def _code(text):
    """A line as code in a table's cell; a bar would end the cell, and backticks the code."""
    if not text:
        return ""
    fence = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{text.replace('|', chr(92) + '|')}{pad}{fence}"
