"""Count to 200 with all ranks. At SIGTERM save the count and leave; the next start goes on from there.

srun python count.py      (as count.sbatch does)
"""

import signal
import time
from pathlib import Path

import torch
import torch.distributed as dist
from anywhere import meet

told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))  # from now on: remember, and go on
_, device = meet()
saved = Path("count.txt")
step = int(saved.read_text()) if saved.exists() else 0
dist.barrier()  # nobody saves before all have read
if dist.get_rank() == 0:
    print(f"from step {step}", flush=True)
while step < 200:
    time.sleep(0.01)  # the work
    step += 1
    # The signal does not reach all ranks in the same step, so they agree.
    stop = torch.tensor(len(told), device=device)
    dist.all_reduce(stop)
    if stop:
        break
if dist.get_rank() == 0:
    saved.write_text(str(step))
    print(f"to step {step}", flush=True)
dist.destroy_process_group()
