"""torchrun, mp.spawn and what a program is started with."""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.launch
import torch.distributed.run
import torch.multiprocessing as mp

from .. import stage

ONCE = ["--standalone", "--nproc-per-node=2", "--monitor-interval=0.1"]


def torchrun(script, *arguments, launch=torch.distributed.run):
    """Be torchrun, with the text of a program."""
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        os.environ.pop(name, None)
    Path("train.py").write_text(script)
    sys.argv[0] = "torchrun"
    launch.main([*arguments])


@stage.program()
def raises(rank):
    torchrun("import os\nif os.environ['RANK'] == '1':\n    raise ValueError('no data')", *ONCE, "train.py")


@stage.program()
def killed(rank):
    script = (
        "import os, signal, time\n"
        "if os.environ['RANK'] == '1':\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "time.sleep(30)"
    )
    torchrun(script, *ONCE, "train.py")


@stage.program()
def half_written(rank):
    script = "import os\nopen(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').close()\nraise SystemExit(1)"
    torchrun(script, "--standalone", "train.py")


@stage.program()
def segfault(rank):
    torchrun("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "--standalone", "train.py")


@stage.program()
def aborted(rank):
    torchrun("import os\nos.abort()", "--standalone", "train.py")


@stage.program()
def terminated(rank):
    stop = "import os, signal, time\nos.kill(os.getppid(), signal.SIGTERM)\ntime.sleep(30)"
    torchrun(stop, "--standalone", "train.py")


@stage.program()
def no_such_file(rank):
    torchrun("", "--standalone", "trian.py")


@stage.program()
def no_program(rank):
    torchrun("", "--nproc-per-node=2")


@stage.program()
def flag_before_the_program(rank):
    torchrun("", "--standalone", "--epochs=3", "train.py")


@stage.program()
def misspelt_number(rank):
    torchrun("", "--standalone", "--nproc-per-node=two", "train.py")


@stage.program()
def as_many_as_gpus(rank):
    torchrun("", "--standalone", "--nproc-per-node=gpu", "train.py")


@stage.program()
def local_rank_argument(rank):
    script = "import argparse\nparser = argparse.ArgumentParser(prog='train.py')\nparser.parse_args()"
    kept = ["--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "train.py"]
    torchrun(script, *kept, launch=torch.distributed.launch)


@stage.program()
def nobody_at_the_rendezvous(rank):
    wait = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]
    torchrun("", *wait, "--rdzv-conf=join_timeout=1,timeout=1", "train.py")


@stage.program()
def no_host_at_the_rendezvous(rank):
    wait = ["--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-endpoint=node0.invalid:29500"]
    torchrun("", *wait, "--rdzv-conf=read_timeout=1", "train.py")


@stage.program()
def unknown_rendezvous(rank):
    torchrun("", "--nnodes=1", "--rdzv-backend=etcdd", "--rdzv-endpoint=localhost:0", "train.py")


def failing(rank):
    raise ValueError("no data")


def dying(rank):
    os.kill(os.getpid(), signal.SIGKILL)


def leaving(rank):
    os._exit(3)


@stage.program()
def spawned_raises(rank):
    mp.start_processes(failing, nprocs=1, start_method="fork")


@stage.program()
def spawned_killed(rank):
    mp.start_processes(dying, nprocs=1, start_method="fork")


@stage.program()
def spawned_leaves(rank):
    mp.start_processes(leaving, nprocs=1, start_method="fork")


@stage.program()
def without_a_guard(rank):
    script = "import multiprocessing as mp\nmp.get_context('spawn').Process(target=print).start()\n"
    Path("train.py").write_text(script)
    os.system(f"{sys.executable} train.py")


@stage.program()
def function_of_a_notebook(rank):
    Path("train.py").write_text(
        "import multiprocessing as mp\n"
        "if __name__ == '__main__':\n"
        "    exec('def train(): pass')\n"
        "    import sys; sys.modules['__main__'].__file__ = None\n"
        "    del sys.modules['__main__'].__file__\n"
        "    mp.get_context('spawn').Process(target=train).start()\n"
    )
    os.system(f"{sys.executable} train.py")


@stage.program()
def no_gpu(rank):
    torch.ones(1, device="cuda")


@stage.program()
def no_gpu_to_set(rank):
    torch.cuda.set_device(0)


@stage.program()
def rendezvous_over(rank):
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    place = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{store.port}"]
    place += ["--nnodes=1:2", "--nproc-per-node=1", "--rdzv-conf=is_host=0,last_call_timeout=1"]
    torchrun("", *place, "train.py")
    torchrun("", *place, "train.py")
