"""Train alone or on many ranks, on the CPU or on GPUs, one per rank. The chapter *from-spawn-to-torchrun* runs it.

python job.py
torchrun --standalone --nproc-per-node=2 job.py     # on GPUs, =gpu: one rank for each
"""

import os

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel as DDP


@record  # so that torchrun's report has the error
def main():
    """Meet, train, and say what came out."""
    alone = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    on_gpu = torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo", **alone)  # a group of one where nobody has launched us
    rank, size = dist.get_rank(), dist.get_world_size()

    rows = torch.linspace(-1, 1, 120, device=device).reshape(-1, 1)[rank::size]  # 120 divides by 1, 2, 3 and 4 ranks
    net = torch.nn.Linear(1, 1).to(device)
    torch.nn.init.zeros_(net.weight)  # before DDP, which gives all ranks rank 0's weights once
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(100):
        optimizer.zero_grad()
        (model(rows) - 3 * rows).square().mean().backward()
        optimizer.step()
    if rank == 0:
        print(f"slope {model.module.weight.item():.4f}, ranks {size}, backend {dist.get_backend()}")
    del model  # with gloo a DDP model that outlives the group can hang
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
