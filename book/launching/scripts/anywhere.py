"""Say who this rank is and add up all ranks, whoever has started them: torchrun, srun, or nobody.

python anywhere.py
torchrun --standalone --nproc-per-node=2 anywhere.py
sbatch train.sbatch anywhere.py
srun --ntasks=4 python anywhere.py      (inside a job that exports MASTER_ADDR and MASTER_PORT)
"""

import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist

SRUN = {"RANK": "PROCID", "LOCAL_RANK": "LOCALID", "WORLD_SIZE": "NTASKS"}


def meet():
    """Join the other ranks; return who launched us, and our device."""
    alone = {}
    if "RANK" in os.environ:
        launcher = "torchrun"
    elif "SLURM_STEP_ID" in os.environ:
        launcher = "srun"
        for name, theirs in SRUN.items():
            os.environ[name] = os.environ[f"SLURM_{theirs}"]
    else:
        launcher = "nobody"
        alone = {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    device = torch.device("cpu")
    if torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1)):  # a GPU for each rank here, or none
        number = int(os.environ.get("LOCAL_RANK", "0"))
        if torch.cuda.device_count() == 1:  # Slurm may show each task one GPU
            number = 0
        device = torch.device("cuda", number)
        torch.cuda.set_device(device)
    backend = dist.get_default_backend_for_device(device)
    dist.init_process_group(backend, timeout=timedelta(minutes=2), **alone)
    return launcher, device


if __name__ == "__main__":
    launcher, device = meet()
    rank, host = dist.get_rank(), socket.gethostname()
    total = torch.tensor(rank, device=device)
    dist.all_reduce(total)
    # One write per line: ranks that share an output would mix their lines otherwise.
    who = f"rank {rank} of {dist.get_world_size()} by {launcher}"
    print(f"{who} on {host}: sum {total.item()}\n", end="")
    dist.destroy_process_group()
