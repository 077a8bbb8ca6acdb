"""The project's own run, in which rank 1 is killed once. The chapter *mingpt* runs it under torchrun.

TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 \
    torchrun --standalone --nproc-per-node=2 --max-restarts=1 mingpt_killed.py steps=100
"""

import os
import signal
import sys
from pathlib import Path

import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parent / "mingpt"))
import main
from trainer import Trainer

LAST = int(os.environ.get("LAST", "60"))  # the step after which rank 1 dies


class Killed(Trainer):
    """A trainer whose rank 1 is killed, as the system kills a process when memory runs out."""

    def note(self, loss):
        """Note the step, and die after the last one of the first start."""
        super().note(loss)
        if self.done == LAST and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            dist.barrier()  # rank 0 has written its line
            if self.rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            signal.pause()  # until torchrun ends rank 0: a footnote of the chapter says what could happen otherwise


if __name__ == "__main__":
    main.main(Killed)
