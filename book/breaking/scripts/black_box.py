"""A black box: a rank that makes no step for some time writes down where it is, and its latest collectives.

alive = watch("folder", seconds=600)    # after init_process_group
alive()                                 # in every step

All ranks have to see the folder; what they left in it before is removed. The chapter *hangs* runs it in stuck.py.
"""

import faulthandler
import os
import threading
import time
import traceback
from pathlib import Path

import torch
import torch.distributed as dist


def watch(folder, seconds):
    """Start the thread that watches; return the function that a rank calls in every step."""
    rank, last = dist.get_rank(), [time.monotonic()]
    os.makedirs(folder, exist_ok=True)
    for old in "stack", "part", "trace":
        Path(f"{folder}/{old}_{rank}").unlink(missing_ok=True)
    core = torch._C._distributed_c10d
    # "cuda:nccl", or "cpu:gloo,cuda:nccl": NCCL has a recorder of its own.
    recorder = core._dump_nccl_trace if "nccl" in dist.get_backend_config() else core._dump_fr_trace

    def look():
        while time.monotonic() - last[0] < seconds:
            time.sleep(0.1)
        try:
            with open(f"{folder}/stack_{rank}", "w") as file:
                faulthandler.dump_traceback(file)
            Path(f"{folder}/part_{rank}").write_bytes(recorder())
            os.rename(f"{folder}/part_{rank}", f"{folder}/trace_{rank}")
            for _ in range(100):  # up to ten seconds, until all ranks have written
                if len(list(Path(folder).glob("trace_*"))) == dist.get_world_size():
                    break
                time.sleep(0.1)
        except BaseException:
            traceback.print_exc()  # os._exit would leave it unsaid
        finally:
            os._exit(1)  # a hang does not end by itself: let torchrun end the job

    threading.Thread(target=look, daemon=True).start()

    def alive():
        last[0] = time.monotonic()

    return alive
