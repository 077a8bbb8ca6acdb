"""Small changes to what a chapter's cells do: each makes a sentence of the page false, if anything there is claimed.

Text is cut out and put in, so that a changed cell keeps its lines and an error names the same ones.
"""

import ast
import random
from dataclasses import dataclass

from bookkit.needs import kept
from bookkit.normalise import HIDDEN
from bookkit.notebook import code_cells, tags
from bookkit.spared import below_late, spared

SWAPPED = {ast.Sub: "-", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.MatMult: "@", ast.Pow: "**"}
REVERSED = {ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
UNTOLD = ("print", "display")  # dropping one of them changes the output and no claim
PLUMBING = ("ranklab.check.", "ranklab.start(", "world.stop(")
FAR = 1000.0  # to a float from here on, one more is less than what is measured differs from run to run


@dataclass(frozen=True)
class Mutation:
    """One change.

    Attributes:
        index: the cell's place among all cells.
        what: the change in words: ``dist.barrier() left out``.
        source: the cell's text with it.
    """

    index: int
    what: str
    source: str


def mutations(notebook):
    """Return all changes of the cells that teach: those shown, outside of exercises, that start or stop nothing.

    A cell that this machine does not run is left out, and so is the one for who came late: nothing could notice its
    change.
    """
    found, exercise, late = [], False, False
    codes = {index: cell for index, _, cell in code_cells(notebook)}
    for index, cell in enumerate(notebook.cells):
        if index not in codes:
            exercise, late = _exercises(cell.source, exercise), below_late(late, cell.source)
            continue
        plumbing = any(word in cell.source for word in PLUMBING)
        if not (exercise or late or plumbing or HIDDEN in tags(cell) or kept(cell)):
            found += [Mutation(index, what, source) for what, source in changes(cell.source)]
        late = below_late(late, "")
    return found


def chosen(notebook, count, seed=0):
    """Return some of a chapter's changes, spread over its cells: one of each cell before a second of any.

    Args:
        notebook: the chapter.
        count: how many at most.
        seed: another one chooses others.
    """
    dice = random.Random(seed)
    by_cell: dict[int, list[Mutation]] = {}
    for mutation in mutations(notebook):
        by_cell.setdefault(mutation.index, []).append(mutation)
    for of_cell in by_cell.values():
        dice.shuffle(of_cell)
    taken: list[Mutation] = []
    while len(taken) < count and any(by_cell.values()):
        round_ = [of_cell.pop() for of_cell in by_cell.values() if of_cell]
        taken += dice.sample(round_, min(len(round_), count - len(taken)))
    return sorted(taken, key=lambda mutation: mutation.index)


def changes(source):
    """Yield ``(what, changed source)`` for one cell; nothing where it is no Python."""
    magic, _, code = source.partition("\n") if source.startswith("%%") else ("", "", source)
    if magic and not magic.startswith("%%px"):
        return
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    lead = f"{magic}\n" if magic else ""
    whole, unswapped = spared(tree)
    for node in ast.walk(tree):
        if node in whole or (node in unswapped and isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)):
            continue
        for old, new, what in _changes_of(node, code, whole):
            start, end = _span(old, code)
            text = code.encode()
            yield what, lead + (text[:start] + new.encode() + text[end:]).decode()


def _changes_of(node, code, whole):
    """Yield ``(node to replace, its new text, what)``; what is in ``whole`` keeps its place among the others."""

    def text(part):
        return ast.get_source_segment(code, part) or ""

    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and text(node.value.func) not in UNTOLD:
        yield node, "pass" + "\n" * text(node).count("\n"), f"{_short(text(node))} left out"
    elif isinstance(node, ast.BinOp) and type(node.op) in SWAPPED:
        new = f"({text(node.right)}) {SWAPPED[type(node.op)]} ({text(node.left)})"
        yield node, new, f"{_short(text(node))} swapped"
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in REVERSED:
        new = f"{text(node.left)} {REVERSED[type(node.ops[0])]} {text(node.comparators[0])}"
        yield node, f"({new})", f"{_short(text(node))} reversed"
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        yield node, f"{text(node.target)} -= {text(node.value)}", f"{_short(text(node))} subtracted"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, str(not node.value), f"{node.value} turned"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        far = isinstance(node.value, float) and node.value >= FAR
        other = repr(2 * node.value if far else node.value + 1)
        yield node, other, f"{node.value} became {other}"
    for body in (getattr(node, name, None) for name in ("body", "orelse")):
        for first, second in zip(body or [], (body or [])[1:], strict=False) if isinstance(body, list) else []:
            if isinstance(first, ast.Expr) and isinstance(second, ast.Expr) and not {first, second} & whole:
                yield from _exchanged(first, second, text)


def _exchanged(first, second, text):
    """Two calls, one after the other, in the other order."""
    between = ast.Expr(first.value)
    ast.copy_location(between, first)
    between.end_lineno, between.end_col_offset = second.end_lineno, second.end_col_offset
    indent = " " * first.col_offset
    yield between, f"{text(second)}\n{indent}{text(first)}", f"{_short(text(second))} before {_short(text(first))}"


def _span(node, code):
    """Return the bytes of a node in the code: ast counts columns in bytes."""
    starts = [0]
    for line in code.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


def _short(text):
    line = " ".join(text.split())
    return line if len(line) <= 50 else f"{line[:49]}…"


def _exercises(text, before):
    """Whether the cells below belong to an exercise or its solution."""
    starts = max(text.rfind("{exercise-start}"), text.rfind("{solution-start}"))
    ends = max(text.rfind("{exercise-end}"), text.rfind("{solution-end}"))
    return before if starts == ends else starts > ends
