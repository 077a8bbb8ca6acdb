"""Fail on rank 0 the first time that torchrun starts the ranks.

torchrun --standalone --nproc-per-node=2 --max-restarts=1 stumbles.py
"""

import os
import tempfile
import time
from pathlib import Path

attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), os.environ["RANK"]
print("start number", attempt, flush=True)
# By this file rank 1 says that it has started; each job has an id of its own.
started = Path(tempfile.gettempdir(), f"started-{os.environ['TORCHELASTIC_RUN_ID']}")
if attempt == 0 and rank == "1":
    started.touch()
if attempt == 0 and rank == "0":
    while not started.exists():
        time.sleep(0.05)
    started.unlink()
    raise ConnectionError("the file server does not answer")
