"""One rank of a real all_reduce whose numbers are compared with the exact answer; the doctor starts some of them.

Run as ``python -m ranklab.rank.probe gloo`` with torchrun's variables set. Exit status 0 where every number is
right.
"""

from __future__ import annotations

import os
import sys

from ..system.backends import SHARED, named
from ..system.gpus import own_gpu

SIZES = (1, 1000, 1_000_000)


def main(backend: str) -> int:
    """Add up whole numbers of several sizes on all ranks.

    Args:
        backend: as ``init_process_group`` takes it.

    Returns:
        0, or 1 where a number is wrong or this process sees no GPU for itself.
    """
    import torch
    import torch.distributed as dist

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device(named(backend).device)
    if device.type != "cpu":
        gpu = own_gpu(rank, size, torch.cuda.device_count(), shared=SHARED in os.environ)
        if gpu is None:
            print("torch sees no GPU for this rank.", file=sys.stderr)
            return 1
        device = torch.device(device.type, gpu)
    dist.init_process_group(backend)
    for count in SIZES:
        numbers = torch.arange(count, device=device) * (rank + 1)
        dist.all_reduce(numbers)
        if not torch.equal(numbers, torch.arange(count, device=device) * (size * (size + 1) // 2)):
            print(f"all_reduce of {count} numbers came out wrong.", file=sys.stderr)
            return 1
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
