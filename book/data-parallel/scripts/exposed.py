"""How much of DDP's exchange backward waits for, for two bucket caps. The chapter *buckets* runs it under torchrun.

torchrun --standalone --nproc-per-node=2 exposed.py
"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")

for cap in (2, 25):
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(12)]).to(device)
    ddp = DDP(model, bucket_cap_mb=cap, gradient_as_bucket_view=True)
    ddp._set_ddp_runtime_logging_sample_rate(1)  # by default only the first ten steps, then every hundredth
    for _ in range(8):  # the log, read after a step, tells of the step before
        ddp(torch.ones(256, 512, device=device)).sum().backward()
        ddp.zero_grad()
    log = ddp._get_ddp_logging_data()
    exposed = (log["backward_comm_time"] - log["backward_compute_comm_overlap_time"]) / 1e6
    least, most = torch.tensor(exposed, device=device), torch.tensor(exposed, device=device)
    dist.all_reduce(least, dist.ReduceOp.MIN)  # nearest to what the link costs; the rest is waiting for a rank
    dist.all_reduce(most, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(f"cap {cap} MiB: buckets of {log['rebuilt_bucket_sizes']} bytes, exposed {least:.1f} to {most:.1f} ms")
dist.destroy_process_group()
