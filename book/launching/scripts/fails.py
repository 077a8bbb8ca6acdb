"""Fail on rank 1 while the other ranks are busy.

torchrun --standalone --nproc-per-node=2 fails.py
"""

import os
import time


def main():
    """Raise on rank 1, be busy on the others."""
    if os.environ["RANK"] == "1":
        raise ValueError("this batch is empty")
    time.sleep(60)


if __name__ == "__main__":
    main()
