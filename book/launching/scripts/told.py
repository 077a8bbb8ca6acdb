"""Say under which names this process finds its rank, its local rank, the number of ranks and the meeting point.

python told.py
torchrun --standalone --nproc-per-node=2 told.py
srun --ntasks=2 python told.py
"""

import os

NAMES = [
    ["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"],
    ["LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"],
    ["WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"],
    ["MASTER_ADDR"],
]


def say(*_):
    """Print four names, and - for what nobody has set."""
    found = [next((name for name in names if name in os.environ), "-") for names in NAMES]
    print(" ".join(found) + "\n", end="")


if __name__ == "__main__":
    say()
