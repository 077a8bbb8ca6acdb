"""One step around a ring: every rank gets its left neighbour's tensor, whatever its length.

torchrun --standalone --nproc-per-node=4 ring_step.py
"""

import torch
import torch.distributed as dist


def exchange(give, take):
    """Send one tensor to the right and receive one from the left, both at once."""
    rank, size = dist.get_rank(), dist.get_world_size()
    send = dist.P2POp(dist.isend, give, (rank + 1) % size)
    receive = dist.P2POp(dist.irecv, take, (rank - 1) % size)
    for work in dist.batch_isend_irecv([send, receive]):
        work.wait()


def from_the_left(tensor):
    """Return the left neighbour's tensor. Every rank calls it, with the same dtype and one dimension."""
    if dist.get_world_size() == 1:
        return tensor.clone()
    tensor = tensor.contiguous()
    length = torch.tensor([len(tensor)], device=tensor.device)
    theirs = torch.empty_like(length)
    exchange(length, theirs)
    box = tensor.new_empty(theirs.item())
    exchange(tensor, box)
    return box


# On GPUs, with `import os`: device = torch.device("cuda", int(os.environ["LOCAL_RANK"])),
# then torch.cuda.set_device(device) and dist.init_process_group("nccl", device_id=device).
device = torch.device("cpu")
dist.init_process_group("gloo")
rank = dist.get_rank()
mine = torch.full((rank + 1,), rank, device=device)  # rank 0 has one number, rank 1 has two
print(f"rank {rank} got {from_the_left(mine).tolist()}\n", end="")
dist.destroy_process_group()
