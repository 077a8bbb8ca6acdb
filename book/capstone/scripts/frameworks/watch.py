"""See what a framework does on this rank while it trains. The chapter *frameworks* uses it on live ranks."""

import contextlib
import importlib
import io
import logging
import os
import re
import sys
import tempfile
import warnings
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
from shared import BATCH, RANKS, begin
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parallel import DistributedDataParallel as DDP

import ranklab

sys.__dict__.pop("ps1", None)  # Lightning refuses to train in what looks interactive; a rank under torchrun does not
LOGGERS = "lightning.pytorch", "lightning.fabric", "transformers", "accelerate"


@contextlib.contextmanager
def silence():
    """Catch what a framework says to stdout and stderr, also what torch's C++ says; yields the place it goes to."""
    said, stderr = io.StringIO(), os.dup(2)
    with tempfile.TemporaryFile() as file, warnings.catch_warnings(action="ignore"):
        os.dup2(file.fileno(), 2)
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                yield said
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def watch(program, **options):
    """Let a program train in an empty folder, without a process group at first; return what could be seen.

    Args:
        program: a module of this folder, by name; its function `train` is called.
        options: for `train`, besides the model and the rows.
    """
    model, rows = begin()
    seen, before = {"wrapper": "none"}, dict(os.environ)

    def note(module, inputs):
        if isinstance(module, DDP):
            seen["wrapper"], seen["unused"] = "DDP", module.find_unused_parameters
            gloo = dist.group.WORLD._get_backend(torch.device("cpu"))
            seen["patience"] = round(gloo.options._timeout.total_seconds() / 60)

    with contextlib.ExitStack() as stack:
        said = stack.enter_context(silence())
        train = importlib.import_module(program).train
        for name in LOGGERS:
            logging.getLogger(name).setLevel(logging.ERROR)
        stack.enter_context(mock.patch.dict(os.environ))  # and put back what it changes
        stack.enter_context(contextlib.chdir(tempfile.mkdtemp()))
        stack.callback(leave)
        stack.callback(register_module_forward_pre_hook(note).remove)
        with ranklab.meter() as meter:
            seen["losses"] = train(model, rows, **options)
        seen["files"] = sorted(str(path) for path in Path().rglob("*") if path.is_file())
        seen["set"] = sorted(name for name in os.environ if os.environ[name] != before.get(name))
        seen["deleted"] = sorted(before.keys() - os.environ.keys())
    seen["weights"] = torch.cat([weight.detach().flatten() for weight in model.parameters()])
    seen |= {"calls": dict(meter.calls), "bytes": dict(meter.payload), "seed": torch.initial_seed()}
    seen["norms"] = [float(norm) for norm in re.findall(r"'grad_norm': '([^']+)'", said.getvalue())]
    seen["rates"] = [float(rate) for rate in re.findall(r"'learning_rate': '([^']+)'", said.getvalue())]
    seen |= {"read": rows.read, "first": rows.read[: BATCH // RANKS]}
    return seen


def leave():
    """Leave the group, so that the next framework has to make its own."""
    if dist.is_initialized():
        dist.destroy_process_group()
    if "accelerate" in sys.modules:
        sys.modules["accelerate"].state.AcceleratorState._reset_state(reset_partial_state=True)
