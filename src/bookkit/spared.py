"""Changes that no page could notice, because they change nothing that a page could claim: they are not made."""

import ast

from bookkit.needs import NEEDS_GPU, lack
from bookkit.voice import LATE

SPEED = {"set_num_threads"}  # how many threads compute a value
SEEDS = {"manual_seed", "manual_seed_all", "seed", "default_rng", "Random"}  # any seed would do
PATIENCE = {"timeout", "timedelta", "rounds"}  # how long something may take, and how often it is timed
GUARDS = {"strict", "check"}  # of zip and of subprocess.run: an error where something is wrong
SIGNLESS = {"abs", "norm", "square"}  # a - b and b - a are the same to them
OF_GPUS = {"cpu_offload", "non_blocking"}  # where a GPU's memory is copied to, and when
PATHS = {"sys.path.insert"}  # before which other folders
PULLS = {"world.pull"}  # from which rank the notebook takes what all of them have
BELOW = (ast.Lt, ast.LtE)


def spared(tree):
    """Return the nodes of a cell that stay as they are, each in a set of their own kind.

    Args:
        tree: the cell, parsed.

    Returns:
        ``whole``: nodes in which nothing is changed. ``unswapped``: operations whose operands stay where they are.
    """
    whole: set[ast.AST] = set()
    unswapped: set[ast.AST] = set()
    for node in ast.walk(tree):
        for part in _untouched(node):
            whole |= set(ast.walk(part))
        unswapped |= set(_signless(node))
    return whole, unswapped


def below_late(before, text):
    """Whether the code below a text is *Start here if you came late*: what it does has been done above.

    Args:
        before: whether it was so above the text.
        text: of the text cell; "" for a code cell, after which it is so no longer.
    """
    return LATE in text or (before and bool(text))


def _untouched(node):
    """Yield the parts of a node in which nothing is changed."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and _name(node.value) in SPEED:
        yield node
    if isinstance(node, ast.Call):
        if _name(node) in SEEDS | PATIENCE:
            yield from node.args
            yield from node.keywords
        if ast.unparse(node.func) in PATHS:
            yield from node.args[:1]
        idle = GUARDS | PATIENCE | (OF_GPUS if lack(NEEDS_GPU) else set())
        yield from (keyword for keyword in node.keywords if keyword.arg in idle)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in PULLS:
        yield node.slice
    if isinstance(node, ast.Compare) and isinstance(node.ops[-1], BELOW) and _fraction(node.comparators[-1]):
        yield node.comparators[-1]  # what is below a bound is below a larger one
    if isinstance(node, ast.If) and "'cuda'" in ast.unparse(node.test) and lack(NEEDS_GPU):
        yield from node.body
    if isinstance(node, ast.arguments):
        named = zip([*node.posonlyargs, *node.args][::-1], node.defaults[::-1], strict=False)
        for argument, default in [*named, *zip(node.kwonlyargs, node.kw_defaults, strict=True)]:
            if default and argument.arg in PATIENCE:
                yield default


def _signless(node):
    """Yield the differences of which a call takes the size alone."""
    if isinstance(node, ast.Call) and _name(node) in SIGNLESS:
        yield from node.args
        if isinstance(node.func, ast.Attribute):
            yield node.func.value


def _fraction(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value < 1


def _name(call):
    """The last name of what is called: ``manual_seed`` of ``torch.manual_seed(0)``."""
    return ast.unparse(call.func).rpartition(".")[2]
