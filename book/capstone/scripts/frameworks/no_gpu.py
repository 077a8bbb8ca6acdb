"""Rank 1 fails as it starts, and rank 0 waits for it. The chapter *frameworks* runs it under two launchers.

torchrun --standalone --nproc-per-node=2 no_gpu.py with_torch
WORLD_SIZE=2 python no_gpu.py with_lightning
"""

import importlib
import os
import sys

if os.environ.get("LOCAL_RANK") == "1":
    raise RuntimeError("rank 1 finds no GPU")

from shared import begin  # rank 1 fails before this, which takes seconds

importlib.import_module(sys.argv[1]).train(*begin())
