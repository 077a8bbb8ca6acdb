"""Two interpreters that start with different environments: some variables are read when torch is imported."""

import os
import runpy
import sys
from pathlib import Path

from tests.messages import stage

from . import place

COMPARE = Path(__file__).parents[3] / "book/launching/scripts/same_environment.py"

TOLD = """
import os

import torch
import torch.distributed as dist

rank = os.environ["RANK"]
dist.init_process_group("gloo")
numbers = torch.arange(1_000_003, dtype=torch.float32).sin()
mine = {
    "threads": torch.get_num_threads(),
    "the sum of the same numbers": numbers.sum().item().hex(),
    "the order of a set": list({"weight", "bias", "scale"}),
    "level": str(dist.get_debug_level()),
}
try:
    torch.ones(2) @ torch.ones(3)
except RuntimeError as error:
    mine["an error"] = f"{len(str(error).splitlines()) > 1}"
told = [None, None]
dist.all_gather_object(told, mine)
if rank == "0":
    print("threads:", told[0]["threads"], "and", told[1]["threads"])
    for name in ("the sum of the same numbers", "the order of a set"):
        print(name, "is equal:", told[0][name] == told[1][name])
    print("C++ frames in an error:", told[0]["an error"], "and", told[1]["an error"])
    print("debug level:", told[0]["level"], "and", told[1]["level"])
dist.destroy_process_group()
"""


@stage.program(2)
def fresh(rank):
    place(
        rank,
        OMP_NUM_THREADS=("1", "2")[rank],
        MKL_NUM_THREADS=None,
        PYTHONHASHSEED=("0", "1")[rank],
        TORCH_CPP_LOG_LEVEL=("WARNING", "INFO")[rank],
        TORCH_SHOW_CPP_STACKTRACES=("0", "1")[rank],
        TORCH_DISTRIBUTED_DEBUG=("OFF", "INFO")[rank],
        TORCH_DISABLE_ADDR2LINE="1",
    )
    os.execv(sys.executable, [sys.executable, "-c", TOLD])


@stage.program()
def mkl_wins(rank):
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2"}
    os.execv(sys.executable, [sys.executable, "-c", "import torch; print('threads:', torch.get_num_threads())"])


@stage.program(2)
def compared(rank):
    for name in [name for name in os.environ if name.startswith(("CUDA", "MKL", "NCCL", "OMP", "PYT", "TORCH_"))]:
        del os.environ[name]
    place(rank, OMP_NUM_THREADS=("1", "2")[rank])
    runpy.run_path(str(COMPARE), run_name="__main__")
