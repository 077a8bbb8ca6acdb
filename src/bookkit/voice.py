"""The rules of how a chapter speaks and teaches: why first, minutes, offered answers, sources in footnotes.

They hold for every chapter but those in ``UNREVISED``, which were written before them; a chapter leaves that list when
it is revised, and a test says when it is still there without need.
"""

import re

from bookkit.normalise import HIDDEN
from bookkit.notebook import tags
from bookkit.rulebook import rule

UNREVISED = {
}
SECTIONS = ("What you will learn", "When it breaks", "On GPUs", "Exercises", "Take it home", "Summary")
MOST_VISIBLE = 14
LATE = "Start here if you came late"
CHECKS = "# What this page checks"
# A lesson's time stands below its heading: *Core · 8 minutes*, *More · 5 minutes*, with words after it where needed.
MINUTES = re.compile(r"^\*(Core|More) · (\d+) minutes?\b[^*]*\*$", re.M)
TOTAL = re.compile(r"^\| (\d+) minutes core, (\d+) in all \|", re.M)
SLACK = 3  # minutes by which the total of a page may differ from the sum of its sections
FOOTNOTE = re.compile(r"^\[\^[\w-]+\]:.*$", re.M)
CITATION = re.compile(r"\btorch/[\w/]+\.(?:py|cpp|hpp|h)\b")
BOLD_QUESTION = re.compile(r"\*\*[^*]+\?\*\*")
UNUSED = {
    "simply": "leave it out",
    "obviously": "leave it out",
    "of course": "leave it out",
    "powerful": "use a number",
    "mend": "say fix",
    "popular": "say common",
    "in this section": "say what it is about",
}


def is_revised(chapter):
    """Whether these rules hold for a chapter."""
    return chapter.path.stem not in UNREVISED


def revised(name, fix):
    """Enter a rule that asks nothing of chapters that are not revised."""

    def enter(look):
        def look_at_revised(chapter):
            if is_revised(chapter):
                yield from look(chapter)

        look_at_revised.__doc__ = look.__doc__
        rule(name, fix)(look_at_revised)
        return look

    return enter


def texts(chapter):
    """``(index, text without code and footnotes)`` of each text cell."""
    for index, cell in enumerate(chapter.notebook.cells):
        if cell.cell_type == "markdown":
            yield index, FOOTNOTE.sub("", re.sub(r"```.*?```|`[^`]*`", "``", cell.source, flags=re.S))


@revised("sections", f"a chapter has {', '.join(SECTIONS)}")
def sections(chapter):
    """Every chapter answers the same questions, in the same places."""
    headings = re.findall(r"^## (.+)$", "\n".join(text for _, text in texts(chapter)), re.M)
    for section in SECTIONS:
        if section not in headings:
            yield None, f"there is no section {section}"


@revised("why-first", "begin with a moment that the reader knows, before the table of minutes")
def why_first(chapter):
    """The first paragraph says why; a reader who does not know that stops."""
    first = chapter.notebook.cells[0].source if chapter.notebook.cells else ""
    before = first.partition("|")[0].split()
    if len(before) < 40:
        yield 0, f"{len(before)} words stand before its table of minutes"


@revised("minutes", "write *Core · 8 minutes* below each heading that is taught, and their sums in the first table")
def minutes(chapter):
    """A teacher plans by them, so they add up."""
    text = "\n".join(cell.source for cell in chapter.notebook.cells if cell.cell_type == "markdown")
    told = [(kind, int(number)) for kind, number in MINUTES.findall(text)]
    core, whole = sum(number for kind, number in told if kind == "Core"), sum(number for _, number in told)
    if not (total := TOTAL.search(text)):
        yield None, f"its table does not say: {core} minutes core, {whole} in all"
    elif abs(int(total[1]) - core) > SLACK or abs(int(total[2]) - whole) > SLACK:
        yield None, f"its table says {total[1]} and {total[2]} minutes, its sections add up to {core} and {whole}"


@revised("answers", "offer two to four answers below the question: (A) one (B) four")
def answers(chapter):
    """A room votes, so there is something to vote on."""
    for index, text in texts(chapter):
        for question in BOLD_QUESTION.finditer(text):
            following = text[question.end() :].lstrip()
            if not re.match(r"\(A\).+\(B\)", following.split("\n")[0]):
                yield index, f"no answers are offered to {question[0][:60]}"


@revised("late", f"a text cell with {LATE}, and one %%px cell that restores the state")
def late(chapter):
    """Somebody always comes late; one cell brings fresh ranks to the middle of the page."""
    cells = chapter.notebook.cells
    found = [index for index, cell in enumerate(cells) if cell.cell_type == "markdown" and LATE in cell.source]
    if len(found) != 1:
        yield None, f"{LATE} stands in {len(found)} cells"
    elif not cells[found[0] + 1].source.startswith("%%px"):
        yield found[0] + 1, f"below {LATE} there is no %%px cell"


@revised("citation", "put file, symbol and version into a footnote")
def citation(chapter):
    """A source in the middle of a sentence stops the reader there; a footnote does not."""
    for index, cell in enumerate(chapter.notebook.cells):
        if cell.cell_type == "markdown":
            for found in CITATION.findall(FOOTNOTE.sub("", cell.source)):
                yield index, f"a source in running text ({found})"


@revised("visible-lines", f"fold what is plumbing (tag it {HIDDEN}), or split it")
def visible_lines(chapter):
    """A cell that is shown is short enough to type."""
    for index, _, cell in chapter.code:
        lines = len([line for line in cell.source.strip().splitlines() if line.strip()])
        if HIDDEN not in tags(cell) and lines > MOST_VISIBLE and "class " not in cell.source:
            yield index, f"{lines} lines are shown; {MOST_VISIBLE} are allowed"


@revised("visible-assertion", f'fold it into a cell that begins with "{CHECKS}"')
def visible_assertion(chapter):
    """The test is not the lesson."""
    for index, _, cell in chapter.code:
        if HIDDEN not in tags(cell) and re.search(r"^\s*assert\b", cell.source, re.M):
            yield index, "an assertion is shown"


@revised("words", "write as one talks at a whiteboard")
def words(chapter):
    """Words that we do not use: they promise, or they are not the field's."""
    for index, text in texts(chapter):
        for word, instead in UNUSED.items():
            if re.search(rf"\b{word}(?:s|ed|ing)?\b", text, re.I):
                yield index, f'the word "{word}"', instead
        if re.search(r"\w!(?=[\s\[]|$)", text):
            yield index, "an exclamation mark", "use a full stop"
