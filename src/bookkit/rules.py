"""The rules of a chapter. A rule is one function: it gets a chapter and yields what breaks it.

To add one, write the function, give it ``@rule("name", "how to fix it")``, and add its test.
"""

import re

from bookkit import leaks, needs_rules, voice  # noqa: F401 - the rules of both enter the table when they are imported
from bookkit.chapter import texts
from bookkit.needs import EXPECTED_ERROR, EXPECTED_ON_GPU, NEEDS, NEEDS_GPU, raises
from bookkit.normalise import HIDDEN, MEASURED
from bookkit.notebook import cell_name, tags
from bookkit.recorded import unrecorded
from bookkit.rulebook import RULES, Finding, rule

TAGS = {HIDDEN, EXPECTED_ERROR, EXPECTED_ON_GPU, MEASURED, *NEEDS}
MOST_BYTES = 300_000
MOST_LINES = 20
MOST_COLUMNS_FOLDED = 80
MOST_MEASURED = 2
FILE_NAME = re.compile(r"[a-z][a-z0-9-]*")


def examine(chapter):
    """All findings of one chapter, rule by rule."""
    findings = []
    for item in RULES:
        for index, found, *fix in item.look(chapter):
            where = chapter.title
            if index is not None:
                where += f", {cell_name(chapter.notebook, index)}"
            findings.append(Finding(where, item.name, found, *(fix or [item.fix])))
    return findings


# What was executed


@rule("unexecuted", "run `make record CH=…`")
def unexecuted(chapter):
    """Every code cell was run, in order: nbval compares nothing where a count is missing.

    Those that wait for a GPU are no fault of the author's: ``check`` lists them.
    """
    code = [entry for entry in chapter.code if not unrecorded(entry[2])]
    if code and all(cell.execution_count is None for _, _, cell in code):
        yield None, "none of its cells was executed"
        return
    for index, number, cell in code:
        if not cell.source.strip():
            yield index, "the cell is empty", "delete it"
        elif cell.execution_count is None:
            yield index, "the cell was never executed"
        elif cell.execution_count != number:
            yield index, f"its count is {cell.execution_count}, not {number}"


@rule("stderr", "fix what warns; nothing printed to stderr is stored")
def stderr(chapter):
    """No warnings: they differ between machines and teach readers to look away."""
    for index, _, cell in chapter.code:
        for output in cell.outputs:
            marked = output.get("metadata", {}).get("ranklab", {}).get("stderr")
            if output.get("name") == "stderr" or marked:
                yield index, f"stderr is stored ({_first_line(texts(output)[1])})"


@rule("raises-exception", f"remove the tag, or tag the cell {EXPECTED_ERROR}; {EXPECTED_ON_GPU} where it needs a GPU")
def errors(chapter):
    """An error is stored exactly where the chapter says that there is one."""
    for index, _, cell in chapter.code:
        stored = any(output.output_type == "error" for output in cell.outputs)
        if stored and not raises(cell):
            yield index, "an error is stored"
        if not stored and raises(cell) and cell.execution_count is not None:
            yield index, "its tags say that it raises an error, and it stores none"


# What leaks


@rule("leak", "take it out")
def leaked(chapter):
    """No secret, and nothing of this machine, in what is printed or written."""
    for index, cell in enumerate(chapter.notebook.cells):
        for pattern in (leaks.PATH, *leaks.SECRETS):
            for found in pattern.find(leaks.plain(cell.source)):
                yield index, f"{pattern.name} in its source ({found})", pattern.fix
    for index, _, text, _ in chapter.outputs:
        for pattern in (leaks.PATH, *leaks.SECRETS):
            for found in pattern.find(text):
                yield index, f"{pattern.name} in its output ({found})", pattern.fix


@rule("names", "leave the name out of what is printed")
def names(chapter):
    """No host, user or network address of this machine in an output."""
    own = leaks.names_of_this_machine()
    for index, _, text, _ in chapter.outputs:
        for name in own:
            if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text):
                yield index, f"name of this machine or user in its output ({name})"
        for address in leaks.addresses(text):
            yield index, f"network address in its output ({address})"


@rule("one-run", "leave it out")
def one_run(chapter):
    """Nothing that is different in the next run: strict nbval would fail there."""
    for index, _, _, seen in chapter.outputs:
        for pattern in leaks.ONE_RUN:
            for found in pattern.find(seen):
                yield index, f"{pattern.name} in its output ({found})", pattern.fix


@rule("timing", leaks.TIMING.fix)
def timing(chapter):
    """A measured time is not text that is compared."""
    for index, cell, _, seen in chapter.outputs:
        if MEASURED not in tags(cell):
            for found in leaks.TIMING.find(seen):
                yield index, f"timing in compared text ({found})"


# What a chapter looks like


