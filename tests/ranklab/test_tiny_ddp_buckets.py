"""TinyDDP with buckets, of the chapter *buckets*: one code in chapter and file, and the gradients of torch's DDP."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

CHAPTER = Path(__file__).parents[2] / "book" / "data-parallel" / "buckets.ipynb"
SCRIPTS = CHAPTER.parent / "scripts"
FILE = SCRIPTS / "tiny_ddp_buckets.py"

# Every case on each rank: BucketDDP beside torch's DDP with the same caps; then in which order the sums were begun.
PROGRAM = """
import contextlib
import copy
import json
import sys
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from tiny_ddp_buckets import BucketDDP

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


class Shuffled(nn.Module):
    # Every rank computes in an order of its own.
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))

    def forward(self, x):
        return sum(self.layers[(number * (1 + 2 * rank) + rank) % 4](x) for number in range(4))


def plain():
    return nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 17), nn.Tanh(), nn.Linear(17, 6))


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


def two_types():
    class Cast(nn.Module):
        def forward(self, x):
            return x.double()

    return nn.Sequential(nn.Linear(6, 9), nn.Linear(9, 9), Cast(), nn.Linear(9, 9).double(), nn.Linear(9, 4).double())


def train(model, dtype, micro, to_none):
    torch.manual_seed(10 + rank)
    kept = []
    for step in range(5):
        if step != 3:  # once, gradients of two steps add up
            model.zero_grad(set_to_none=to_none)
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


def same(ours, theirs):
    for a, b in zip(ours, theirs, strict=True):
        if (a is None) != (b is None) or (a is not None and not torch.equal(a, b)):
            return False
    return True


CASES = {
    "plain": (plain, torch.float32, 1),
    "float64": (plain, torch.float64, 1),
    "bfloat16": (plain, torch.bfloat16, 1),
    "float16": (plain, torch.float16, 1),
    "two types": (two_types, torch.float32, 1),
    "tied": (tied, torch.float32, 1),
    "frozen": (frozen, torch.float32, 1),
    "accumulated": (plain, torch.float32, 3),
    "buffers": (normed, torch.float32, 1),
    "buffers, accumulated": (normed, torch.float32, 2),
    "unused": (Branch, torch.float32, 1),
    "unused, accumulated": (Branch, torch.float32, 2),
    "shuffled": (Shuffled, torch.float32, 1),
}
BYTES = {"default": None, "tiny": 8, "uneven": 500, "one": 10**9}
told = {}
for name, (make, dtype, micro) in CASES.items():
    for cap, length in BYTES.items():
        for to_none in (True, False):
            torch.manual_seed(rank)
            model = make()
            if dtype != torch.float32:
                model = model.to(dtype)
            unused = make is Branch
            torchs = {} if length is None else {"bucket_cap_mb": length / 2**20}
            caps = {} if length is None else {"caps": (length,)}
            theirs = DDP(copy.deepcopy(model), find_unused_parameters=unused, **torchs)
            ours = BucketDDP(copy.deepcopy(model), find_unused=unused, **caps)
            told[f"{name}, {cap}, {to_none}"] = same(
                train(ours, dtype, micro, to_none), train(theirs, dtype, micro, to_none)
            )

# The buckets of DDP, and the order in which ours are begun, with ranks that compute in different orders.
theirs, ours = DDP(Shuffled(), bucket_cap_mb=8 / 2**20), BucketDDP(Shuffled(), caps=(8,))
buckets, begun = [], []
names = {p.data_ptr(): n for n, p in theirs.module.named_parameters()}


def hook(state, bucket):
    buckets.append([names[p.data_ptr()] for p in bucket.parameters()])
    return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda f: f.value()[0])


theirs.register_comm_hook(None, hook)
places = {id(p): n for n, p in ours.module.named_parameters()}
real = dist.all_reduce
for model in (theirs, ours):
    for _ in range(2):
        buckets.clear() if model is theirs else begun.clear()

        def noted(tensor, *rest, **named):
            if model is ours:
                index = next(i for i, b in enumerate(ours.flat) if b is tensor)
                begun.append([places[id(ours.order[place])] for place in ours.buckets[index]])
            return real(tensor, *rest, **named)

        dist.all_reduce = noted
        model(torch.ones(1, 6)).sum().backward()
        dist.all_reduce = real
told["order"] = [begun == buckets and len(begun) > 2, begun]
for wrap in (BucketDDP, DDP):
    model = wrap(Branch())
    try:
        for _ in range(2):
            model(torch.ones(1, 6)).sum().backward()
        told[f"missing {wrap.__name__}"] = "nothing raised"
    except RuntimeError as error:
        told[f"missing {wrap.__name__}"] = str(error)
with open(f"told-{rank}.json", "w") as file:
    json.dump(told, file)
dist.destroy_process_group()
"""
CASES = [
    "plain",
    "float64",
    "bfloat16",
    "float16",
    "two types",
    "tied",
    "frozen",
    "accumulated",
    "buffers",
    "buffers, accumulated",
    "unused",
    "unused, accumulated",
    "shuffled",
]


@pytest.fixture(scope="module", params=[2, 3])
def told(request, tmp_path_factory):
    """What each rank tells of every case, from one launch for each number of ranks."""
    folder = tmp_path_factory.mktemp("tiny")
    (folder / "compare.py").write_text(PROGRAM)
    for name in ("tiny_ddp.py", "tiny_ddp_buckets.py"):
        (folder / name).write_text((SCRIPTS / name).read_text())
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={request.param}"]
    run = subprocess.run([*command, "compare.py"], cwd=folder, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stderr
    return [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(request.param)]


@pytest.mark.ranks
@pytest.mark.parametrize("cap", ["default", "tiny", "uneven", "one"])
@pytest.mark.parametrize("case", CASES)
def test_gradients_and_buffers_equal_those_of_torch_to_the_last_bit(told, case, cap):
    for rank, of_rank in enumerate(told):
        assert [of_rank[f"{case}, {cap}, {to_none}"] for to_none in (True, False)] == [True, True], rank


@pytest.mark.ranks
def test_sums_begin_in_the_order_of_torchs_buckets_on_every_rank(told):
    orders = [of_rank["order"] for of_rank in told]
    assert all(as_torch and order == orders[0][1] for as_torch, order in orders)


@pytest.mark.ranks
def test_a_missing_gradient_raises_in_the_first_backward(told):
    for of_rank in told:
        assert of_rank["missing BucketDDP"] == "a parameter received no gradient on this rank"
        assert "Expected to have finished reduction" in of_rank["missing DistributedDataParallel"]


def definitions(text):
    """Return the source of every function and class that a text defines at its top level."""
    return {
        node.name: ast.get_source_segment(text, node)
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
    }


def test_the_chapter_and_the_file_hold_the_same_code():
    shown = {}
    for cell in json.loads(CHAPTER.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.startswith("%%px"):
            shown.update(definitions(source.partition("\n")[2]))
    kept = definitions(FILE.read_text())
    assert len(kept) == 6  # group and five classes
    assert {name: shown.get(name) for name in kept} == kept


def test_the_files_are_small_and_need_nothing_of_ours():
    texts = [(SCRIPTS / name).read_text() for name in ("tiny_ddp.py", "tiny_ddp_buckets.py")]
    assert len([line for line in "\n".join(texts).splitlines() if line.strip()]) <= 200
    assert not any("ranklab" in text for text in texts)
