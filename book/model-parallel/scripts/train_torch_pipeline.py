"""torch's pipeline that trains, with the schedule that you name. The chapter *pipeline-schedules* runs it.

torchrun --standalone --nproc-per-node=4 train_torch_pipeline.py Interleaved1F1B
"""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class

local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo", device_id=device if on_gpu else None)
dist.barrier()  # all ranks together, before the first pair talks
rank, ranks = dist.get_rank(), dist.get_world_size()

schedule_class = get_schedule_class(sys.argv[1])
chunks = 2 if issubclass(schedule_class, PipelineScheduleMulti) else 1
stages = []
for number in range(rank, chunks * ranks, ranks):  # rank 0 has stages 0 and 4, rank 1 has 1 and 5
    torch.manual_seed(number)
    module = torch.nn.Linear(32, 32).to(device)
    stages.append(PipelineStage(module, number, chunks * ranks, device))
loss = torch.nn.functional.mse_loss
schedule = schedule_class(stages if chunks > 1 else stages[0], n_microbatches=8, loss_fn=loss)
parameters = [p for stage in stages for p in stage.submod.parameters()]
optimizer = torch.optim.Adam(parameters, lr=0.01)
batch = torch.randn(64, 32, generator=torch.Generator().manual_seed(0)).to(device)

means = []
for _ in range(50):
    optimizer.zero_grad()  # in every step: torch divides whatever stands in .grad
    losses, rows = [], [batch] if rank == 0 else []
    schedule.step(*rows, target=batch.sin() if rank == ranks - 1 else None, losses=losses)
    if losses:
        means.append(sum(losses).item() / len(losses))
    optimizer.step()

if means:
    print(f"{sys.argv[1]}, {chunks * ranks} stages: the loss fell: {means[-1] < means[0]}")
dist.destroy_process_group()
