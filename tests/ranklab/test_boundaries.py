"""The boundaries of the design: what may import what, what is never wrapped, how large a module may be."""

import ast
import inspect
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import ranklab
from bookkit.rooms import House
from ranklab.system import backends

SOURCE = Path(ranklab.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent == SOURCE)

HOUSE = House(SOURCE)
BY_NAME = pytest.mark.parametrize("path", MODULES, ids=HOUSE.name)
IPYPARALLEL = {"notebook", "engines", "rank"}


def top_level(path: Path, late: bool) -> set[str]:
    return {name.split(".")[0] for name in HOUSE.imports(path, late)}


def test_every_module_has_a_room():
    assert [name for name in HOUSE.paths if not HOUSE.room(name)] == []


def test_imports_go_down():
    assert HOUSE.upward() == []


def test_no_modules_import_each_other_in_a_circle():
    assert HOUSE.circles() == set()


@BY_NAME
def test_heavy_libraries_stay_where_they_belong(path):
    heavy = {"torch", "matplotlib", "numpy"} & top_level(path, late=False)
    assert not heavy, "import it inside the function that needs it"
    if HOUSE.room(HOUSE.name(path)) not in IPYPARALLEL:
        assert "ipyparallel" not in top_level(path, late=True)


@BY_NAME
def test_a_module_is_under_300_lines_and_says_what_it_is(path):
    text = path.read_text(encoding="utf8")
    assert len(text.splitlines()) < 300
    assert ast.get_docstring(ast.parse(text))


def code_without_strings(path: Path) -> str:
    with path.open("rb") as file:
        tokens = tokenize.tokenize(file.readline)
        return " ".join(token.string for token in tokens if token.type not in (tokenize.STRING, tokenize.COMMENT))


COLLECTIVES = (
    "all_reduce|all_gather|all_to_all|broadcast|reduce_scatter|scatter|gather|barrier|send|recv|isend|irecv|reduce"
)


@BY_NAME
def test_no_collective_is_wrapped(path):
    code = code_without_strings(path)
    if path.stem == "probe":  # a program of its own, which the doctor starts
        return
    grader = HOUSE.room(HOUSE.name(path)) == "check" or path.stem == "smaller"
    allowed = {"barrier"} if grader else set()  # a grader makes the group that an answer runs in, and ends it in order
    assert set(re.findall(rf"\bdist \. ({COLLECTIVES}) \(", code)) <= allowed
    assert grader or "init_process_group (" not in code


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


@BY_NAME
def test_no_fixed_port_no_pkill_no_bare_except(path):
    code = path.read_text(encoding="utf8")
    assert not re.search(r"\b(29500|29400|10567)\b", code)
    assert "pkill" not in code
    assert not re.search(r"except\s*:", code)


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


@BY_NAME
def test_nothing_else_names_a_backend(path):
    name = HOUSE.name(path)
    if name == backends.__name__ or HOUSE.room(name) == "check":  # a grader's words are its chapter's
        return
    named = [(line, text) for line, text in words(ast.parse(path.read_text("utf8"))) if NAMED.search(text)]
    assert not named, f"{path.name} names a backend; what is true of one alone stands in its record: {named}"


def test_the_search_for_names_finds_them():
    code = '"""gloo"""\nGLOO = f"{x} nccl"\ndef f(gloo=1):\n    "nccl"\n    import a.nccl\n    return x.nccl_y(gloo=2)'
    assert len([text for _, text in words(ast.parse(code)) if NAMED.search(text)]) == 6
