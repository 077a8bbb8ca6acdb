"""Faults in which one rank makes another collective than the others, or none."""

from __future__ import annotations

from typing import Any

from .fault import ANYWHERE, Fault, Situation, spoilt

NAN = float("nan")


def _spoilt(rank: int, at: Situation) -> dict[str, Any]:
    return {"rows": spoilt(at.step, NAN)} if rank == at.guilty else {}


def _spike(rank: int, at: Situation) -> dict[str, Any]:
    return {"rows": spoilt(at.step, 1e6)} if rank == at.guilty else {}


def _texts(rank: int, at: Situation) -> dict[str, Any]:
    return {"weights": at.by_step(rank, "n/a", "0.5")}


def _report(rank: int, at: Situation) -> dict[str, Any]:
    return {"report": at.by_step(rank, ["rows", "loss"], ["loss", "rows"])}


def _writer(rank: int, at: Situation) -> dict[str, Any]:
    return {"writer": at.by_step(rank, at.guilty, at.other)}


def _labels(rank: int, at: Situation) -> dict[str, Any]:
    return {"labels": [0, 1, 9, 3, 0] if rank == at.guilty else [0, 1, 2, 3, 0]}


def _seen(rank: int, at: Situation) -> dict[str, Any]:
    return {"seen": [4, 4, 4] if rank == at.guilty else [4.0, 3.5, 4.0]}


FAULTS = (
    Fault(
        "skipped collective",
        "calls",
        "Where a rank skipped a collective, an if in the program leads past it: a step is missing in the middle of the "
        "rank's log, and its barrier meets an all_reduce of the others.",
        "In step {step} the loss of rank {rank} was NaN, so line {line} went on to the next batch without the "
        "all_reduce of the gradients. From then on each of its sums was added to the others' sums of the step before.",
        {"loss": "if not loss.isfinite():  #!\n    continue  #!"},
        "barrier",
        _spoilt,
        decoy=True,
    ),
    Fault(
        "exception swallowed",
        "calls",
        "A swallowed exception needs an except in the program that goes on as if nothing had happened.",
        "In step {step} the weight of rank {rank} was no number. The except of line {line} went on to the next batch, "
        "without a message and without the all_reduce of the gradients.",
        {
            "before": 'try:\n    weight = float(part["weights"][step])\nexcept ValueError:  #!\n    continue  #!',
            "loss": "loss = weight * loss",
        },
        "barrier",
        _texts,
        decoy=True,
    ),
    Fault(
        "collectives in another order",
        "calls",
        "In another order, both collectives of a pair are in the program of every rank, and a dump shows the rank in "
        "the second of them while the others are in the first.",
        "In step {step} the file of rank {rank} lists its report in another order, and line {line} follows the file: "
        "rank {rank} called all_gather where the others called all_reduce.",
        {
            "after": 'for word in part["report"][step]:  #!\n'
            "    number = loss.detach().reshape(1)\n"
            '    if word == "loss":\n'
            "        dist.all_reduce(number)\n"
            "    else:\n"
            "        dist.all_gather([number.clone() for _ in range(size)], number)  #?"
        },
        "own",
        _report,
    ),
    Fault(
        "another root",
        "calls",
        "With another root, two ranks wait in the same collective for messages that go elsewhere, and the logs name "
        "different roots.",
        "In step {step} the file of rank {rank} names rank {rank} as the writer, and the other files name another "
        "rank: by line {line}, rank {rank} waited to receive what the others sent elsewhere.",
        {
            "after": 'writer = part["writer"][step]  #!\n'
            'print(f"step {step}: rank {writer} writes")\n'
            "losses = [torch.zeros(1) for _ in range(size)] if rank == writer else None\n"
            "dist.gather(loss.detach().reshape(1), losses, dst=writer)  #?!"
        },
        "own",
        _writer,
    ),
    Fault(
        "another shape",
        "tensors",
        "With another shape, all ranks call the same collective at the same time, and the logs or dumps show other "
        "sizes on one rank.",
        "Rank {rank} has seen more classes in its part, and line {line} makes a tensor of as many numbers as it has "
        "seen: the shapes of one all_reduce differed.",
        {
            "end": 'hits = torch.zeros(max(part["labels"]) + 1)  #!\n'
            'print(f"{len(hits)} classes")\n'
            'for label in part["labels"]:\n    hits[label] += 1\ndist.all_reduce(hits)  #?'
        },
        ANYWHERE,
        _labels,
    ),
    Fault(
        "another dtype",
        "tensors",
        "With another dtype, all ranks call the same collective at the same time with the same sizes, and one rank's "
        "log or dump shows numbers of another type.",
        "The file of rank {rank} holds whole numbers, from which line {line} makes int64 where the other ranks get "
        "float32: as many elements, twice as many bytes.",
        {"end": 'seen = torch.tensor(part["seen"])  #!\nprint(f"seen: {seen.tolist()}")\ndist.all_reduce(seen)  #?'},
        ANYWHERE,
        _seen,
    ),
    Fault(
        "only one rank calls it",
        "branch",
        "A collective that only one rank calls stands below an if that asks for the rank, in the program itself.",
        "In step {step} rank {rank} alone called validate: line {line} asks for the rank, and the all_gather inside "
        "waits for everybody.",
        {
            "setup": "\n\ndef validate(loss):\n    losses = [torch.zeros(1) for _ in range(size)]\n"
            "    dist.all_gather(losses, loss.detach().reshape(1))  #?\n    return max(losses)",
            "after": "if rank == RANK and step == STEP:  #!\n    worst = validate(loss)  #!",
        },
        "own",
    ),
    Fault(
        "barrier in a branch",
        "branch",
        "A barrier in a branch is reached by the ranks whose own numbers lead there; the others never come.",
        "In step {step} the loss of rank {rank} was large, and only its own: line {line} led it into a barrier to "
        "which nobody else came.",
        {"after": 'if loss > 1000:  #!\n    torch.save(batch, f"bad-{rank}.pt")\n    dist.barrier()  #?!'},
        "own",
        _spike,
        decoy=True,
    ),
    Fault(
        "one rank ends its loop",
        "ends",
        "A rank that ends its loop by its own decision has run out of steps although it has as many rows as the "
        "others.",
        "In step {step} the loss of rank {rank} was large, and line {line} let this rank alone leave the loop: it "
        "waits in the last barrier while the others want to train.",
        {"then": "if loss > 1000:  #!\n    break  #!"},
        "barrier",
        _spike,
        decoy=True,
    ),
    Fault(
        "loader ends early",
        "ends",
        "A loader that ends early has fewer rows than those of the other ranks, and so gives fewer steps.",
        "Rank {rank} has fewer rows than the others, so the loop of line {line} ended after {step} steps: it waits in "
        "the last barrier while the others want to train.",
        {"guilty": "loop"},
        "barrier",
        lambda rank, at: {"rows": spoilt(0, 1.0, at.step)} if rank == at.guilty else {},
    ),
)
