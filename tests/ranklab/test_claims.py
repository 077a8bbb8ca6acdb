"""What the chapters say of torch and name a source for, held against the torch that is installed."""

import logging
import re
import subprocess
import sys
from datetime import timedelta


def notice(number):
    """One of the Important Notices in torchrun's manual, on one line."""
    from torch.distributed import run

    notices = run.__doc__.split("Important Notices")[1]
    return re.sub(r"\s+", " ", re.search(rf"^{number}\. (.*?)^{number + 1}\. ", notices, re.M | re.S)[1])


def test_torchruns_manual_says_what_the_chapters_quote():
    assert "On failures or membership changes ALL surviving workers are killed immediately" in notice(4)
    assert "only supports homogeneous ``LOCAL_WORLD_SIZE``" in notice(5)
    assert "``RANK`` is NOT stable" in notice(6)


def test_the_backend_follows_the_device():
    from torch.distributed.distributed_c10d import Backend

    assert (Backend.default_device_backend_map["cpu"], Backend.default_device_backend_map["cuda"]) == ("gloo", "nccl")


def test_a_group_waits_half_an_hour_and_nccl_has_a_default_of_its_own():
    from torch.distributed import constants

    assert constants.default_pg_timeout == timedelta(minutes=30)
    assert "default_pg_nccl_timeout" in constants.__all__


def test_node_rank_counts_for_static_rendezvous_only(caplog):
    from torch.distributed import run

    line = ["--nnodes=2", "--node-rank=1", "--nproc-per-node=1", "program.py"]
    assert run.parse_args(line).rdzv_backend == "static"
    with caplog.at_level(logging.WARNING, run.logger.name):
        run.logger.addHandler(caplog.handler)  # torch's loggers do not pass on what they say
        try:
            run.config_from_args(run.parse_args(line))
            assert "node_rank" not in caplog.text
            run.config_from_args(run.parse_args(["--rdzv-backend=c10d", *line]))
            assert "node_rank is only used for static rdzv_backend. It will be ignored" in caplog.text
        finally:
            run.logger.removeHandler(caplog.handler)


PROGRAM = """
import os
import time
import torch
import torch.distributed as dist

dist.init_process_group()
tensor = torch.ones(1)
dist.all_reduce(tensor)
began = time.time()
if dist.get_rank() == 0:
    try:
        dist.all_reduce(tensor)
    except RuntimeError as error:
        lost = ("Connection closed by peer", "Connection reset by peer", "Broken pipe")
        print(any(words in str(error) for words in lost) or error, time.time() - began < 30)
else:
    os._exit(0)  # without torch's own end, which now and then aborts the process
"""


def test_gloo_raises_at_once_when_the_ranks_that_it_waits_for_exit(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    run = subprocess.run([*torchrun, program], capture_output=True, text=True, timeout=100)
    assert run.stdout.split() == ["True", "True"], run.stderr


def test_clipping_takes_the_norm_of_the_gradients_that_it_is_given():
    """The chapter *splitting-layers*: a rank's clip_grad_norm_ knows its own stage only."""
    import inspect

    from torch.nn.utils import clip_grad

    assert "equivalent to :func:`torch.nn.utils.get_total_norm`" in inspect.getdoc(clip_grad.clip_grad_norm_)


def test_sgd_passes_over_a_parameter_without_a_gradient():
    """The chapter *splitting-layers*: a stage to which no gradient comes back never moves, and nothing is raised."""
    import inspect

    from torch.optim import SGD

    assert "if p.grad is not None:" in inspect.getsource(SGD._init_group)


def test_torchs_pipeline_does_what_the_chapter_says_of_it():
    import inspect

    from torch.distributed.pipelining import Schedule1F1B, ScheduleGPipe, stage

    assert inspect.signature(ScheduleGPipe).parameters["scale_grads"].default is True
    assert "if n_microbatches < self._num_stages:" in inspect.getsource(Schedule1F1B.__init__)
    backward = inspect.getsource(stage._PipelineStageBase.backward_maybe_with_nosync)
    assert "HACK" in backward and "no_sync()" in backward and "reducer.prepare_for_backward(" in backward
    assert "no_sync()" in inspect.getsource(stage._PipelineStageBase.forward_maybe_with_nosync)
    assert "no_sync" not in inspect.getsource(stage.PipelineStage._forward_metadata_inference)
    assert "recv_object_list" in inspect.getsource(stage.PipelineStage._recv_meta)
