"""Graders against answers that readers from outside tried: wrong ones that once passed, right ones once refused."""

import runpy
from pathlib import Path

import pytest
from batch_files import right
from support import answer, changed

from ranklab import check


def right_answers(chapter):
    """The right answers with which a chapter's own tests begin, by name."""
    return runpy.run_path(str(Path(__file__).with_name(f"test_check_{chapter}.py")))


LOST, SAVE = map(right_answers("checkpoints").get, ("LOST", "SAVE"))
ORDER, SUSPECTS = right_answers("frameworks")["ORDER"], right_answers("hangs")["SUSPECTS"]
NEWEST, EVALUATE = right_answers("mingpt")["NEWEST"], right_answers("uneven_inputs")["EVALUATE"]
CLIPPED, SCALED = map(right_answers("mixed_precision").get, ("CLIPPED", "SCALED"))

STOPS_AT_ZERO = """
sums = []
while True:
    total = batches[len(sums)].sum() if len(sums) < len(batches) else torch.zeros(())
    dist.all_reduce(total)
    if total == 0: return sums
    sums.append(total.item())
"""
ENDLESS = """
steps = 0
while calls != 0:
    calls -= passes
    steps += 1 if split_batches else ranks
return steps
"""
SORTED = """
parts = [torch.empty_like(values) for _ in range(dist.get_world_size())]
dist.all_gather(parts, values)
return torch.cat(parts).unique()[:length]
"""
ONE_LEVEL = """
largest = lses.max()
weights = (lses - largest).exp()
total = weights.sum(0)
return (weights[..., None] * outs).sum(0) / total.clamp_min(1e-30)[:, None], total.log() + largest
"""
TWICE = """
counts = torch.bincount(rows, minlength=length)
dist.all_reduce(counts)
return (counts == 2).nonzero().flatten().tolist(), (counts == 0).nonzero().flatten().tolist()
"""
WHOLE_MS = """
busy = {ms for begin, end in work for ms in range(int(begin), int(end))}
return len({ms for begin, end in sums for ms in range(int(begin), int(end))} - busy)
"""
LAST_ERROR = """
import threading
outputs, errors, grad = [None] * len(replicas), [], torch.is_grad_enabled()
def run(i):
    torch.set_grad_enabled(grad)
    try: outputs[i] = replicas[i](chunks[i])
    except Exception as error: errors.append(error)
threads = [threading.Thread(target=run, args=(i,)) for i in range(len(replicas))]
for thread in threads: thread.start()
for thread in threads: thread.join()
if errors: raise errors[-1]
return outputs
"""
NEVER_AGAIN = """
import os
try:
    with open(path + ".new", "xb") as file: torch.save(state, file)
except FileExistsError: return
os.replace(path + ".new", path)
"""
FROM_ELSEWHERE = """
import os, tempfile
with tempfile.NamedTemporaryFile(delete=False) as file: torch.save(state, file)
os.replace(file.name, path)
"""
NEXT_DOOR = """
if len(seen) > len({gpu for gpus in seen for gpu in gpus}): raise RuntimeError("more processes than GPUs")
return local_rank % len(seen[local_rank])
"""
FLAT = """
size, rank = dist.get_world_size(), dist.get_rank()
if by % size == 0: return tensor
box = torch.empty(tensor.numel(), dtype=tensor.dtype)
work = dist.isend(tensor.contiguous(), (rank + by) % size)
dist.recv(box, (rank - by) % size)
work.wait()
return box
"""
OWN_PLACE = """
import os
if "RANK" in environ or "SLURM_PROCID" in environ:
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "12355"
    names = ("RANK", "WORLD_SIZE") if "RANK" in environ else ("SLURM_PROCID", "SLURM_NTASKS")
    rank, size = (int(environ[name]) for name in names)
    return {"init_method": "env://", "rank": rank, "world_size": size}
return {"init_method": "tcp://127.0.0.1:0", "rank": 0, "world_size": 1}
"""
FILLS_IN = """
if "RANK" in environ:
    return {"init_method": "env://", "rank": int(environ["RANK"]), "world_size": int(environ["WORLD_SIZE"])}
if "SLURM_PROCID" in environ:
    size = int(environ["SLURM_NTASKS"])
    return {"init_method": "env://", "rank": int(environ["SLURM_PROCID"]), "world_size": size}
environ["MASTER_ADDR"], environ["MASTER_PORT"] = "127.0.0.1", "0"
return {"init_method": "env://", "rank": 0, "world_size": 1}
"""
ALL_TREE = """
import math
ring = 2 * (ranks - 1) * alpha + 2 * size * beta
tree = 2 * math.ceil(math.log2(ranks)) * (alpha + size * beta)
return "tree" if tree < ring else "ring"
"""
EACH_ALONE = "for p in model.parameters(): torch.nn.utils.clip_grad_norm_([p], limit)"
CLIPS_ALL = "torch.nn.utils.clip_grad_norm_(model.parameters(), limit)"
WRONG = {
    "a sum of 0 ends the loop": (check.totals, "batches", STOPS_AT_ZERO, "A sum of 0 does not mean"),
    "messages are counted": (
        *(check.suspects, "traces, groups", changed(SUSPECTS, ' and not entry["is_p2p"]', "")),
        "With a send on one rank",
    ),
    "shapes alone are compared": (
        *(
            check.suspects,
            "traces, groups",
            changed(SUSPECTS, 'entry["profiling_name"], entry["input_sizes"]', '[entry["input_sizes"]]'),
        ),
        "in another operation",
    ),
    "a loop without end": (check.schedule_steps, "calls, ranks, passes, split_batches", ENDLESS, "did not come back"),
    "sorted": (check.in_order, "values, batch, length", SORTED, "With 2 ranks and 7 rows"),
    "one level for all queries": (check.merge_parts, "outs, lses", ONE_LEVEL, "near 1000 for one query"),
    "read exactly twice": (check.audit_rows, "rows, length", TWICE, "[1, 1, 1]"),
    "whole milliseconds": (check.exposed_time, "sums, work", WHOLE_MS, "everything that overlaps"),
    "not a number": (check.exposed_time, "sums, work", "return float('nan')", "your answer is nan"),
    "layers stay in evaluation mode": (
        *(check.evaluate, "model, batches", changed(EVALUATE, "model.train()", "model.training = True")),
        "still in evaluation mode",
    ),
    "weights stay frozen": (
        *(check.evaluate, "model, batches", changed(EVALUATE, "model.eval()", "model.eval().requires_grad_(False)")),
        "no longer ask for a gradient",
    ),
    "nothing is as good as step 0": (
        *(check.newest, "found", changed(NEWEST, "-1 if found is None", "0 if found is None")),
        "rank 1 found step 0",
    ),
    "the last error in time": (
        check.run_replicas,
        "replicas, chunks",
        LAST_ERROR,
        "the caller hears of the last in time",
    ),
    "no second save": (check.surviving_save, "state, path", NEVER_AGAIN, "the next save leaves the old state"),
    "a file of another folder": (check.surviving_save, "state, path", FROM_ELSEWHERE, "comes from another folder"),
    "neighbours share GPUs": (check.device_index, "local_rank, seen", NEXT_DOOR, "dealt to two sockets in turn"),
    "a matrix comes flat": (check.shift, "tensor, by", FLAT, "a matrix of 3 × 4"),
    "a place of its own": (check.how_to_meet, "environ", OWN_PLACE, "your answer changes them to localhost and 12355"),
    "a ring that sends too much": (check.choose, "ranks, size, alpha, beta", ALL_TREE, "right"),
    "each weight is clipped alone": (
        *(check.clipped_step, "model, optimizer, scaler, limit", changed(CLIPPED, CLIPS_ALL, EACH_ALONE)),
        "the weights move by",
    ),
    "a list is changed, and no weight": (
        *(check.scaled_step, "parameters, rate, scale, sharded"),
        changed(SCALED, "for p, part in zip(parameters, ", "for i, (p, part) in enumerate(zip(parameters, ").replace(
            "for p in parameters])):\n    p.data -= rate * part.view_as(p)",
            "for p in parameters]))):\n    parameters[i] = p - rate * part.view_as(p)",
        ),
        "They did not change",
    ),
}
RIGHT = {
    "the environment is filled in": (check.how_to_meet, "environ", FILLS_IN),
    "the logs are cut": (check.lost_item, "never, resumed", changed(LOST, "start = ", "del never[24:]\nstart = ")),
    "the order, as before": (check.in_order, "values, batch, length", ORDER),
    "saved beside the old file": (check.surviving_save, "state, path", SAVE),
    "numbers of NumPy": (check.exposed_time, "sums, work", """
import numpy
edges = sorted({edge for span in [*sums, *work] for edge in span})
covers = lambda spans, middle: any(begin <= middle < end for begin, end in spans)
pieces = [b - a for a, b in zip(edges, edges[1:]) if covers(sums, a) and not covers(work, a)]
return numpy.float64(numpy.sum(pieces))
"""),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_does_not_pass(notebook, capsys, name):
    grader, arguments, body, sentence = WRONG[name]
    grader(answer(arguments, body))
    told = capsys.readouterr().out
    assert told.startswith("Not yet.") and sentence in told, told


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(notebook, capsys, name):
    grader, arguments, body = RIGHT[name]
    grader(answer(arguments, body))
    told = capsys.readouterr().out
    assert told.startswith("Correct"), told


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("#SBATCH --nodes={} ", "#SBATCH -N{} "),
        ("srun bash", "srun -N{} bash"),
        ("hostnames $SLURM_JOB_NODELIST", "hostnames"),
        ("SLURM_JOB_ID", "SLURM_JOBID"),
        ("$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)", "$SLURMD_NODENAME"),
        ("--nnodes=", "--max-restarts 0 --nnodes="),
        (
            "--master-addr=$MASTER_ADDR --master-port=$MASTER_PORT",
            "--rdzv_id $SLURM_JOB_ID --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT",
        ),
    ],
)
def test_batch_files_in_other_words_are_right(capsys, old, new):
    def uneven(nodes):
        text, was = right(nodes), old.format(len(nodes))
        assert was in text
        return text.replace(was, new.format(len(nodes)))

    check.uneven(uneven)
    told = capsys.readouterr().out
    assert told.startswith("Correct"), told


def test_a_command_over_two_lines_is_read_as_a_shell_does(notebook, capsys):
    def node_commands(nodes):
        head, tail = f"torchrun --nnodes={len(nodes)}", "--master-addr=computer1 --master-port=5678 train.py"
        return [
            f"{head} --nproc-per-node={processes} --node-rank={number} \\\n  {tail}"
            for number, processes in enumerate(nodes)
        ]

    check.node_commands(node_commands)
    told = capsys.readouterr().out
    assert told.startswith("Correct"), told
