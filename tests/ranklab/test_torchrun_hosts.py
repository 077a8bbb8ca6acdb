"""torchrun across two hosts, with faults: what each side says, how soon, and that nothing stays."""

import re
import threading
import time

import pytest
from launches import program
from support import eventually, stopwatch

import ranklab
from ranklab.cells.panel import Panel

pytestmark = pytest.mark.usefixtures("leaves_no_process")

# Three ranks add up numbers until the file "enough" appears; a process group gives up after three seconds of silence.
STEPS = """
import os, pathlib, signal, time
from datetime import timedelta
import torch
import torch.distributed as dist

here = pathlib.Path(os.environ["HERE"])
dist.init_process_group("gloo", timeout=timedelta(seconds=3))
rank = dist.get_rank()
for step in range(100_000):
    more = torch.tensor(0 if rank == 0 and (here / "enough").exists() else 1)
    dist.broadcast(more, 0)
    if step == 5:
        (here / f"rank {rank}").touch()
        FAULT
    if not more:
        break
dist.destroy_process_group()
print(f"rank {rank} ended well")
"""
SECONDS = 20.0  # torchrun, three imports of torch and the meeting


@pytest.fixture(scope="module")
def lab():
    with ranklab.hosts(2, link="1gbit") as lab:
        yield lab


def launch(lab, folder, fault="pass", when=lambda: None, timeout=300.0):
    """Run two ranks on one host and one on the other; return the run, its panel and the seconds since the fault."""
    struck = []

    def watch():
        eventually(lambda: len(list(folder.glob("rank *"))) == 3, timeout)
        struck.append(stopwatch())
        when()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    script = program(folder, STEPS.replace("FAULT", fault))
    run = ranklab.torchrun(
        script, nproc_per_node=[2, 1], hosts=lab, timeout=timeout, show=False, env={"HERE": str(folder)}
    )
    seconds = struck[0]()
    thread.join(timeout)
    return run, Panel(run._outcome).text(), seconds


def test_a_killed_worker_is_the_cause_on_both_hosts(lab, tmp_path):
    run, text, seconds = launch(lab, tmp_path, "if rank == 2: os.kill(os.getpid(), signal.SIGKILL)")
    print(f"{seconds:.1f} s after the kill:\n{text}")
    assert str(run.failure) == "rank 2 was killed by SIGKILL."
    assert "ranks 0, 1   ended because rank 2 had failed" in text
    # A send that was being answered is forgotten by gloo: its rank waits until the group gives up.
    alone = "Connection (closed|reset) by peer|Timed out waiting 3000ms"
    # torchrun ends what is left of a host as soon as one rank there has failed: the other may not come to its words.
    assert any(re.search(alone, error) for error in run.errors[:2])
    assert seconds < SECONDS


def test_a_killed_agent_is_named_with_its_host(lab, tmp_path):
    run, text, seconds = launch(lab, tmp_path, "if rank == 2: os.kill(os.getppid(), signal.SIGKILL)")
    print(f"{seconds:.1f} s after the kill:\n{text}")
    assert str(run.failure) == "torchrun on computer2 was killed by signal 9; its ranks ended with it."
    assert "ranks 0, 1   ended because torchrun on computer2 had been killed" in text
    assert "rank 2       ended with its torchrun" in text
    assert seconds < SECONDS


def test_a_cable_pulled_and_put_back_is_not_noticed(lab, tmp_path):
    def blink():
        lab[1].cut()
        time.sleep(1.0)
        lab[1].restore()
        time.sleep(0.5)
        (tmp_path / "enough").touch()

    run, text, seconds = launch(lab, tmp_path, when=blink)
    print(f"{seconds:.1f} s after the cut, 1 s of it without a cable:\n{text}")
    assert run.failure is None
    assert run.outputs == [f"rank {rank} ended well\n" for rank in range(3)]


def test_a_cable_pulled_for_good_ends_every_rank_at_the_groups_timeout(lab, tmp_path):
    try:
        run, text, seconds = launch(lab, tmp_path, when=lab[1].cut)
    finally:
        lab[1].restore()
    print(f"{seconds:.1f} s after the cut:\n{text}")
    assert run.failure is not None
    # Both sides waited for the other one, and say so after the three seconds of the group.
    for side in (run.errors[0] + run.errors[1], run.errors[2]):
        assert re.search("Timed out waiting 3000ms|Connection closed by peer|timed out", side)
    assert seconds < SECONDS + 3


def test_the_other_host_never_comes(lab, tmp_path):
    lab[1].cut()
    try:
        clock = stopwatch()
        run = ranklab.torchrun(
            program(tmp_path, STEPS.replace("FAULT", "pass")),
            nproc_per_node=[2, 1],
            hosts=lab,
            timeout=5.0,
            show=False,
            env={"HERE": str(tmp_path)},
        )
        seconds = clock()
    finally:
        lab[1].restore()
    print(f"{seconds:.1f} s, deadline 5 s: {run.failure}")
    assert run.failure is not None
    assert seconds < 10
