"""Say under which names this process finds its rank, its local rank, the number of ranks and the meeting point.

python told.py
torchrun --standalone --nproc-per-node=2 told.py
srun --ntasks=2 python told.py
"""

import os

NAMES = [
    ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "SUBMITIT_LOCAL_GLOBALID"],
    ["LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "SUBMITIT_LOCAL_LOCALID"],
    ["WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "SUBMITIT_LOCAL_NTASKS"],
    ["MASTER_ADDR"],
]


def line():
    """Return four names, and - for what nobody has set."""
    found = [next((name for name in names if name in os.environ), "-") for names in NAMES]
    return " ".join(found)


def say(*_):
    """Print the line; in one piece, for processes that share an output."""
    print(line() + "\n", end="")


if __name__ == "__main__":
    say()
