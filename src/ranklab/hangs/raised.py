"""Ranks that raised an error: the headline, what the error means, and which errors only follow from another rank's.

A new hint is one line in :data:`HINTS`, or in the record of its backend in :mod:`ranklab.system.backends`. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..layout import name_ranks
from ..outcome import RankOutcome
from ..system.backends import BACKENDS, Hint, anonymous
from . import partners
from .evidence import pending

LONG = 200  # characters; DDP's errors are paragraphs, and the panel has the whole of them below its first line
NO_CUDA = "this torch was built without CUDA, so there is no GPU for it."
NO_GPU = "this rank sees no GPU."
ANY_DEVICE = "write device = ranklab.device() and use it everywhere: a GPU of the rank's own, or the CPU."
# What torch says where it was built for CPUs alone, and where it was built for GPUs and finds none.
WITHOUT_CUDA = (
    "'torch._C' has no attribute '_cuda_",
    "Torch not compiled with CUDA enabled",
    "Tried to instantiate dummy base class",
    "requires CUDA support",
)
WITHOUT_GPU = (
    "No CUDA GPUs are available",
    "Found no NVIDIA driver",
    "Cannot access accelerator device when none is available",
)
HINTS = (
    Hint(
        "initialize the default process group twice",
        "a group exists already.",
        "call dist.destroy_process_group() first, or only `if not dist.is_initialized()`.",
    ),
    Hint(
        "Default process group has not been initialized",
        "this rank has no process group.",
        "call dist.init_process_group() before it, on every rank.",
    ),
    Hint(
        "can't allocate memory",
        "this process may not have that much memory.",
        "use a smaller tensor, batch or model, or fewer ranks.",
    ),
    Hint(
        "out of memory",
        "the device is full.",
        "use a smaller batch or model, or see who else uses it: nvidia-smi.",
    ),
    Hint("has no attribute '_cuda_setDevice'", NO_CUDA, f"leave torch.cuda.set_device out, and {ANY_DEVICE}"),
    *(Hint(part, NO_CUDA, ANY_DEVICE) for part in WITHOUT_CUDA),
    *(Hint(part, NO_GPU, ANY_DEVICE) for part in WITHOUT_GPU),
    Hint(
        "the current compilation's accelerator support",
        NO_CUDA,
        'give a device of the GPU only where there is one: device_id=device if device.type == "cuda" else None.',
    ),
    *(hint for backend in BACKENDS for hint in backend.hints),
)


def explain(raised: Sequence[RankOutcome]) -> tuple[str, str, str]:
    """Return headline, cause and fix of the errors that some ranks raised, the first of them first."""
    first, message = raised[0], first_sentence(raised[0].error)
    same = name_ranks([entry.rank for entry in raised if first_sentence(entry.error) == message])
    if first.error.startswith("SystemExit"):
        status = message.partition(": ")[2] or "0"
        return f"{same} called sys.exit({status}): a program would end here; a rank stays.", "", ""
    hints = (*partners.HINTS, *HINTS) if partners.lost(first, overdue=True) else HINTS
    hint = next((hint for hint in hints if hint.part in first.error), Hint("", "", ""))
    return f"{same} raised {message}", hint.cause, hint.fix


def first_sentence(error: str) -> str:
    """Return the first line of an error, and of a long line its first sentence."""
    line = anonymous(error.splitlines()[0])
    return line if len(line) <= LONG else re.split(r"(?<=[.!?]) ", line, maxsplit=1)[0]


def mark_consequences(outcomes: Sequence[RankOutcome], died: Sequence[RankOutcome]) -> None:
    """Tell a rank that only lost its partner from the one that is the cause.

    Args:
        outcomes: of all ranks; a rank that lost its partner becomes "lost".
        died: those whose processes have ended.
    """
    errors = [entry for entry in outcomes if entry.state == "raised"]
    lost = list(filter(partners.lost, errors))
    if not died and len(lost) == len(errors):
        return  # nobody else is to blame: see partners.explain()
    awaited = f"{name_ranks([entry.rank for entry in died])}, which died" if died else "a rank that raised an error"
    for entry in lost:
        entry.traceback = [line for line in entry.traceback[:-1] if not line.startswith("in ")]
    # Whether a rank was told of the death before we freed it is a matter of microseconds.
    waiting = [entry for entry in outcomes if died and entry.state == "freed" and pending(entry)]
    for entry in [*lost, *waiting]:
        entry.state, entry.error, entry.note = "lost", "", f"waited for {awaited}"
