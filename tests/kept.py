"""Ranks that one file of graders' tests hands on to the next: to start four takes longer than most of these files.

A worker of pytest has one notebook. What other tests start in it begins with :func:`end`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support import Notebook

NEW = "_of_a_new_rank = frozenset(globals())"
CLEAR = """
import torch.distributed as _dist
assert not _dist.is_initialized(), "the last test left a group"
for _name in set(globals()) - _of_a_new_rank:
    if not _name.startswith("_"):
        del globals()[_name]
"""
_kept: list[Notebook] = []


def hands_on(path: Path) -> bool:
    """Whether a file has the tests of a grader, which leaves its ranks as they were."""
    return path.name.startswith("test_check_")


def take(notebook: Notebook) -> None:
    """Let the notebook have four ranks without variables and without a group: those that were kept, or new ones."""
    if notebook in _kept:
        _kept.remove(notebook)
        return
    shown = notebook.run("world = ranklab.start(4)")
    assert shown.error is None, shown.error
    assert notebook.px(NEW).error is None


def keep(notebook: Notebook) -> None:
    """Keep the ranks for the next file, where they can be made as new; stop them otherwise."""
    if notebook.px(CLEAR).error is None:
        _kept.append(notebook)
    else:
        notebook.run("world.stop()")


def end() -> None:
    """Stop what was kept."""
    while _kept:
        _kept.pop().run("world.stop()")
