"""The two programs that *gpus* measures: each goes from nothing to the first all_reduce of n ranks on GPUs, then ends.

Run as ``python tests/benchmarks/gpu_contenders.py ranklab n``, or under torchrun with another name. The last line of
the output is JSON: seconds since the benchmark asked for the program until every rank had the sum.
"""

from __future__ import annotations

import os
import sys

from contenders import say, since

BACKEND = "nccl"
SHARED = "BENCH_SHARED"  # set where the ranks have to share GPUs
ALL_REDUCE = f"""
import os, torch, torch.distributed as dist
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
torch.cuda.set_device(device)
dist.init_process_group("{BACKEND}", device_id=device)
total = torch.ones(1, device=device)
dist.all_reduce(total)
assert total.item() == dist.get_world_size()  # item() waits for the GPU
"""


def share(rank: str) -> dict[str, str]:
    """Return what lets NCCL put a rank on a GPU that others use: for NCCL the rank is on a host of its own.

    Written out and not asked of ranklab, for torchrun's ranks should pay for nothing of ours.
    """
    return {"NCCL_HOSTID": f"rank{rank}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}


def ranklab_world(size: int) -> None:
    """Start a world, reduce, stop."""
    import ranklab

    with ranklab.start(size, backend=BACKEND) as world:
        world.view(range(size)).execute(ALL_REDUCE, block=False).get()
        first = since()
    say(first=first)


def one_of_torchruns() -> None:
    """Be a rank under torchrun. Rank 0 tells the time: it has no sum before all have called."""
    if SHARED in os.environ:
        os.environ.update(share(os.environ["RANK"]))
    names: dict = {}
    exec(ALL_REDUCE, names)
    if os.environ["RANK"] == "0":
        say(first=since())
    names["dist"].barrier()
    names["dist"].destroy_process_group()


if __name__ == "__main__":
    if sys.argv[1] == "ranklab":
        ranklab_world(int(sys.argv[2]))
    else:
        one_of_torchruns()
