"""Faults of the machine and of what stands around the ranks: memory, floods, the reader's own stop, killed helpers."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest
from faults_catalogue import RIGHT, SETUP, START
from support import eventually, owner, processes_of, stopwatch

from ranklab import live
from ranklab.cells import cell as cells
from ranklab.cells import remains
from ranklab.errors import RankTimeout
from ranklab.layout import name_ranks
from ranklab.system import leftovers, memory


def right(notebook) -> None:
    """Run a cell that needs all ranks, and check its number."""
    answer = notebook.px(RIGHT, "--timeout 30")
    assert answer.error is None, answer.text
    assert answer.text.endswith(f"   {notebook.size}")


@pytest.fixture
def memory_limit(notebook):
    """A control group with a limit that rank 1 is put into; None where this user may make none."""
    pid = notebook.names["world"].processes.pid(1)
    for root, limit in ((memory.CGROUP / "memory", "memory.limit_in_bytes"), (memory.CGROUP, "memory.max")):
        group = root / f"ranklab-test-{os.getpid()}"
        if not (root / limit.replace("memory.max", "cgroup.subtree_control")).exists():
            continue
        try:
            group.mkdir()
            (group / limit).write_text(str(256 << 20))
            (group / "cgroup.procs").write_text(str(pid))
        except OSError:
            if group.is_dir():
                group.rmdir()
            continue
        yield group
        eventually(lambda members=group / "cgroup.procs": not members.read_text())
        group.rmdir()
        return
    yield None


def test_a_memory_limit_is_told(notebook, memory_limit, monkeypatch, figures):
    assert notebook.px(SETUP).error is None
    if memory_limit is None:  # nobody may limit memory here: the system's counter is played, the kill is real
        monkeypatch.setattr(remains, "shortage", lambda before: "it reached its memory limit of 256 MB.")
        fault = "if rank == 1:\n    os.kill(os.getpid(), signal.SIGKILL)"
    else:
        fault = "if rank == 1:\n    held = torch.ones(1 << 27)"
    began = time.monotonic()
    shown = notebook.px(f"{START}\n{fault}\ndist.all_reduce(torch.ones(1))", "--timeout 20")
    reported = time.monotonic()
    assert shown.text.startswith("rank 1 was killed by SIGKILL in the statement that begins in line")
    assert "Likely cause: it reached its memory limit of 256 MB." in shown.text
    right(notebook)
    figures("out of memory", notebook.size, reported - began, time.monotonic() - reported, "all but rank 1")


def test_a_rank_that_prints_a_hundred_megabytes(notebook, figures):
    assert notebook.px(SETUP).error is None
    began = time.monotonic()
    shown = notebook.px(
        "if rank == 1:\n    for _ in range(1000):\n        print('y' * 100_000)\nprint('end')", "--timeout 30"
    )
    reported = time.monotonic()
    assert shown.error is None
    assert "characters left out" in shown.text
    assert shown.text.rstrip().endswith("end")
    assert len(shown.text) < 30_000
    right(notebook)
    figures("100 MB of prints", notebook.size, reported - began, time.monotonic() - reported, "all")


def test_a_hundred_megabytes_in_one_print(notebook):
    shown = notebook.px("print('x' * 100_000_000)", "--ranks 1 --timeout 20")
    assert shown.error is None
    assert "characters left out" in shown.text
    right(notebook)


@pytest.fixture
def starved(notebook):
    """Ranks that get a few hundredths of one processor: four other programs have it, and come first."""
    core = min(os.sched_getaffinity(0))
    burn = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", burn]) for _ in range(4)]
    processes = notebook.names["world"].processes
    for rank in range(notebook.size):
        for thread in map(int, os.listdir(f"/proc/{processes.pid(rank)}/task")):
            os.sched_setaffinity(thread, {core})
            os.setpriority(os.PRIO_PROCESS, thread, 10)
    yield
    for other in others:
        other.kill()
        other.wait()
    notebook.run("world.restart()")  # an ordinary user may not make a process come first again


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux chooses the processor of a thread")
def test_ranks_that_get_no_processor_are_waited_for_and_keep_their_variables(notebook, request):
    assert notebook.px(f"{SETUP}\n{START}\nkept = rank", "--timeout 60").error is None
    request.getfixturevalue("starved")
    shown = notebook.px("if rank != 1:\n    dist.all_reduce(torch.ones(1))\nelse:\n    while True: pass", "--timeout 5")
    assert isinstance(shown.error, RankTimeout)
    assert "was ended" not in shown.text, shown.text
    assert notebook.names["world"].pull("kept") == list(range(notebook.size))
    right(notebook)


@pytest.fixture
def interruptible():
    """Python's own handler, as a kernel has it: a shell's background job, as these tests may be, ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_reader_presses_stop(notebook, figures, interruptible):
    assert notebook.px(SETUP).error is None
    world = notebook.names["world"]
    pressed = []

    def notebook_waits_for_the_others_only() -> bool:
        frame = sys._current_frames()[threading.main_thread().ident]
        while frame is not None and frame.f_code.co_name != "wait_for":
            frame = frame.f_back
        return frame is not None and frame.f_locals["replies"][1].done()

    def others_wait() -> bool:
        told = [world.processes.ask(rank, "where") for rank in range(notebook.size) if rank != 1]
        return all(state is not None and state.call.endswith("all_reduce") for state in told)

    def press() -> None:
        while not (notebook_waits_for_the_others_only() and others_wait()):
            time.sleep(0.01)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    assert notebook.px(START, "--timeout 20").error is None
    thread = threading.Thread(target=press)
    thread.start()
    shown = notebook.px("kept = 5\nif rank != 1:\n    dist.all_reduce(torch.ones(1))", "--timeout 60")
    reported = time.monotonic()
    thread.join()
    assert shown.text.startswith("You stopped the cell: ")
    assert "in all_reduce for rank 1, which finished the cell without it" in shown.text
    right(notebook)
    figures("interrupt by the reader", notebook.size, reported - pressed[0], time.monotonic() - reported, "all")
    assert world.pull("kept") == [5] * notebook.size


