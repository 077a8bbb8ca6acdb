"""List the variables of the environment in which the ranks differ.

torchrun --nproc-per-node=2 same_environment.py
"""

import os

import torch.distributed as dist

PREFIXES = ("CUDA", "CUBLAS", "GLOO", "MKL", "NCCL", "OMP", "PYT", "TORCH_")


def differing(prefixes=PREFIXES):
    """Return the variables in which ranks differ, with the value of each rank."""
    names = [name for name in os.environ if name.startswith(prefixes)]
    mine = {name: os.environ[name] for name in names}
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, mine)
    names = sorted({name for rank in ranks for name in rank})
    values = {name: [rank.get(name) for rank in ranks] for name in names}
    return {name: values[name] for name in names if len(set(values[name])) > 1}


if __name__ == "__main__":
    dist.init_process_group("gloo")
    found = differing()
    if dist.get_rank() == 0:
        for name, each in found.items():
            print(name, each)
        if not found:
            print("All ranks have the same values.")
    dist.destroy_process_group()
