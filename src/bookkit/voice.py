"""The rules of how a chapter speaks and teaches: why first, minutes, offered answers, sources in footnotes."""

import re

from bookkit.normalise import HIDDEN
from bookkit.notebook import in_solutions, tags
from bookkit.rulebook import rule

SECTIONS = ("What you will learn", "When it breaks", "On GPUs", "Exercises", "Take it home", "Summary")
MOST_VISIBLE = 14
LATE = "Start here if you came late"
CHECKS = "# What this page checks"
# A lesson's time stands below its heading: *Core · 8 minutes*, *More · 5 minutes*, with words after it where needed.
MINUTES = re.compile(r"^\*(Core|More) · (\d+) minutes?\b[^*]*\*$", re.M)
TOTAL = re.compile(r"^\| (\d+) minutes core, (\d+) in all \|", re.M)
SLACK = 3  # minutes by which the total of a page may differ from the sum of its sections
FOOTNOTE = re.compile(r"^\[\^([\w-]+)\]:.*$", re.M)
MARK = re.compile(r"\[\^([\w-]+)\](?!:)")
CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.S)  # in a line or a block: it ends with as many as it began
CITATION = re.compile(r"\btorch/[\w/]+\.(?:py|cpp|hpp|h)\b")
BOLD_QUESTION = re.compile(r"\*\*[^*]+\?\*\*")
OFFERED = re.compile(r"\(A\) .*\(B\) ")
UNUSED = {
    "simply": "leave it out",
    "obviously": "leave it out",
    "of course": "leave it out",
    "powerful": "use a number",
    "mend": "say fix",
    "popular": "say common",
    "in this section": "say what it is about",
}


def texts(chapter):
    """``(index, text without code and footnotes)`` of each text cell."""
    for index, cell in enumerate(chapter.notebook.cells):
        if cell.cell_type == "markdown":
            yield index, FOOTNOTE.sub("", CODE.sub("``", cell.source))


@rule("sections", f"a chapter has {', '.join(SECTIONS)}")
def sections(chapter):
    """Every chapter answers the same questions, in the same places."""
    headings = re.findall(r"^## (.+)$", "\n".join(text for _, text in texts(chapter)), re.M)
    for section in SECTIONS:
        if section not in headings:
            yield None, f"there is no section {section}"


@rule("why-first", "begin with a moment that the reader knows, before the table of minutes")
def why_first(chapter):
    """The first paragraph says why; a reader who does not know that stops."""
    first = chapter.notebook.cells[0].source if chapter.notebook.cells else ""
    before = first.partition("|")[0].split()
    if len(before) < 40:
        yield 0, f"{len(before)} words stand before its table of minutes"


@rule("minutes", "write *Core · 8 minutes* below each heading that is taught, and their sums in the first table")
def minutes(chapter):
    """A teacher plans by them, so they add up."""
    text = "\n".join(cell.source for cell in chapter.notebook.cells if cell.cell_type == "markdown")
    told = [(kind, int(number)) for kind, number in MINUTES.findall(text)]
    core, whole = sum(number for kind, number in told if kind == "Core"), sum(number for _, number in told)
    if not (total := TOTAL.search(text)):
        yield None, f"its table does not say: {core} minutes core, {whole} in all"
    elif abs(int(total[1]) - core) > SLACK or abs(int(total[2]) - whole) > SLACK:
        yield None, f"its table says {total[1]} and {total[2]} minutes, its sections add up to {core} and {whole}"


@rule("answers", "offer two to four answers below the question: (A) one (B) four")
def answers(chapter):
    """A room votes, so there is something to vote on."""
    for index, text in texts(chapter):
        for question in BOLD_QUESTION.finditer(text):
            following = text[question.end() :].lstrip()
            if not re.match(r"\(A\).+\(B\)", following.split("\n")[0]):
                yield index, f"no answers are offered to {question[0][:60]}"
        for offered in OFFERED.finditer(text):  # the site makes buttons only directly behind a bold question
            if not re.search(r"\?\*\*\s*$", text[: offered.start()]):
                yield index, f"no bold question ends just before {text[offered.start() :][:60]}"


@rule("formula", "write it as text or code: the pages have no TeX")
def formula(chapter):
    """A dollar sign stays a dollar sign on the site, so `$V$` would be shown as it stands."""
    for index, text in texts(chapter):
        for found in re.findall(r"(?<![\\\w$])\$[^\s$](?:[^$\n]*[^\s$])?\$(?!\w)", text):
            yield index, f"a formula ({found[:40]})"


@rule("late", f"a text cell with {LATE}, and one %%px cell that restores the state")
def late(chapter):
    """Somebody always comes late; one cell brings fresh ranks to the middle of the page."""
    cells = chapter.notebook.cells
    found = [index for index, cell in enumerate(cells) if cell.cell_type == "markdown" and LATE in cell.source]
    if len(found) != 1:
        yield None, f"{LATE} stands in {len(found)} cells"
    elif not cells[found[0] + 1].source.startswith("%%px"):
        yield found[0] + 1, f"below {LATE} there is no %%px cell"


@rule("citation", "put file, symbol and version into a footnote")
def citation(chapter):
    """A source in the middle of a sentence stops the reader there; a footnote does not."""
    for index, cell in enumerate(chapter.notebook.cells):
        if cell.cell_type == "markdown":
            for found in CITATION.findall(FOOTNOTE.sub("", cell.source)):
                yield index, f"a source in running text ({found})"


@rule("footnote", "write the footnote, or take its mark away")
def footnote(chapter):
    """Sphinx says nothing of a mark without its footnote: the page shows the letters."""
    text = "\n".join(text for _, text in texts(chapter))
    written = {name for cell in chapter.notebook.cells for name in FOOTNOTE.findall(cell.source)}
    for name in sorted(set(MARK.findall(text)) ^ written):
        yield None, f"[^{name}] has {'no mark' if name in written else 'no footnote'}"


@rule("visible-lines", f"fold what is plumbing (tag it {HIDDEN}), or split it")
def visible_lines(chapter):
    """A cell that is shown is short enough to type; a solution is shown on request, and is read."""
    solutions = in_solutions(chapter.notebook)
    for index, _, cell in chapter.code:
        lines = len([line for line in cell.source.strip().splitlines() if line.strip()])
        shown = HIDDEN not in tags(cell) and index not in solutions
        if shown and lines > MOST_VISIBLE and "class " not in cell.source:
            yield index, f"{lines} lines are shown; {MOST_VISIBLE} are allowed"


@rule("visible-assertion", f'fold it into a cell that begins with "{CHECKS}"')
def visible_assertion(chapter):
    """The test is not the lesson."""
    for index, _, cell in chapter.code:
        if HIDDEN not in tags(cell) and re.search(r"^\s*assert\b", cell.source, re.M):
            yield index, "an assertion is shown"


@rule("words", "write as one talks at a whiteboard")
def words(chapter):
    """Words that we do not use: they promise, or they are not the field's."""
    for index, text in texts(chapter):
        for word, instead in UNUSED.items():
            if re.search(rf"\b{word}(?:s|ed|ing)?\b", text, re.I):
                yield index, f'the word "{word}"', instead
        if re.search(r"\w!(?=[\s\[]|$)", text):
            yield index, "an exclamation mark", "use a full stop"
