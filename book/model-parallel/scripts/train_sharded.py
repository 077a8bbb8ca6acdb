"""Train with fully_shard, save, and go on with any number of ranks. The chapter *sharded* runs it under torchrun.

torchrun --standalone --nproc-per-node=2 train_sharded.py
"""

import os
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.distributed.checkpoint.state_dict as states
from residual import batch, network
from torch.distributed.fsdp import fully_shard

steps, folder = int(os.environ.get("STEPS", "10")), Path(os.environ.get("CHECKPOINTS", "checkpoints"))
local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

with torch.device("meta"):  # shapes without memory
    model = network()
for block in model:
    fully_shard(block)
fully_shard(model)
model.to_empty(device=device)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)  # after the sharding

saved = sorted(path.parent for path in folder.glob("step-*/.metadata"))  # dcp.save writes .metadata last
if saved:  # every rank reads its own part, however many ranks there are now
    weights, moments = states.get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments, "step": 0}
    dcp.load(state, checkpoint_id=saved[-1])
    states.set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    begin = state["step"]
    if begin >= steps:  # done: to write into that folder again would put its files at risk
        if rank == 0:
            print(f"{saved[-1].name} has {begin} steps already; STEPS is {steps}.")
        dist.destroy_process_group()
        raise SystemExit
else:  # rank 0 alone makes the whole model, once, and sends each rank its part
    options = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    states.set_model_state_dict(model, network().state_dict() if rank == 0 else {}, options=options)
    begin = 0

rows, goals = batch()
if len(rows) % world_size:  # the mean of the ranks' means would weigh some rows more
    raise SystemExit(f"{len(rows)} rows do not divide among {world_size} ranks.")
rows, goals = (part[rank::world_size].to(device) for part in (rows, goals))
for _ in range(begin, steps):
    loss = (model(rows) - goals).square().mean()
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # the norm over all ranks
    optimizer.step()

weights, moments = states.get_state_dict(model, optimizer)
state = {"model": weights, "optimizer": moments, "step": steps}
dcp.save(state, checkpoint_id=folder / f"step-{steps:06}")  # all ranks: each writes its own part
with torch.no_grad():
    loss = (model(rows) - goals).square().mean()
dist.all_reduce(loss, dist.ReduceOp.AVG)
if rank == 0:
    print(f"{world_size} ranks trained from step {begin} to step {steps}, loss {loss.item():.2f}")
dist.destroy_process_group()
