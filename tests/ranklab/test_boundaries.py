"""The boundaries of the design: what may import what, what is never wrapped, how large a module may be."""

import ast
import inspect
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import ranklab
from bookkit.rooms import House
from ranklab.system import backends

SOURCE = Path(ranklab.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent == SOURCE)

HOUSE = House(SOURCE)
IPYPARALLEL = {"notebook", "engines", "rank"}


def top_level(path: Path, late: bool) -> set[str]:
    return {name.split(".")[0] for name in HOUSE.imports(path, late)}


def test_every_module_has_a_room():
    assert [name for name in HOUSE.paths if not HOUSE.room(name)] == []


def test_imports_go_down():
    assert HOUSE.upward() == []


def test_no_modules_import_each_other_in_a_circle():
    assert HOUSE.circles() == set()


def named(broken) -> list[str]:
    """The modules of which something is true that must not be: a test for each would take a second of every run."""
    return [HOUSE.name(path) for path in MODULES if broken(path)]


def test_heavy_libraries_are_imported_inside_the_function_that_needs_them():
    assert named(lambda path: {"torch", "matplotlib", "numpy"} & top_level(path, late=False)) == []


def test_ipyparallel_stays_where_it_belongs():
    rooms = {HOUSE.room(name) for name in named(lambda path: "ipyparallel" in top_level(path, late=True))}
    assert "engines" in rooms and rooms <= IPYPARALLEL


def test_a_module_is_under_300_lines_and_says_what_it_is():
    assert named(lambda path: len(path.read_text(encoding="utf8").splitlines()) >= 300) == []
    assert named(lambda path: not ast.get_docstring(HOUSE.tree(path))) == []


def code_without_strings(path: Path) -> str:
    with path.open("rb") as file:
        tokens = tokenize.tokenize(file.readline)
        return " ".join(token.string for token in tokens if token.type not in (tokenize.STRING, tokenize.COMMENT))


COLLECTIVES = (
    "all_reduce|all_gather|all_to_all|broadcast|reduce_scatter|scatter|gather|barrier|send|recv|isend|irecv|reduce"
)


def wraps(path: Path) -> bool:
    text = path.read_text(encoding="utf8")
    # A program of its own, which the doctor starts; and what has nothing to look for.
    if path.stem == "probe" or not re.search(r"\bdist\s*\.|init_process_group", text):
        return False
    code = code_without_strings(path)
    grader = HOUSE.room(HOUSE.name(path)) == "check" or path.stem == "smaller"
    allowed = {"barrier"} if grader else set()  # a grader makes the group that an answer runs in, and ends it in order
    called = set(re.findall(rf"\bdist \. ({COLLECTIVES}) \(", code))
    return not called <= allowed or (not grader and "init_process_group (" in code)


def test_no_collective_is_wrapped():
    assert named(wraps) == []


def test_importing_ranklab_loads_neither_torch_nor_ipyparallel():
    program = "import sys, ranklab; print({'torch', 'ipyparallel', 'matplotlib', 'IPython'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_the_public_surface_is_small_and_documented():
    assert len(ranklab.__all__) <= 15
    for name in ranklab.__all__:
        assert getattr(ranklab, name).__doc__, name


def test_what_a_reader_asks_for_start_tells_the_arguments_the_errors_and_a_chapter():
    told = inspect.getdoc(ranklab.start)
    for name in inspect.signature(ranklab.start).parameters:
        assert f"    {name}: " in told
    for part in "Returns:", "Raises:\n    WorldError", "Used in every chapter":
        assert part in told


def test_no_fixed_port_no_pkill_no_bare_except():
    never = re.compile(r"\b(29500|29400|10567)\b|pkill|except\s*:")
    assert named(lambda path: never.search(path.read_text(encoding="utf8"))) == []


NAMED = re.compile("|".join(backend.name for backend in backends.BACKENDS), re.IGNORECASE)


def words(tree: ast.Module):
    """Yield the line and the text of every string and identifier of a module, without its docstrings."""
    told = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if node in told:
            continue
        for name in ("id", "attr", "arg", "name", "asname", "module", "value", "names"):
            text = getattr(node, name, None)
            if isinstance(text, str):
                yield getattr(node, "lineno", 0), text


def test_nothing_else_names_a_backend():
    """What is true of one backend alone stands in its record."""
    found = []
    for path in MODULES:
        name = HOUSE.name(path)
        # A grader's words are its chapter's.
        if name == backends.__name__ or HOUSE.room(name) == "check" or not NAMED.search(path.read_text("utf8")):
            continue
        found += [f"{name}, line {line}: {text}" for line, text in words(HOUSE.tree(path)) if NAMED.search(text)]
    assert found == []


def test_the_search_for_names_finds_them():
    code = '"""gloo"""\nGLOO = f"{x} nccl"\ndef f(gloo=1):\n    "nccl"\n    import a.nccl\n    return x.nccl_y(gloo=2)'
    assert len([text for _, text in words(ast.parse(code)) if NAMED.search(text)]) == 6
