"""Save again and again, and be killed at a random moment. The chapter *checkpoints* runs it.

python killed.py 50

A child process writes snapshots in an endless loop, its parent kills it with SIGKILL and looks at the file. Each of the
two ways of writing is killed as often as the argument says.
"""

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch


def in_place(state, path):
    """Overwrite the only snapshot."""
    torch.save(state, path)


def beside(state, path):
    """Write another file, and put it into the place of the snapshot when it is complete."""
    partial = f"{path}.partial"
    with open(partial, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())  # against a power cut: the bytes are on the disk before the name is
    os.replace(partial, path)


def snapshot(step):
    """Two megabytes that say which step they belong to."""
    return {"step": step, "weights": torch.full((500_000,), float(step))}


def write_until_killed(save, path, told):
    """Runs in the child: after each snapshot one byte says that it was complete."""
    for step in range(1, 256):
        save(snapshot(step), path)
        os.write(told, bytes([step]))


def kill_once(save, path):
    """Return whether what a killed writer left can be loaded, and is no older than the last complete snapshot."""
    save(snapshot(0), path)
    listen, told = os.pipe()
    child = os.fork()
    if child == 0:
        write_until_killed(save, path, told)
        os._exit(0)
    os.close(told)
    os.read(listen, 1)  # it is writing
    time.sleep(random.uniform(0, 0.05))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    complete = max(os.read(listen, 256), default=1)
    os.close(listen)
    try:
        found = torch.load(path)
    except Exception:
        return False
    return found["step"] >= complete and bool((found["weights"] == found["step"]).all())


if __name__ == "__main__":
    torch.set_num_threads(1)  # a process that forks has one thread
    kills = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        for save in in_place, beside:
            whole = sum(kill_once(save, Path(folder, f"{save.__name__}.pt")) for _ in range(kills))
            print(f"{save.__name__}: {whole} of {kills} leave a snapshot that loads")