def test_the_reader_presses_stop_while_the_cell_is_sent(notebook, monkeypatch, interruptible):
    world = notebook.names["world"]
    view, pressed = world.view, []

    def press(rank):
        if rank == 1 and not pressed:
            pressed.append(rank)
            os.kill(os.getpid(), signal.SIGINT)
        return view(rank)

    monkeypatch.setattr(world, "view", press)
    shown = notebook.px("while True:\n    pass", "--timeout 60")
    assert pressed == [1]
    assert shown.text.startswith("You stopped the cell: ")
    right(notebook)


def test_a_second_press_while_ranks_are_freed_changes_nothing(notebook, monkeypatch, interruptible):
    assert notebook.px(f"{SETUP}\n{START}\nkept = 7").error is None
    panels = []
    monkeypatch.setattr(live.Live, "finish", lambda self, bundle, metadata=None: panels.append(bundle["text/plain"]))
    world, free = notebook.names["world"], cells.free
    pressed = []

    def press_again(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        ended = free(*arguments)
        os.kill(os.getpid(), signal.SIGINT)
        pressed.extend(["while ranks are freed", "and after"])
        return ended

    def press() -> None:
        while (state := world.processes.ask(0, "where")) is None or not state.call.endswith("all_reduce"):
            time.sleep(0.01)
        pressed.append("first")
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(cells, "free", press_again)
    thread = threading.Thread(target=press)
    thread.start()
    shown = notebook.px("if rank != 1:\n    dist.all_reduce(torch.ones(1))", "--timeout 60")
    thread.join()
    assert pressed == ["first", "while ranks are freed", "and after"]
    assert str(shown.error).startswith("You stopped the cell: "), shown
    assert [panel.splitlines()[0] for panel in panels] == [str(shown.error)]
    monkeypatch.undo()
    assert world.pull("kept") == [7] * notebook.size
    right(notebook)


def test_a_press_that_comes_too_late_for_its_cell_stops_those_after_it(notebook, monkeypatch, interruptible):
    wait = cells.wait_for

    def press_then_say(*arguments):
        reason = wait(*arguments)
        os.kill(os.getpid(), signal.SIGINT)
        return reason

    monkeypatch.setattr(cells, "wait_for", press_then_say)
    shown = notebook.px("print('done')")
    assert isinstance(shown.error, KeyboardInterrupt)
    assert "done" in shown.text


@pytest.mark.parametrize("notebook", [2, 3, 4], indirect=True, ids=lambda size: f"{size} ranks")
def test_while_a_cell_runs_the_display_says_where_each_rank_is(notebook, monkeypatch):
    monkeypatch.setattr(live, "_audience", lambda: "notebook")
    shown = []
    monkeypatch.setattr(live.Live, "show", lambda self, bundle: shown.append(bundle))
    assert notebook.px(f"{SETUP}\n{START}").error is None
    shown.clear()  # on a busy machine that took long enough to be shown
    ended = notebook.px("print('begun')\nif rank != 1:\n    dist.all_reduce(torch.ones(3))", "--timeout 2")
    assert ended.error is not None
    others = name_ranks([rank for rank in range(notebook.size) if rank != 1])
    told = [bundle["text/plain"] for bundle in shown]
    # There, too, rank 1 may need longer than the others.
    first = next(text for text in told if re.match(rf"running for \d s on {others}, deadline 2 s", text))
    assert "line 3:  dist.all_reduce(torch.ones(3))" in first
    assert "waits in all_reduce, collective" in first
    assert "begun" in first
    assert "waits in all_reduce" in shown[told.index(first)]["text/html"]
    assert shown[-1]["text/plain"] == f"freeing {others}, which takes a while on a busy machine"


@pytest.mark.parametrize("who", ["controller", "fork server"])
def test_a_killed_helper_is_told_and_the_next_cell_starts_anew(notebook, who, figures):
    assert notebook.px(SETUP).error is None
    processes = notebook.names["world"].processes
    pid = processes._server.pid if who == "fork server" else processes._cluster.controller.pid
    fault = f"if rank == 0:\n    os.kill({pid}, signal.SIGKILL)\nwhile True:\n    pass"
    began, clock = time.monotonic(), stopwatch()
    shown = notebook.px(fault, "--timeout 20")
    reported = time.monotonic()
    assert clock() < 8
    assert shown.error is not None
    assert "was killed" in shown.text
    assert "starts all ranks again" in shown.text
    right(notebook)
    figures(f"{who} killed", notebook.size, reported - began, time.monotonic() - reported, "none")


def test_a_killed_kernel_leaves_nothing(notebook, figures):
    process, home = owner("world.view([0, 1]).execute('while True: pass', block=False); time.sleep(600)")
    ours = processes_of(home)
    assert len(ours) >= 4  # the fork server, two ranks, the controller
    began, clock = time.monotonic(), stopwatch()
    process.kill()
    process.wait(300)
    left = ours
    while left and clock() < 5:
        left = psutil.wait_procs(left, timeout=1)[1]
    gone = time.monotonic()
    assert [entry for entry in left if entry.is_running() and entry.status() != psutil.STATUS_ZOMBIE] == []
    right(notebook)  # another notebook's ranks are not touched
    figures("kernel killed (report: nothing left)", notebook.size, gone - began, time.monotonic() - gone, "other's")


def test_stopped_leftovers_of_a_killed_notebook_are_ended_at_the_next_start():
    process, home = owner("time.sleep(600)")
    ours = processes_of(home)
    for entry in ours:
        entry.suspend()
    process.kill()
    process.wait(300)
    leftovers.clean()  # as each start does, those of other tests beside this one, too
    assert psutil.wait_procs(ours, timeout=300)[1] == []
    assert eventually(lambda: not Path(home).exists())
