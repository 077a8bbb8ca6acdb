"""What torchrun gives to its workers, and which variables it reads itself. The workers import no torch."""

import os
from pathlib import Path

from torch.distributed import run

from tests.messages import stage

ENVIRONMENT = """
import os

before = os.environ["BEFORE"].split()
if os.environ["RANK"] == "1":
    print("\\n".join(f"{name}={value}" for name, value in sorted(os.environ.items()) if name not in before))
"""

# Both workers write to one pipe, and torchrun starts them with -u: print would write each word by itself.
STORE = """
import os

os.write(1, f"agent store: {os.environ['TORCHELASTIC_USE_AGENT_STORE']}\\n".encode())
"""


def torchrun(*options, worker='print("ready")', **variables):
    """Be the agent of two workers.

    Args:
        options: of torchrun.
        worker: the program.
        variables: of torchrun's own environment.
    """
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "OMP_NUM_THREADS"):
        os.environ.pop(name, None)
    os.environ |= {"PET_NPROC_PER_NODE": "2", **variables}
    os.environ["BEFORE"] = " ".join(["BEFORE", *os.environ])
    Path("worker.py").write_text(worker)
    run.main(["--standalone", *options, "worker.py"])


@stage.program()
def given(rank):
    torchrun(worker=ENVIRONMENT)


@stage.program()
def prefix(rank):
    torchrun("--tee=3", TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE="rank ${rank}: ")


@stage.program()
def option_beats_variable(rank):
    torchrun("--nproc-per-node=1", worker='import os; print("workers:", os.environ["WORLD_SIZE"])')


@stage.program()
def other_python(rank):
    Path("python").write_text('#!/bin/sh\necho "instead of Python: $*"\n')
    Path("python").chmod(0o755)
    torchrun(PYTHON_EXEC="./python")


@stage.program()
def separate_store(rank):
    torchrun(worker=STORE, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
