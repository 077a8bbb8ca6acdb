"""A job that goes on after a crash, equal to the last bit. The chapter *checkpoints* runs it under torchrun.

torchrun --standalone --nproc-per-node=4 snapshot.py
SNAPSHOT=job.pt KILL_AT=47 torchrun --standalone --nproc-per-node=4 snapshot.py   # again without KILL_AT: it goes on
"""

import os
import random
import signal

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def generators():
    """Return the state of every generator of this rank, in types that torch.load accepts."""
    name, keys, *rest = np.random.get_state()
    state = {"torch": torch.get_rng_state(), "python": random.getstate(), "numpy": (name, keys.tolist(), *rest)}
    return state | ({"cuda": torch.cuda.get_rng_state()} if torch.cuda.is_available() else {})


class Snapshot:
    """What a job needs to go on; every rank calls every method.

    Args:
        path: one file; rank 0 writes it, and has to find it again on whatever node it starts.
        parts: whatever has state_dict and load_state_dict; the bare model, not its DDP.
    """

    def __init__(self, path, **parts):
        self.path, self.parts, self.own = path, parts, None
        self.group = dist.new_group(backend="gloo")  # for what is not on a GPU

    def save(self, **place):
        """Write the parts, the place (numbers of your choice) and each rank's generators."""
        # Numbers of numpy and tensors become Python's own, for load() takes no others.
        place = {name: value.item() if hasattr(value, "item") else value for name, value in place.items()}
        each = [None] * dist.get_world_size()
        dist.all_gather_object(each, generators(), self.group)  # a collective: never below `if rank == 0`
        if dist.get_rank() == 0:
            parts = {name: part.state_dict() for name, part in self.parts.items()}
            with open(f"{self.path}.partial", "wb") as file:
                torch.save({"parts": parts, "generators": each, "place": place}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{self.path}.partial", self.path)
        dist.barrier(self.group)

    def load(self):
        """Restore the parts from what rank 0 read; return the place, or {} for a job that begins."""
        box = [torch.load(self.path, map_location="cpu") if self._exists() else None]
        dist.broadcast_object_list(box, src=0, group=self.group)
        saved = box[0] or {"parts": {}, "generators": [], "place": {}}
        for name, state in saved["parts"].items():
            self.parts[name].load_state_dict(state)
        if len(saved["generators"]) == dist.get_world_size():  # on another number of ranks there is none for each
            self.own = saved["generators"][dist.get_rank()]
        return saved["place"]

    def restore_generators(self):
        """Call it when the loader's iterator stands at the next batch; later calls do nothing."""
        own, self.own = self.own, None
        if own:
            torch.set_rng_state(own["torch"])
            random.setstate(own["python"])
            np.random.set_state(own["numpy"])
            if "cuda" in own and torch.cuda.is_available():
                torch.cuda.set_rng_state(own["cuda"])

    def _exists(self):
        return dist.get_rank() == 0 and os.path.exists(self.path)


class Noisy(TensorDataset):
    """Rows with noise that numpy draws, as an augmentation does."""

    def __getitem__(self, row):
        inputs, target = super().__getitem__(row)
        noise = torch.from_numpy(np.random.normal(0, 0.1, 64))
        return inputs + noise.float(), target


local_rank = int(os.environ["LOCAL_RANK"])
on_gpu = torch.cuda.device_count() >= int(os.environ["LOCAL_WORLD_SIZE"])
device = torch.device("cuda", local_rank) if on_gpu else torch.device("cpu")
if on_gpu:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if on_gpu else "gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()

numbers = torch.randn(480, 64, generator=torch.Generator().manual_seed(0))
rows = Noisy(numbers, numbers[:, :10].argmax(1))
sampler = DistributedSampler(rows)
seeds = torch.Generator()  # for workers, if you have any
if 16 % world_size:
    raise SystemExit("Each step takes 16 rows: choose a number of ranks that divides 16.")
loader = DataLoader(rows, 16 // world_size, sampler=sampler, generator=seeds)

torch.manual_seed(0)  # equal weights
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10)).to(device)
ddp = DDP(model, device_ids=[local_rank] if on_gpu else None)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2 * len(loader))
for seed in torch.manual_seed, np.random.seed, random.seed:
    seed(rank)  # unequal dropout and noise

model.eval()  # so that the next line changes nothing that a new job keeps
ddp(next(iter(loader))[0].to(device)).sum().backward()  # DDP notes the order of gradients now, not in the first step
optimizer.zero_grad()
model.train()
snapshot = Snapshot(os.environ.get("SNAPSHOT", "snapshot.pt"), model=model, optimizer=optimizer, scheduler=scheduler)
place = snapshot.load()
step, done = place.get("step", 0), place.get("batch", 0)
if rank == 0:
    print(f"goes on after step {step}" if step else "begins at step 0")
if step and snapshot.own is None:  # another number of ranks wrote it
    for seed in torch.manual_seed, np.random.seed, random.seed:
        seed(1000 * step + rank)

for epoch in range(place.get("epoch", 0), 2):
    sampler.set_epoch(epoch)
    seeds.manual_seed(1000 * epoch + rank)
    batches = iter(loader)
    for _ in range(done):
        next(batches)
    snapshot.restore_generators()
    for batch, (inputs, targets) in enumerate(batches, start=done + 1):
        loss = nn.functional.cross_entropy(ddp(inputs.to(device)), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 5 == 0:
            snapshot.save(step=step, epoch=epoch, batch=batch)
        if step == int(os.environ.get("KILL_AT", 0)) and rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
    done = 0

if rank == 0:
    torch.save(model.state_dict(), os.environ.get("WEIGHTS", "weights.pt"))
    print(f"{step} steps on {world_size} ranks")
dist.destroy_process_group()
