"""TinyDDP of the chapter *ddp*: the chapter and the file hold one code, and its gradients are those of torch's DDP."""

import ast
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

CHAPTER = Path(__file__).parents[2] / "book" / "data-parallel" / "ddp.ipynb"
FILE = CHAPTER.parent / "scripts" / "tiny_ddp.py"

# Every case on each rank: TinyDDP, torch's DDP with a bucket for each parameter, and torch's DDP as it comes.
PROGRAM = """
import contextlib
import copy
import json
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from tiny_ddp import TinyDDP

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


class Branch(nn.Module):
    # Which layers take part depends on the rank: both, one, or the other; the last one never does.
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        chosen = [[0, 1], [1], [0]][rank] if self.training else [0]
        return sum(self.layers[number](x) for number in chosen)


def plain():
    return nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 6))


def tied():
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
    model[2].weight = model[0].weight
    return model


def frozen():
    model = plain()
    model[0].weight.requires_grad_(False)
    return model


def normed():
    return nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Linear(6, 6))


def transposed():
    model = plain()
    model[0].weight = nn.Parameter(torch.randn(6, 40).t())
    return model


def two_types():
    class Cast(nn.Module):
        def forward(self, x):
            return x.double()

    return nn.Sequential(nn.Linear(6, 9), Cast(), nn.Linear(9, 4).double())


def train(model, dtype, micro):
    torch.manual_seed(10 + rank)
    kept = []
    for step in range(4):
        if step != 2:  # once, gradients of two steps add up
            model.zero_grad()
        for number in range(micro):
            with model.no_sync() if number < micro - 1 else contextlib.nullcontext():
                model(torch.randn(5, 6, dtype=dtype)).square().mean().backward()
        if step == 1:  # an evaluation between two steps
            with torch.no_grad():
                model.eval()(torch.randn(5, 6, dtype=dtype))
                model.train()
        kept += [None if p.grad is None else p.grad.clone() for p in model.parameters()]
        kept += [buffer.clone() for buffer in model.buffers()]
    return kept


def compare(ours, theirs):
    same, far = True, 0.0
    for a, b in zip(ours, theirs, strict=True):
        if (a is None) != (b is None):
            return False, float("inf")
        if a is None:
            continue
        same &= torch.equal(a, b)
        if a.is_floating_point() and not torch.equal(a, b):
            far = max(far, ((a - b).abs().max() / b.abs().max() / torch.finfo(a.dtype).eps).item())
    return same, far


CASES = {
    "plain": (plain, torch.float32, 1),
    "float64": (plain, torch.float64, 1),
    "bfloat16": (plain, torch.bfloat16, 1),
    "float16": (plain, torch.float16, 1),
    "two types": (two_types, torch.float32, 1),
    "tied": (tied, torch.float32, 1),
    "frozen": (frozen, torch.float32, 1),
    "transposed": (transposed, torch.float32, 1),
    "accumulated": (plain, torch.float32, 3),
    "buffers": (normed, torch.float32, 1),
    "buffers, accumulated": (normed, torch.float32, 2),
    "unused": (Branch, torch.float32, 1),
    "unused, accumulated": (Branch, torch.float32, 2),
}
told = {}
for name, (make, dtype, micro) in CASES.items():
    torch.manual_seed(rank)
    model = make()
    if dtype != torch.float32:
        model = model.to(dtype)
    tiny = TinyDDP(copy.deepcopy(model), find_unused_parameters=make is Branch)
    single = DDP(copy.deepcopy(model), bucket_cap_mb=1e-6, find_unused_parameters=True)
    usual = DDP(copy.deepcopy(model), find_unused_parameters=make is Branch)
    ours = train(tiny, dtype, micro)
    told[name] = [*compare(ours, train(single, dtype, micro)), *compare(ours, train(usual, dtype, micro))]
for name, make in (("shapes", lambda: nn.Linear(2, 2 + rank)), ("number", lambda: nn.Linear(2, 2, bias=rank == 0))):
    try:
        TinyDDP(make())
        told[name] = "nothing raised"
    except RuntimeError as error:
        told[name] = str(error)
try:
    TinyDDP(Branch())(torch.ones(1, 6)).sum().backward()
    told["missing"] = "nothing raised"
except RuntimeError as error:
    told["missing"] = str(error)
with open(f"told-{rank}.json", "w") as file:
    json.dump(told, file)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module", params=[2, 3])
def told(request, tmp_path_factory):
    """What each rank tells of every case, from one launch for each number of ranks."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "compare.py").write_text(PROGRAM)
    (folder / "tiny_ddp.py").write_text(FILE.read_text())
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={request.param}"]
    run = subprocess.run([*command, "compare.py"], cwd=folder, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(request.param)]


