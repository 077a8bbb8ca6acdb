"""Fail like fails.py, and leave a record of the error for torchrun.

torchrun --standalone --nproc-per-node=2 fails_recorded.py
"""

import fails
from torch.distributed.elastic.multiprocessing.errors import record

if __name__ == "__main__":
    record(fails.main)()
