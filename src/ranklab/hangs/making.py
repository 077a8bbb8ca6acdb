"""Ranks that still make process groups while others wait for them in a collective. Pure."""

from __future__ import annotations

from ..layout import name_ranks
from .called import has
from .evidence import Case, Finding, pending, state_of, verb_of

# What a rank may give otherwise than the others, by the function that makes groups.
DIFFERS = {
    "torch.distributed.device_mesh.init_device_mesh": ("init_device_mesh", "shape"),
    "torch.distributed.new_group": ("new_group", "list of ranks"),
}


def left(case: Case) -> Finding | None:
    """Ranks that make groups with others which are not, or no longer, in that call.

    Those that wait for them in a collective have come out of it too early, or have never called it: the ones that
    still make groups are seldom to blame.
    """
    if case.outside:
        return None  # to which the cell was not sent: they are to blame
    for call, (name, differs) in DIFFERS.items():
        makers = [entry for entry in case.stuck if state_of(entry).call == call]
        awaited = any(
            maker.rank in state_of(entry).groups.get(waiting.group, []) and not has(maker, waiting)
            for entry in case.stuck
            if entry not in makers and (waiting := pending(entry)) is not None
            for maker in makers
        )
        if not awaited:
            continue
        still = [entry.rank for entry in makers]
        others = [entry.rank for entry in case.outcomes if entry.rank not in still]
        return Finding(
            f"{name_ranks(still)} still {verb_of(still, 'make')} groups in {name}, and {name_ranks(others)} "
            f"{'is' if len(others) == 1 else 'are'} not in it.",
            f"a rank has given {name} another {differs} than the others, or has not called it.",
            f"call {name} on every rank, with the same {differs}.",
        )
    return None