@rule("size", f"make figures smaller; a notebook has at most {MOST_BYTES // 1000} kB")
def size(chapter):
    """Small enough to load in a room full of learners."""
    stored = chapter.path.stat().st_size
    if stored > MOST_BYTES:
        yield None, f"the file has {stored // 1000} kB"


@rule("file-name", "use lower-case words joined by hyphens, without a number in front")
def file_name(chapter):
    """Names survive renumbering, and Jupyter Book 2 keeps their URLs."""
    for name in (chapter.path.stem, chapter.path.resolve().parent.name):
        if not FILE_NAME.fullmatch(name):
            yield None, f"the name {name}"


@rule("tag", f"use {', '.join(sorted(TAGS))}, or none")
def unknown_tag(chapter):
    """Few tags, each with one meaning."""
    for index, cell in enumerate(chapter.notebook.cells):
        for tag in sorted(set(tags(cell)) - TAGS):
            yield index, f"the tag {tag}"


@rule("measured", "turn a measurement into a figure or an assertion on a ratio")
def measured(chapter):
    """Cells that nothing compares are the exception; on a GPU, what a cell prints may depend on how many there are."""
    cells = [index for index, _, cell in chapter.code if MEASURED in tags(cell) and NEEDS_GPU not in tags(cell)]
    if len(cells) > MOST_MEASURED:
        yield None, f"{len(cells)} cells are tagged {MEASURED}; {MOST_MEASURED} are allowed"


@rule("exercise", "write one, and a solution below it; CONTRIBUTING.md shows how")
def exercise(chapter):
    """Every chapter asks for something that is checked, and shows how it is done."""
    text = "\n".join(cell.source for cell in chapter.notebook.cells if cell.cell_type == "markdown")
    asked = re.findall(r"\{exercise-start\}[^:]*:label: *(\S+)", text)
    if not asked:
        yield None, "there is no exercise"
    for label in asked:
        if not re.search(rf"\{{solution-start\}} +{re.escape(label)}$", text, re.M):
            yield None, f"the exercise {label} has no solution"


@rule("long-cell", "split it")
def long_cell(chapter):
    """A cell that can be read at a glance."""
    for index, _, cell in chapter.code:
        lines = len(cell.source.strip().splitlines())
        if lines > MOST_LINES:
            yield index, f"it has {lines} lines; {MOST_LINES} are allowed"


@rule("wide-fold", "break the line")
def wide_fold(chapter):
    """What is folded away stands in a box, so it holds less than other cells before a scroll bar comes."""
    solution = False
    for index, cell in enumerate(chapter.notebook.cells):
        if cell.cell_type == "markdown":
            solution = ("{solution-start}" in cell.source or solution) and "{solution-end}" not in cell.source
        elif solution or HIDDEN in tags(cell):
            widest = max(map(len, cell.source.splitlines()), default=0)
            if widest > MOST_COLUMNS_FOLDED:
                yield index, f"a line has {widest} columns; {MOST_COLUMNS_FOLDED} are allowed"


@rule("magic", "let the magic be the first line of its cell")
def magic(chapter):
    """``%%px`` says who runs a cell, so it comes first; ``%autopx`` would say it somewhere else."""
    for index, _, cell in chapter.code:
        for place, line in enumerate(cell.source.splitlines()):
            if re.match(r"\s*%autopx\b", line):
                yield index, "%autopx", "start each cell for the ranks with %%px"
            if place and re.match(r"\s*%%\w", line):
                yield index, f"{line.strip()} is on line {place + 1}"


@rule("fixed-port", "let the port be chosen; two learners share a machine")
def fixed_port(chapter):
    """No port that a second learner would find taken."""
    for index, _, cell in chapter.code:
        for found in re.findall(r"\b29[45]\d\d\b|MASTER_PORT['\"]?\]? *= *['\"]?\d+", cell.source):
            yield index, f"a fixed port ({found})"


@rule("assertion", "assert what the chapter claims")
def assertion(chapter):
    """A chapter that asserts nothing passes its tests when it is wrong."""
    if not any(re.search(r"^\s*assert\b|\bcheck\.\w+\(", cell.source, re.M) for _, _, cell in chapter.code):
        yield None, "no cell asserts anything"


@rule("figure", "draw what the chapter is about (PNG)")
def figure(chapter):
    """Every chapter draws something."""
    if not any("image/png" in output.get("data", {}) for _, _, cell in chapter.code for output in cell.outputs):
        yield None, "there is no figure"


@rule("alt-text", 'say what the figure shows in the cell\'s metadata: "mystnb": {"image": {"alt": "…"}}')
def alt_text(chapter):
    """A figure can be heard as well as seen."""
    for index, _, cell in chapter.code:
        drawn = any(kind.startswith("image/") for output in cell.outputs for kind in output.get("data", {}))
        if drawn and not cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "").strip():
            yield index, "a figure without alt text"


def _first_line(text):
    return (text.strip().splitlines() or [""])[0][:60]
