"""A script that used nn.DataParallel, moved to DDP. The chapter *data-parallel-and-the-gil* runs it under torchrun.

OLD=old.pt NEW=new.pt torchrun --standalone --nproc-per-node=2 from_data_parallel.py
"""

import os

import torch
import torch.distributed as dist
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")

model = torch.nn.Linear(8, 1)
state = torch.load(os.environ["OLD"], map_location="cpu")  # saved by nn.DataParallel: all names begin with `module.`
consume_prefix_in_state_dict_if_present(state, "module.")
model.load_state_dict(state)
model = DDP(model.to(device), device_ids=[local_rank] if on_gpu else None)


def worst_error():
    """Return how far the model is from the targets, at most."""
    with torch.no_grad():
        return (model.module(rows.to(device)).cpu() - targets).abs().max().item()


rows = torch.randn(640, 8, generator=torch.Generator().manual_seed(0))
targets = rows.sum(1, keepdim=True)
data = TensorDataset(rows, targets)
before = worst_error()
sampler = DistributedSampler(data)  # each rank its share; shuffles, so the loader does not
loader = DataLoader(data, batch_size=64 // dist.get_world_size(), sampler=sampler)  # 64 rows per step
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for epoch in range(10):
    sampler.set_epoch(epoch)  # another order in each epoch
    for inputs, goal in loader:
        loss = (model(inputs.to(device)) - goal.to(device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), os.environ["NEW"])
    print(f"{dist.get_world_size()} ranks, {loader.batch_size} rows each")
    print(f"error {before:.3f} before, below 0.01 after: {worst_error() < 0.01}")
dist.destroy_process_group()
