"""Start the work of same.py with torch.multiprocessing.spawn, which tells a process its index and nothing else.

python spawn.py
"""

import os
import socket

import same
import torch.multiprocessing as mp


def start(index, size, port):
    """Do in each process what a launcher would have done."""
    how = f"index {index}, {same.told()}"
    os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(index)
    os.environ["WORLD_SIZE"] = str(size)
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    same.work(how)


if __name__ == "__main__":
    # Any port that is free now; bound without listening, it stays free for rank 0.
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        mp.spawn(start, args=(2, holder.getsockname()[1]), nprocs=2)
