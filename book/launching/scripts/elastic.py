"""Train a small network so that torchrun may stop its ranks at any moment and start them again.

python elastic.py
TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 torchrun --standalone --nproc-per-node=2 --max-restarts=3 elastic.py --folder .
TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 torchrun --nnodes=2:3 --nproc-per-node=1 --max-restarts=3 \
    --rdzv-backend=c10d --rdzv-endpoint=computer2 --rdzv-id=drill elastic.py --folder /shared

All computers see the folder. It holds the snapshot, and one log per computer. Two options are for a drill: with --gate
the job stands still after the step that the file GATE names; with --kill-at 21 rank 1 is killed after step 21, once.
"""

import argparse
import json
import os
import signal
import socket
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record

ROWS = 512  # of all ranks together, in one step
EVERY = 8  # steps between two snapshots
LR = 0.05


class Job:
    """A network, the momentum of its parameters, and the number of steps done.

    The momentum is added by hand, since the first optimizer of torch.optim imports torch._dynamo (torch/_compile.py in
    torch 2.13), and each start of a rank would take nearly twice as long.
    """

    def __init__(self, device="cpu"):
        torch.manual_seed(0)  # equal weights on all ranks
        self.model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 4))
        self.model = self.model.to(device, torch.float64)
        self.momentum = [torch.zeros_like(parameter) for parameter in self.model.parameters()]
        self.done, self.device = 0, device

    def step(self, rank=0, world_size=1):
        """Do one step on this rank's share of the rows; return the loss of all rows."""
        # The number of the step chooses the rows, and the rank only chooses its share of them.
        draw = torch.Generator().manual_seed(self.done + 1)
        rows = torch.randn(ROWS, 16, generator=draw, dtype=torch.float64)
        mine = rows[rank::world_size].to(self.device)
        outputs, targets = self.model(mine), mine[:, :4].argmax(1)
        loss = nn.functional.cross_entropy(outputs, targets, reduction="sum") / ROWS
        self.model.zero_grad()
        loss.backward()
        loss = loss.detach()
        if world_size > 1:  # the shares add up, so the number of ranks changes nothing but rounding
            for tensor in [loss, *(parameter.grad for parameter in self.model.parameters())]:
                dist.all_reduce(tensor)
        with torch.no_grad():
            for parameter, momentum in zip(self.model.parameters(), self.momentum, strict=True):
                momentum.mul_(0.9).add_(parameter.grad)
                parameter.sub_(LR * momentum)
        self.done += 1
        return loss.item()

    def save(self, path):
        """Write a snapshot; the name always belongs to a complete file."""
        state = {"model": self.model.state_dict(), "momentum": self.momentum, "done": self.done}
        with open(f"{path}.partial", "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())  # a computer that loses its power keeps what is on its disk
        os.replace(f"{path}.partial", path)

    def load(self, path):
        """Go on from the snapshot, if there is one."""
        if os.path.exists(path):
            state = torch.load(path, map_location=self.device)
            self.model.load_state_dict(state["model"])
            self.momentum = state["momentum"]
            self.done = state["done"]


def agree(done, device="cpu"):
    """Raise an error on all ranks if they do not stand at the same step."""
    ends = torch.tensor([done, -done], device=device)
    dist.all_reduce(ends, op=dist.ReduceOp.MAX)
    last, first = ends[0].item(), -ends[1].item()
    if first != last:
        raise RuntimeError(f"ranks stand at steps {first} to {last}: does every rank see the snapshot?")


def note(folder, **line):
    """Append a line to this computer's log; ranks change their numbers, so the name is the computer's."""
    with open(folder / f"{socket.gethostname()}.log", "a") as log:
        log.write(json.dumps({"time": time.time()} | line) + "\n")


@record
def main():
    """Meet, load, train, save."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", default=".", type=Path)
    parser.add_argument("--steps", default=60, type=int)
    parser.add_argument("--gate", action="store_true")
    parser.add_argument("--kill-at", default=0, type=int)
    options = parser.parse_args()
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    restarts = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))
    device = "cpu"
    if torch.cuda.is_available():
        # The remainder: ranklab lets several ranks share a GPU. NCCL by itself refuses that.
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())
        torch.cuda.set_device(device)
    if world_size > 1:
        # Longer than any rank has to wait for another one, and short enough to notice a host that is gone.
        dist.init_process_group(dist.get_default_backend_for_device(device), timeout=timedelta(seconds=60))

    job, path = Job(device), options.folder / "snapshot.pt"
    job.load(path)
    if world_size > 1:
        agree(job.done, device)
    while job.done < options.steps:
        while options.gate and job.done >= int((options.folder / "GATE").read_text()):
            time.sleep(0.05)
        loss = job.step(rank, world_size)
        note(options.folder, step=job.done, loss=loss, rank=rank, world_size=world_size, restarts=restarts)
        if rank == 0 and (job.done % EVERY == 0 or job.done == options.steps):
            job.save(path)
        if (job.done, rank, restarts) == (options.kill_at, 1, 0):
            os.kill(os.getpid(), signal.SIGKILL)
    if rank == 0:
        print(f"{job.done} steps, {world_size} ranks at the end, {restarts} restarts")
    if world_size > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
