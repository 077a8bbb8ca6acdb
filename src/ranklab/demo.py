"""``python -m ranklab demo``: half a minute in a terminal that shows ranks, a hang, its report, and what is kept.

The cells are run by a plain IPython shell, as a notebook's kernel would run them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

SECONDS = 5  # how long the demo's hang waits for its report

START = f"""\
import ranklab

world = ranklab.start(4, deadline={SECONDS})"""
SUM = """\
%%px
import torch
import torch.distributed as dist

dist.init_process_group(dist.get_default_backend_for_device("cpu"))
x = torch.tensor([10 * dist.get_rank()])
dist.all_reduce(x)
print(x.item())"""
HANG = """\
%%px
if dist.get_rank() != 1:
    dist.all_reduce(torch.ones(1))"""
AFTER = """\
%%px
print("x is still", x.item())"""

# What is said before each cell.
SCENES = (
    ("Four processes start. Each is a rank: an interpreter of its own.", START),
    ("The ranks hold 0, 10, 20 and 30. all_reduce gives the sum to each of them.", SUM),
    (f"Rank 1 leaves the next sum out, and the others wait for it. The report comes after {SECONDS} seconds.", HANG),
    ("The ranks answer again, and they have kept their variables.", AFTER),
    ("Nothing is left running.", "world.stop()"),
)


def demo(say: Callable[[str], None] = print) -> int:
    """Show in a terminal what a cell looks like that runs on four ranks, and what a hang looks like.

    Args:
        say: takes each line of the narrator and of the cells; what the cells print goes to stdout.

    Returns:
        Exit status: 0 where the ranks did what the lines say.
    """
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        for number, (words, cell) in enumerate(SCENES, 1):
            say(f"\n{words}\n")
            for line in _prompted(number, cell):
                say(line)
            if shell.run_cell(cell).success == (cell == HANG):
                say("\nThis is not what was announced. `python -m ranklab doctor` looks at this machine.")
                return 1
    finally:
        shell.run_cell('if "world" in globals(): world.stop()')
    say("\nThe first chapter, book/ranks/your-first-ranks.ipynb, goes on from here.")
    return 0


def _prompted(number: int, cell: str) -> Iterator[str]:
    """The lines of a cell, as IPython shows them."""
    first = f"In [{number}]: "
    for place, line in enumerate(cell.split("\n")):
        yield f"{first if place == 0 else '...: '.rjust(len(first))}{line}"
