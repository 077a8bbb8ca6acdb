"""Every message of the index of errors is printed by its program, or stands where the index says."""

import ast
import json
import mmap
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from faults_catalogue import SETUP, START
from launches import left_running, mark, marked
from messages import page
from messages.catalogue import GROUPS, MESSAGES
from messages.entry import GAP, Message, terminal
from places import headings
from support import eventually, started
from variables.reads import constants

ROOT = Path(__file__).parents[2]
TORCH = Path(torch.__file__).parent
MADE = [message for message in MESSAGES if message.by and not message.by.startswith("notebook.")]
SAID = [message for message in MESSAGES if message.by.startswith("notebook.")]
FOUND = [message for message in MESSAGES if message.source.startswith("torch/")]
# These are what a torch without CUDA prints.
WITHOUT_CUDA = {
    "meeting.no_nccl", "starting.no_gpu", "starting.no_gpu_to_set", "starting.as_many_as_gpus", "saving.fsdp1_on_a_cpu",
    "saving.offload_without_a_gpu", "parallel.hook_of_gpus", "parallel.sync_batch_norm_on_a_cpu",
    "parallel.half_precision_without_a_scaler", "parallel.device_ids_on_a_cpu",
}  # fmt: skip
CELLS = {
    "skipped": "if rank == 0:\n    dist.all_reduce(torch.ones(4))",
    "other_collective": "x = torch.ones(4)\ndist.broadcast(x, 0) if rank == 1 else dist.all_reduce(x)",
    "mutual": "dist.recv(torch.ones(4), 1 - rank)",
    "raised": "if rank == 1:\n    raise ValueError('no data')\ndist.all_reduce(torch.ones(4))",
    "killed": "if rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)\ndist.all_reduce(torch.ones(4))",
}


def name(message):
    return message.by or message.core[:40]


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """What each program has printed; nothing of them is left running."""
    told, ours = tmp_path_factory.mktemp("messages") / "heard.json", mark()
    environment = {**os.environ, "MESSAGES_STAGE": ours, "PYTHONHASHSEED": "0"}
    try:
        subprocess.run(
            [sys.executable, "-m", "tests.messages.stage", str(told)],
            cwd=ROOT,
            env=environment,
            check=True,
            timeout=540,
        )
        assert eventually(lambda: not marked("MESSAGES_STAGE", ours), 120), left_running("MESSAGES_STAGE", ours)
    finally:
        for process in marked("MESSAGES_STAGE", ours):
            process.kill()
    return json.loads(told.read_text())


@pytest.fixture(scope="module")
def told(bare_notebook):
    """What ranklab has said in a notebook, by the name of the cell."""
    bare_notebook.run("ranklab._register_px_before_start()")  # as its first import does in a reader's notebook
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ranklab.world._current", None)  # another test may have had a world in this process
        shown = {"before_the_start": bare_notebook.px("print(1)")}
    shown["nccl_on_a_cpu"] = bare_notebook.run('ranklab.start(2, backend="nccl")')
    shown["below_a_failed_start"] = bare_notebook.px("print(1)")
    shown["too_many"] = bare_notebook.run("ranklab.start(100_000)")
    with started(bare_notebook, "ranklab.start(2)") as notebook:
        shown["no_such_variable"] = notebook.run('world.pull("loss")')
        for cell, text in CELLS.items():
            assert notebook.px(f"{SETUP}\n{START}", "--timeout 60").error is None
            shown[cell] = notebook.px(text, "--timeout 1")
    shown["after_the_stop"] = bare_notebook.run('world.pull("loss")')
    return {cell: f"{each.text}\n{each.error}" for cell, each in shown.items()}


@pytest.mark.parametrize("message", MADE, ids=name)
def test_a_program_prints_the_message(heard, message):
    if message.by in WITHOUT_CUDA and torch.version.cuda:
        pytest.skip("this torch has CUDA")
    printed = terminal(heard[message.by])
    assert message.pattern.search(printed), printed[-3000:]


@pytest.mark.parametrize("message", SAID, ids=name)
def test_ranklab_says_the_message(told, message):
    cell = message.by.partition(".")[2]
    if cell in ("nccl_on_a_cpu", "below_a_failed_start") and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert message.pattern.search(told[cell]), told[cell][-3000:]


@cache
def texts(path):
    """All texts of a Python file, each expression in them as one gap."""
    found = []
    for node in ast.walk(ast.parse((TORCH.parent / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            found.append("".join(part.value if isinstance(part, ast.Constant) else GAP for part in node.values))
    return found


@pytest.mark.parametrize("message", FOUND, ids=name)
def test_the_installed_torch_has_the_text(message):
    path, _, symbol = message.source.partition(": ")
    if path.endswith(".so"):
        with open(TORCH.parent / path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as library:
            assert library.find(message.core.removeprefix("Gloo ").encode(), *constants(library)) >= 0
        return
    known = [" ".join(text.split()) for text in texts(path)]
    assert any(Message(text, "", (), "").pattern.search(message.core) or message.core in text for text in known if text)
    assert symbol.rpartition(".")[2] in (TORCH.parent / path).read_text(encoding="utf-8")


def test_the_page_is_what_the_catalogue_says():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run: python -m tests.messages"


def test_the_page_has_eighty_messages_that_programs_print():
    assert len(MADE) >= 80
    assert len({message.core for message in MESSAGES}) == len(MESSAGES)


def test_an_entry_is_whole():
    for message in MESSAGES:
        assert message.core in message.shown and GAP not in message.core, name(message)
        assert message.by or message.source or message.seen, name(message)
        told = (*message.causes, message.fix, message.means)
        assert message.causes and all(sentence.endswith(".") for sentence in told), name(message)
        assert all(len(sentence.split()) <= 32 for sentence in re.split(r"(?<=[.:]) ", message.means)), name(message)


def test_each_place_in_the_book_exists():
    places = sorted({message.see for message in MESSAGES if message.see})
    assert [see for see in places if see.partition("#")[2] not in headings(see.partition("#")[0])] == []


def test_every_program_has_its_message(heard):
    assert set(heard) == {message.by for message in MADE}


def test_the_catalogue_has_no_empty_group():
    assert all(group.messages and group.opening for group in GROUPS)
