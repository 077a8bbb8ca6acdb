"""The runner of the chapter *pipelines*: one code in chapter and file, the uncut model's gradients, its peaks."""

import ast
import contextlib
import json
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

import ranklab

CHAPTER = Path(__file__).parents[2] / "book" / "model-parallel" / "pipelines.ipynb"
FILE = CHAPTER.parent / "scripts" / "pipeline.py"

# Every case on each rank, in one launch; with two stages there are two lines of ranks.
PROGRAM = """
import copy
import json
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from pipeline import Pipeline, gpipe, naive, one_f_one_b

dist.init_process_group("gloo")
rank = dist.get_rank()


class Block(nn.Module):
    # Two parameters of different shapes, one of which is used twice.
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(8, 8), nn.Linear(8, 8, bias=False)

    def forward(self, x):
        return x + self.other(torch.tanh(self.other(torch.tanh(self.one(x)))))


def uncut(model, batch, targets, micro):
    model, loss = copy.deepcopy(model), 0.0
    for x, target in zip(batch.chunk(micro), targets.chunk(micro)):
        part = F.mse_loss(model(x), target) / micro
        part.backward()
        loss += part.item()
    return loss, model


def gradients(modules):
    return [p.grad for module in modules for p in module.parameters()]


told = {}
for dtype in torch.float32, torch.float64:
    torch.manual_seed(0)
    model = nn.Sequential(*[Block() for _ in range(4)]).to(dtype)
    batch, targets = torch.randn(2, 16, 8, dtype=dtype)
    for stages in 2, 4:
        stage, share = rank % stages, 4 // stages
        mine = slice(share * stage, share * (stage + 1))
        for micro in 1, 2, 4, 8:
            loss, cut = uncut(model, batch, targets, micro)
            whole_loss, whole = uncut(model, batch, targets, 1)
            for schedule in naive, gpipe, one_f_one_b:
                part = copy.deepcopy(model[mine])
                line = Pipeline(part, [rank - stage + k for k in range(stages)], 8)
                got = line.step(schedule, batch, targets, micro, F.mse_loss)
                first = [gradient.clone() for gradient in gradients(part)]
                part.zero_grad()
                again = line.step(schedule, batch, targets, micro, F.mse_loss)
                told[f"{dtype} {stages} {micro} {schedule.__name__}"] = {
                    "gradients": all(
                        torch.equal(a, c) and torch.equal(b, c)
                        for a, b, c in zip(first, gradients(part), gradients(cut[mine]), strict=True)
                    ),
                    "close": all(
                        torch.allclose(a, b, rtol=1e-4, atol=1e-6)
                        for a, b in zip(gradients(part), gradients(whole[mine]), strict=True)
                    ),
                    "loss": not line.last or (got == again == loss and abs(got - whole_loss) < 1e-5),
                    "peak": line.peak,
                    "stored": len(line.stored),
                    "order": [(what, k) for what, k, *_ in line.events] == schedule(stage, stages, micro),
                    "times": all(a[3] <= b[2] for a, b in zip(line.events, line.events[1:])),
                }
with open(f"told-{rank}.json", "w") as file:
    json.dump(told, file)
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each of four ranks tells of every case, from one launch."""
    folder = tmp_path_factory.mktemp("pipeline")
    (folder / "compare.py").write_text(PROGRAM)
    (folder / "pipeline.py").write_text(FILE.read_text())
    with contextlib.chdir(folder):
        run = ranklab.torchrun("compare.py", nproc_per_node=4, timeout=240, show=False)
    assert run.failure is None, run.errors
    return [json.loads((folder / f"told-{rank}.json").read_text()) for rank in range(4)]


@pytest.mark.parametrize("schedule", ["naive", "gpipe", "one_f_one_b"])
@pytest.mark.parametrize(("stages", "micro"), list(product((2, 4), (1, 2, 4, 8))))
def test_loss_and_every_gradient_are_those_of_the_uncut_model(told, stages, micro, schedule):
    for of_rank in told:
        for dtype in ("torch.float32", "torch.float64"):
            case = of_rank[f"{dtype} {stages} {micro} {schedule}"]
            assert case["gradients"] and case["close"] and case["loss"]
            assert case["order"] and case["times"]


@pytest.mark.parametrize(("stages", "micro"), list(product((2, 4), (1, 2, 4, 8))))
def test_peaks_are_one_all_and_at_most_the_number_of_stages(told, stages, micro):
    for rank, of_rank in enumerate(told):
        cases = [of_rank[f"torch.float32 {stages} {micro} {name}"] for name in ("naive", "gpipe", "one_f_one_b")]
        assert [case["peak"] for case in cases] == [1, micro, min(micro, stages - rank % stages)]
        assert all(case["stored"] == 0 for case in cases)


def test_the_chapter_shows_the_code_of_the_file():
    shown = ""
    for cell in json.loads(CHAPTER.read_text())["cells"]:
        for output in cell.get("outputs", []):
            shown += "".join(output.get("text", ""))
    kept = ast.parse(FILE.read_text()).body
    (runner,) = (node for node in kept if isinstance(node, ast.ClassDef))
    parts = {node.name: node for node in [*kept, *runner.body] if isinstance(node, ast.FunctionDef)}
    for name in ("one_f_one_b", "forward", "backward", "exchange"):
        assert ast.get_source_segment(FILE.read_text(), parts[name]) in shown


def exchanges(order, stage, stages):
    """Return what Pipeline.exchange hands over after each step: a batch of (sender, receiver) pairs of stages."""
    made = []
    for done, following in zip(["", *(what for what, _ in order)], [*(what for what, _ in order), ""], strict=True):
        to = stage + {"F": 1, "B": -1}.get(done, stages)
        source = stage + {"F": -1, "B": 1}.get(following, stages)
        batch = [(stage, to)] if 0 <= to < stages else []
        made.append(batch + ([(source, stage)] if 0 <= source < stages else []))
    return [batch for batch in made if batch]


def stuck(queues):
    """Run each rank's batches one after the other, as NCCL does on a stream; return the ranks that never end.

    A message is there when the batches at the heads of both queues hold it, a batch is over when all of its are.
    """
    heads = [list(queue[0]) if queue else [] for queue in queues]
    queues = [queue[1:] for queue in queues]
    moved = True
    while moved:
        moved = False
        for rank, head in enumerate(heads):
            for message in list(head):
                peer = sum(message) - rank
                if message in heads[peer]:
                    head.remove(message)
                    heads[peer].remove(message)
                    moved = True
            if not head and queues[rank]:
                heads[rank] = list(queues[rank].pop(0))
                moved = True
    return [rank for rank, head in enumerate(heads) if head or queues[rank]]


@pytest.mark.parametrize("schedule", ["naive", "gpipe", "one_f_one_b"])
@pytest.mark.parametrize(("stages", "micro"), list(product((2, 4, 7), (1, 2, 4, 8, 16))))
def test_no_schedule_hangs_where_messages_run_one_batch_after_the_other(stages, micro, schedule, monkeypatch):
    monkeypatch.syspath_prepend(str(FILE.parent))
    order = getattr(import_module("pipeline"), schedule)
    queues = [exchanges(order(stage, stages, micro), stage, stages) for stage in range(stages)]
    assert stuck(queues) == []
    apart = [[[message] for batch in queue for message in batch] for queue in queues]
    assert bool(stuck(apart)) == (schedule == "one_f_one_b" and micro > 1)


def test_the_file_is_small_and_needs_nothing_of_ours():
    text = FILE.read_text()
    assert len(text.splitlines()) <= 150
    assert "ranklab" not in text
