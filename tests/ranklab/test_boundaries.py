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

SOURCE = Path(ranklab.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "__init__.py" or path.parent == SOURCE)
STEMS = {path.stem for path in MODULES}
PACKAGES = {path.parent.name for path in SOURCE.rglob("__init__.py")}

# From the notebook's side down to plain data: a module imports from its own layer or one below it.
LAYERS = [
    {"__init__"},
    {"__main__"},
    {"doctor"},
    {
        "all_reduce",
        "buckets",
        "by_hand",
        "collectives",
        "cost_of_talking",
        "data_parallel",
        "ddp",
        "feeding_ranks",
        "hosts",
        "launch",
        "magics",
        "meeting_up",
        "pipelines",
        "point_to_point",
        "ranks",
        "splitting_layers",
        "why_distribute",
    },
    {"worlds"},
    {"grading", "smaller"},
    {"world", "torchrun"},
    {"cell", "recovery", "autopsy"},
    {"report"},
    {"diagnosis"},
    {"waits"},
    {"evidence"},
    {"mismatch"},
    {"elsewhere"},
    {"processes"},
    {"network"},
    {"lab"},
    {"absent", "host", "hosttools", "subnets"},
    {
        "agents",
        "controllers",
        "greeting",
        "leftovers",
        "probe",
        "fork_launcher",
        "forking",
        "launcher",
        "nodemap",
        "panel",
        "nodes",
        "costs",
        "exchange",
        "backward",
        "owners",
        "steps",
        "timeline",
        "relay",
        "schedules",
        "choice",
    },
    {"controller", "engine", "forked", "forkserver", "gpus", "holder", "on_rank"},
    {"bookmark", "interrupt", "meeting", "meter", "rank", "streams", "watchdog"},
    {"wire"},
    {"commandline", "cut", "lastwords", "memory", "pytraceback", "recorder"},
    {"ranklogs", "warden", "canvas"},
    {
        "live",
        "deadman",
        "errors",
        "foreign",
        "layout",
        "namespaces",
        "outcome",
        "palette",
        "ports",
        "preload",
        "programs",
        "rates",
        "trace",
    },
]
IPYPARALLEL = {
    "world",
    "elsewhere",
    "processes",
    "launcher",
    "fork_launcher",
    "magics",
    "engine",
    "forked",
    "controller",
    "controllers",
    "greeting",
}


def layer(name: str) -> int:
    return next(number for number, names in enumerate(LAYERS) if name in names)


def imports(path: Path, at_import_only: bool = True):
    """Yield what a module imports: ``.name`` for a module of ours, in whichever package, else a top-level package."""
    tree = ast.parse(path.read_text(encoding="utf8"))
    for node in ast.walk(tree) if not at_import_only else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            module = (node.module or "").rpartition(".")[2]
            if module and module not in PACKAGES:
                yield f".{module}"
            else:  # "from ..hangs import report": the names are modules, or what the package offers
                yield from (f".{alias.name}" for alias in node.names if alias.name in STEMS)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.split(".")[0]


def test_every_module_has_a_layer():
    assert set().union(*LAYERS) == STEMS
    assert len(STEMS) == len(MODULES), "two modules of one name"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_imports_go_down(path):
    for name in imports(path):
        if name.startswith("."):
            assert layer(name[1:]) >= layer(path.stem), f"{path.stem} imports {name[1:]} from above"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_heavy_libraries_stay_where_they_belong(path):
    assert not {"torch", "matplotlib", "numpy"} & set(imports(path)), "import it inside the function that needs it"
    if path.stem not in IPYPARALLEL:
        assert "ipyparallel" not in set(imports(path, at_import_only=False))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_collective_is_wrapped(path):
    code = code_without_strings(path)
    if path.stem == "probe":  # a program of its own, which the doctor starts
        return
    assert not re.search(rf"\bdist \. ({COLLECTIVES}) \(", code)
    if path.parent.name != "check":  # a grader makes the group that an answer runs in
        assert "init_process_group (" not in code


def test_importing_ranklab_loads_neither_torch_nor_ipyparallel():
    program = "import sys, ranklab; print({'torch', 'ipyparallel', 'matplotlib', 'IPython'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_the_public_surface_is_small_and_documented():
    assert len(ranklab.__all__) <= 15
    for name in ranklab.__all__:
        assert getattr(ranklab, name).__doc__, name


def test_what_a_reader_asks_for_start_tells_the_arguments_the_errors_and_a_chapter():
    from ranklab.world import start

    told = inspect.getdoc(ranklab.start)
    assert inspect.signature(ranklab.start) == inspect.signature(start)
    for name in inspect.signature(start).parameters:
        assert f"    {name}: " in told
    for part in "Returns:", "Raises:\n    WorldError", "Used in every chapter":
        assert part in told


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_fixed_port_no_pkill_no_bare_except(path):
    code = path.read_text(encoding="utf8")
    assert not re.search(r"\b(29500|29400|10567)\b", code)
    assert "pkill" not in code
    assert not re.search(r"except\s*:", code)
