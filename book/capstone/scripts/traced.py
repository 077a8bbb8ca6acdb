"""Record three training steps of a small GPT on every rank, and merge the traces. The chapter *profiling* reads them.

FOLDER=traces torchrun --standalone --nproc-per-node=2 traced.py
"""

import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.profiler import profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "mingpt")]
from merge_traces import write_merged  # noqa: E402
from model import GPT, GPTConfig, loss_of  # noqa: E402

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler prints nothing itself


class Rows(Dataset):
    """Random characters; ``pause`` is how many seconds a slow disk needs for a row."""

    def __init__(self, pause=0):
        self.rows, self.pause = torch.randint(96, (160, 65)), pause

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, place):
        time.sleep(self.pause)
        return self.rows[place, :-1], self.rows[place, 1:]


def network():
    """Return the GPT, with equal weights on all ranks."""
    torch.manual_seed(0)
    return GPT(GPTConfig(vocabulary=96))


def step(model, batches, optimizer, slow=0):
    """Make one step, in parts that have names."""
    device = next(model.parameters()).device
    with record_function("load"):
        inputs, targets = (each.to(device) for each in next(batches))
    with record_function("forward"):
        loss = loss_of(model(inputs), targets)
        time.sleep(slow)
    with record_function("backward"):
        loss.backward()
    with record_function("optimizer"):
        optimizer.step()
        optimizer.zero_grad()
    if device.type == "cuda":
        torch.cuda.synchronize()  # its kernels are recorded with the step that began them


def record(path, model, data, slow=0, **options):
    """Make five steps under a schedule, and write a trace."""

    def save(recorder):
        recorder.export_chrome_trace(path)

    batches = iter(DataLoader(data, batch_size=32))
    optimizer = torch.optim.AdamW(model.parameters())
    plan = schedule(wait=1, warmup=1, active=3, repeat=1)
    with profile(schedule=plan, on_trace_ready=save, **options) as recorder:
        for _ in range(5):
            step(model, batches, optimizer, slow)
            recorder.step()


def main(folder):
    """Record on all ranks; rank 0 merges."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    device = torch.device("cpu")
    if torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"]):
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group(dist.get_default_backend_for_device(device))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    # No name keeps the model: with gloo its destructor may hang after the group has gone.
    record(f"{folder}/rank{rank}.json", DDP(network().to(device), bucket_cap_mb=0.1), Rows(), with_stack=True)
    dist.barrier()  # until all files are there
    if rank == 0:
        write_merged(f"{folder}/merged.json", [f"{folder}/rank{r}.json" for r in range(ranks)])
        print(f"{ranks} traces in merged.json")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(os.environ.get("FOLDER", "."))
