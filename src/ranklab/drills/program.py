"""The program of a drill: one training script, with the part that is at fault and two parts that are harmless.

A line of a fault may end with marks, which are taken off: ``#!`` is a line that is to blame, ``#?`` one in which the
guilty rank stands at the end. Pure: no torch, no process.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

STEPS = 6
ROWS = 4  # of a batch
BASE = '''
"""Fit a line: torchrun --nproc-per-node=4 program.py"""

import json
{imports}

import torch
import torch.distributed as dist

dist.init_process_group(dist.get_default_backend_for_device("cpu"))
rank, size = dist.get_rank(), dist.get_world_size()
part = json.load(open(f"part-{rank}.json"))
rows = torch.tensor(part["rows"])
print(f"rank {rank} of {size}: {len(rows)} rows")
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
{setup}


def average(parameters):
    for parameter in parameters:
        dist.all_reduce(parameter.grad)  #=sum
        parameter.grad /= size


for step, batch in enumerate(rows.split(4)):  #=loop
    {before}
    loss = (model(batch[:, :3]) - batch[:, 3:]).square().mean()
    model.zero_grad()
    {loss}
    loss.backward()
    average(model.parameters())  #=average
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.01 * parameter.grad
    {after}
    print(f"step {step}: loss {loss:.1f}")
    {then}
{end}
dist.barrier()  #=barrier
dist.destroy_process_group()
'''
SLOTS = ("imports", "setup", "before", "loss", "after", "then", "end")
MARKS = re.compile(r"  #[!?]+$", re.M)
# Parts that every rank runs alike. They move the lines of the fault.
HARMLESS: dict[str, dict[str, str]] = {
    "broadcast": {"setup": "for parameter in model.parameters():\n    dist.broadcast(parameter.data, src=0)"},
    "mean loss": {"after": "total = loss.detach().clone()\ndist.all_reduce(total)"},
    "clipping": {"after": "largest = max(p.grad.abs().max() for p in model.parameters())"},
    "checkpoint": {"then": 'if rank == 0 and step == 5:\n    torch.save(model.state_dict(), "model.pt")'},
    "count": {"end": 'print(f"rank {rank}: all steps done")'},
    "decay": {"before": "if step == 4:\n    batch = batch * 0.5  # these rows weigh less"},
}


@dataclass(frozen=True)
class Program:
    """A program with a fault in it.

    Attributes:
        text: as it stands in the file.
        guilty: the lines that may be to blame, by number from 1; empty where the fault comes from outside. Which of
            them are, :meth:`blamed` says.
        stands: the lines in which the guilty rank may stand at the end.
        named: lines that every program has: "sum" (the all_reduce of gradients), "average", "loop" and "barrier".
    """

    text: str
    guilty: tuple[int, ...]
    stands: tuple[int, ...]
    named: Mapping[str, int]

    @property
    def lines(self) -> list[str]:
        """The lines of the program."""
        return self.text.splitlines()

    def blamed(self, stack: Collection[int]) -> tuple[int, ...]:
        """Return the lines that are to blame, by number from 1; empty where the fault comes from outside.

        Args:
            stack: the lines in which the guilty rank stands. Of the lines in which it could have stood, only these
                count: it never ran those of another branch, and has not come to those further down.
        """
        return tuple(line for line in self.guilty if line not in self.stands or line in stack)

    def numbered(self) -> str:
        """Return the program with the numbers of its lines."""
        return "\n".join(f"{number:>3}  {line}".rstrip() for number, line in enumerate(self.lines, 1))


def write(fault: Mapping[str, str], stands: str, decoy: Mapping[str, str], seed: int) -> Program:
    """Put a fault and two harmless parts into the base.

    Args:
        fault: lines with marks, by slot.
        stands: where the guilty rank stands at the end: "own" (a line with ``#?``) or the name of a line of the base.
        decoy: lines of another fault, which is harmless with the data that all ranks get: something to suspect.
        seed: draws the other harmless part, and where they stand.
    """
    parts = {slot: [fault[slot]] if slot in fault else [] for slot in SLOTS}
    draw = random.Random(seed)
    unmarked = {slot: MARKS.sub("", text) for slot, text in decoy.items()}
    for harmless in HARMLESS[draw.choice(sorted(HARMLESS))], unmarked:
        for slot, text in harmless.items():
            parts[slot].insert(draw.randrange(len(parts[slot]) + 1), text)
    imports = {line for block in parts["imports"] for line in block.split("\n")}
    parts["imports"] = ["\n".join(sorted(imports))] if imports else []
    lines: list[str] = []
    guilty: list[int] = []
    own: list[int] = []
    named: dict[str, int] = {}
    for line in BASE.strip().splitlines():
        slot, indent = line.strip().strip("{}"), line[: len(line) - len(line.lstrip())]
        blocks = parts[slot] if line.strip() == f"{{{slot}}}" else None
        filled = [indent + each if each else "" for block in blocks or () for each in block.split("\n")]
        for each in [line] if blocks is None else filled:
            code, _, marks = each.rpartition("  #")
            if not marks or (marks.strip("!?") and marks[0] != "="):
                code, marks = each, ""
            lines.append(code)
            guilty += [len(lines)] * ("!" in marks)
            own += [len(lines)] * ("?" in marks)
            if marks.startswith("="):
                named[marks[1:]] = len(lines)
                guilty += [len(lines)] * (fault.get("guilty") == marks[1:])
    if stands in named:
        own = [named[stands]]
    return Program("\n".join(lines) + "\n", tuple(guilty), tuple(own), named)