CASES = [
    "plain",
    "float64",
    "bfloat16",
    "float16",
    "two types",
    "tied",
    "frozen",
    "transposed",
    "accumulated",
    "buffers",
    "buffers, accumulated",
    "unused",
    "unused, accumulated",
]


@pytest.mark.ranks
@pytest.mark.parametrize("case", CASES)
def test_gradients_and_buffers_equal_those_of_torch(told, case):
    for rank, of_rank in enumerate(told):
        same, far, same_as_usual, far_from_usual = of_rank[case]
        # Torch sums a transposed gradient in the order of its memory, which on three ranks is another order of sums.
        assert same or (case == "transposed" and len(told) == 3 and far < 2), (rank, of_rank[case])
        # One buffer for all parameters is cut elsewhere: on three ranks, the last bits differ; on two a + b = b + a.
        assert same_as_usual or (len(told) == 3 and far_from_usual < 4), (rank, of_rank[case])


@pytest.mark.ranks
@pytest.mark.parametrize("case", ["shapes", "number"])
def test_ranks_with_other_parameters_are_refused_on_every_rank(told, case):
    assert [of_rank[case] for of_rank in told] == ["the ranks' parameters differ in number or shape"] * len(told)


@pytest.mark.ranks
def test_a_missing_gradient_raises_in_the_first_backward(told):
    assert [of_rank["missing"] for of_rank in told] == ["a parameter received no gradient on this rank"] * len(told)


def definitions(text):
    """Return the source of each function, method and class head, as if all stood at the top level.

    The chapter adds the methods one by one, each under ``@add_to(TinyDDP)``.
    """
    found = {}

    def add(name, first, last):
        found[name] = textwrap.dedent("\n".join(text.splitlines()[first - 1 : last])).strip()

    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            decorators = [one for one in node.decorator_list if "add_to" not in ast.unparse(one)]
            owner = "TinyDDP." if len(decorators) < len(node.decorator_list) else ""
            add(owner + node.name, min(one.lineno for one in [node, *decorators]), node.end_lineno)
        elif isinstance(node, ast.ClassDef):
            methods = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name != "__init__"]
            starts = [min(one.lineno for one in [part, *part.decorator_list]) for part in methods]
            add(node.name, node.lineno, min([node.end_lineno, *(start - 1 for start in starts)]))
            for start, part in zip(starts, methods, strict=True):
                add(f"{node.name}.{part.name}", start, part.end_lineno)
    return found


def test_the_chapter_and_the_file_hold_the_same_code():
    cells = [cell for cell in json.loads(CHAPTER.read_text())["cells"] if cell["cell_type"] == "code"]
    shown = {}
    for cell in cells:
        source = "".join(cell["source"])
        if source.startswith("%%px"):
            shown.update(definitions(source.partition("\n")[2]))
    kept = definitions(FILE.read_text())
    methods = {f"TinyDDP.{name}" for name in ("forward", "ready", "launch", "finish", "no_sync")}
    assert set(kept) == {"copy_from_rank_zero", "TinyDDP", *methods}
    assert {name: shown.get(name) for name in kept} == kept


def test_the_file_is_small_and_needs_nothing_of_ours():
    text = FILE.read_text()
    assert len(text.splitlines()) <= 100
    assert "ranklab" not in text
