"""torchrun with injected faults: each is told in one sentence, ends in time and leaves no process."""

import os
import signal
import subprocess
import sys

import psutil
import pytest
from launches import HELLO, appeared, marked, program, waiting, when_running
from support import eventually, steady, stopwatch

import ranklab
from ranklab.cells.panel import Panel
from ranklab.layout import LOOPBACK
from ranklab.system.backends import interfaces

pytestmark = pytest.mark.usefixtures("leaves_no_process")

KILLED = "\nif os.environ['RANK'] == '1': os.kill(os.getpid(), signal.SIGKILL)"


def launch(*arguments, **options):
    clock = stopwatch()
    run = ranklab.torchrun(*arguments, show=False, **options)
    return run, clock()


def failing(folder, recorded):
    text = """
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

def main():
    dist.init_process_group()
    if dist.get_rank() == 2:
        raise ValueError("this batch is empty")
    dist.all_reduce(torch.ones(1))

"""
    return program(folder, text + ("record(main)()" if recorded else "main()"), "fails.py")


@pytest.mark.parametrize(
    ("nodes", "recorded", "runs"),
    [(3, False, 2), ([2, 1], False, 1), (3, True, 1), ([2, 1], True, 1)],
    ids=["plain, twice the same", "plain on two nodes", "record", "record on two nodes"],
)
def test_a_failing_rank_is_the_cause_whoever_waited_for_it(tmp_path, nodes, recorded, runs):
    (run, _), *others = [launch(failing(tmp_path, recorded), nproc_per_node=nodes) for _ in range(runs)]
    assert str(run.failure) == "rank 2 raised ValueError: this batch is empty"
    assert (run.failure.rank, run.failure.exit_code, run.failure.recorded) == (2, 1, recorded)
    text = Panel(run._outcome).text()
    assert "fails.py line 9 in main:  raise ValueError" in text
    assert "ranks 0, 1   ended because rank 2 had failed" in text
    assert steady(text.replace(str(tmp_path), "")) and "Connection closed" not in text
    assert "fails.py FAILED" in run.report and ("error.json" in run.report) == recorded
    assert [Panel(other._outcome).text() for other, _ in others] == [text] * (runs - 1)


def test_a_killed_rank_is_named_with_its_signal(tmp_path):
    run, _ = launch(**waiting(tmp_path, KILLED), nproc_per_node=2)
    assert str(run.failure) == "rank 1 was killed by SIGKILL."
    assert (run.failure.rank, run.failure.exit_code) == (1, -signal.SIGKILL)
    assert "ended because rank 1 had failed" in Panel(run._outcome).text()


def test_a_rank_that_was_ended_while_it_wrote_its_error_file_is_told(tmp_path):
    text = "import os\nopen(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').close()\nraise SystemExit(1)"
    run = ranklab.torchrun(program(tmp_path, text), max_restarts=1, show=False, timeout=600)
    assert "a rank was ended while it wrote its error file" in str(run.failure)
    assert len(run.attempts) == 1  # it is torchrun that fails


def test_an_exit_status_is_told(tmp_path):
    run, _ = launch(program(tmp_path, "import sys; sys.exit(3)"))
    assert str(run.failure) == "rank 0 ended with exit status 3."


def test_a_program_that_does_not_compile_is_told_with_its_line(tmp_path):
    run, _ = launch(program(tmp_path, "x = 1\nprint(x\n"))
    assert str(run.failure) == "rank 0 raised SyntaxError: '(' was never closed"
    assert "program.py line 2:  print(x" in Panel(run._outcome).text()


def test_a_killed_torchrun_is_told_and_its_ranks_end(tmp_path):
    """Its ranks have sessions of their own: without their warden they would run on."""
    then = "if os.environ['RANK'] == '0': os.kill(os.getppid(), signal.SIGKILL)"
    run, seconds = launch(**waiting(tmp_path, then), nproc_per_node=2)
    assert str(run.failure) == "torchrun was killed by signal 9; its ranks ended with it."
    assert seconds < 30


def test_a_killed_torchrun_of_one_node_is_told(tmp_path):
    then = "if os.environ['RANK'] == '1': os.kill(os.getppid(), signal.SIGKILL)"
    run, seconds = launch(**waiting(tmp_path, then), nproc_per_node=[1, 1])
    assert str(run.failure) == "torchrun on node 1 was killed by signal 9; its ranks ended with it."
    text = Panel(run._outcome).text()
    assert "rank 1   ended with its torchrun" in text and "rank 0   still running" in text and seconds < 30


class Here:
    """A host that is this machine."""

    name = "computer1"

    def popen(self, argv, **options):
        """Start a process as :class:`subprocess.Popen` does."""
        return subprocess.Popen(argv, **options)


class Nobody(Here):
    """A host on which torchrun hangs before it has said a word."""

    name = "computer2"

    def popen(self, argv, **options):
        """Start what reads until the end of its input, in place of torchrun."""
        return subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], **options)


@pytest.mark.parametrize("rdzv", ["static", "c10d"])
def test_a_node_that_never_comes_is_named_at_the_deadline(tmp_path, rdzv):
    options = {
        "nproc_per_node": [1, 1],
        "hosts": [Here(), Nobody()],
        "rdzv": rdzv,
        "timeout": 8,
        "address": "127.0.0.1",
    }
    run, seconds = launch(program(tmp_path, HELLO), **options)
    assert str(run.failure) == "After 8 s: computer1 waits for computer2, which never came to the meeting point."
    assert run.failure.nodes == [1] and seconds < 12
    assert run.commands.startswith("computer1 $ torchrun --nnodes=2")


def test_hosts_run_their_own_torchrun(tmp_path):
    run, _ = launch(program(tmp_path, HELLO), nproc_per_node=[1, 2], hosts=[Here(), Here()], address="127.0.0.1")
    assert run.failure is None, run.failure
    assert [output.split()[0] for output in run.outputs] == ["0", "1", "2"]


def test_nodes_that_do_not_notice_a_failure_are_ended(tmp_path):
    """torchrun on node 0 waits five minutes for an agent that has failed (exit_barrier_timeout)."""
    script = program(tmp_path, "import os\nif os.environ['RANK'] == '1': raise KeyError('lr')\n")
    run, seconds = launch(script, nproc_per_node=[1, 1])
    assert str(run.failure) == "rank 1 raised KeyError: 'lr'" and seconds < 30


def test_a_rank_that_prints_without_end_is_cut_and_ended(tmp_path):
    text = "line = 'x' * 1000\nwhile True:\n    print(line)\n"
    run, seconds = launch(program(tmp_path, text), timeout=6)
    assert str(run.failure).startswith("After 6 s: rank 0 was still running.") and seconds < 10
    assert 1_000_000 < len(run.outputs[0]) < 2_100_000 and "bytes left out" in run.outputs[0]
    assert len(Panel(run._outcome).text()) < 30_000


def test_ranks_that_wait_for_one_another_end_at_the_deadline(tmp_path):
    run, seconds = launch(**waiting(tmp_path), nproc_per_node=2, timeout=6)
    assert str(run.failure).startswith("After 6 s: ranks 0, 1 were still running.") and seconds < 10


STARTS_ITS_OWN = """
import multiprocessing
import os

import torch.distributed as dist


def work(rank):
    os.environ["MASTER_PORT"] = "29999"  # as in the book: torchrun knows nothing of it
    dist.init_process_group("gloo", rank=rank, world_size=1)
    print("met", flush=True)


if __name__ == "__main__":
    method = ["spawn", "fork", "forkserver"][int(os.environ["RANK"])]
    process = multiprocessing.get_context(method).Process(target=work, args=(0,))
    process.start()
    process.join()
"""


def test_processes_that_ranks_start_themselves_are_told_at_the_deadline(tmp_path):
    """However they are started; with python, without torchrun, they meet."""
    script = program(tmp_path, STARTS_ITS_OWN)
    run, _ = launch(script, nproc_per_node=3, timeout=15)
    told = "After 15 s: ranks 0–2 were still running, and so were 3 processes that ranks 0–2 had started."
    assert str(run.failure) == told and run.outputs == [""] * 3
    text = Panel(run._outcome).text()
    assert "ranks 0–2   still running, with 1 process of its own" in text
    assert "torch.multiprocessing.spawn" in text and "let torchrun start every process" in text
    here = {name: value for name, value in os.environ.items() if name != "MASTER_PORT"} | {"RANK": "0"}
    here |= {"MASTER_ADDR": "127.0.0.1", **interfaces(LOOPBACK)}
    alone = subprocess.run([sys.executable, script], env=here, capture_output=True, text=True, timeout=100, check=False)
    assert alone.stdout == "met\n", alone.stderr


def test_stop_pressed_ends_everything(tmp_path, monkeypatch):
    press = when_running(tmp_path, 2, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        launch(**waiting(tmp_path), nproc_per_node=2)
    press.join()


def test_a_rank_that_ignores_every_signal_ends_too(tmp_path):
    then = "for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)"
    _, seconds = launch(**waiting(tmp_path, then), timeout=6)
    assert seconds < 10


def test_children_of_ranks_end_with_them(tmp_path):
    then = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)"
    launch(**waiting(tmp_path, then), timeout=6)


@pytest.mark.parametrize("nodes", [2, [1, 1]], ids=["one node", "two nodes"])
def test_an_owner_killed_with_9_leaves_nothing(tmp_path, nodes):
    options = waiting(tmp_path)
    code = f"import ranklab; ranklab.torchrun({options['script']!r}, nproc_per_node={nodes}, timeout=600)"
    environment = os.environ | {"HERE": str(tmp_path)}
    owner = subprocess.Popen([sys.executable, "-c", code], env=environment)
    assert appeared(tmp_path, 2)
    ours = [process for process in marked("MARK", os.environ["MARK"]) if process.pid != owner.pid]
    folders = {process.environ()["RANKLAB_HOME"] for process in ours}
    assert len(ours) >= 4 and len(folders) == 1  # a warden, torchrun, two ranks
    owner.kill()
    owner.wait()
    alive = psutil.wait_procs(ours, timeout=300)[1]
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert not os.path.exists(folders.pop())


def test_a_killed_warden_takes_its_ranks_along(tmp_path):
    """The last line of defence: SIGTERM reaches torchrun, and torchrun ends its ranks."""
    options = waiting(tmp_path)

    def kill():
        wardens = [process for process in marked("MARK", os.environ["MARK"]) if "warden" in str(process.cmdline())]
        wardens[0].kill()

    press = when_running(tmp_path, 2, kill)
    run, _ = launch(**options, nproc_per_node=2)
    press.join()
    assert run.failure is not None
    eventually(lambda: not marked("MARK", os.environ["MARK"]))  # what is left fails leaves_no_process


HANDLED = """
import os, sys, time, traceback
try:
    int("x")
except ValueError:
    traceback.print_exc()
"""


def test_an_error_that_was_handled_is_not_what_ended_the_ranks(tmp_path):
    run, _ = launch(program(tmp_path, HANDLED + "time.sleep(1000)"), nproc_per_node=2, timeout=15)
    assert str(run.failure).startswith("After 15 s: ranks 0, 1 were still running.") and not run.failure.error
    run, _ = launch(program(tmp_path, HANDLED + "sys.exit(3 * (os.environ['RANK'] == '1'))"), nproc_per_node=2)
    assert (str(run.failure), run.failure.exit_code) == ("rank 1 ended with exit status 3.", 3)


def test_a_rank_that_has_ended_is_not_still_running(tmp_path):
    text = "import os, time\nif os.environ['RANK'] == '0': print('done')\nelse: time.sleep(1000)"
    run, _ = launch(program(tmp_path, text), nproc_per_node=2, timeout=15)
    assert str(run.failure).startswith("After 15 s: rank 1 was still running.")
    assert "rank 1   still running" in Panel(run._outcome).text()


ANSWERS = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
if os.environ["RANK"] == "1":
    time.sleep(1)
    raise ValueError("the true cause")
time.sleep(1000)
"""
CATCHES = """
import os, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
if dist.get_rank() == 1:
    raise ValueError("the true cause")
try:
    dist.all_reduce(torch.ones(1))
except RuntimeError:
    os._exit(7)
"""


@pytest.mark.parametrize("text", [ANSWERS, CATCHES], ids=["in a handler", "in an except clause"])
def test_what_answers_an_error_of_another_rank_is_not_the_cause(tmp_path, text):
    run, _ = launch(program(tmp_path, text), nproc_per_node=2)
    assert (str(run.failure), run.failure.rank) == ("rank 1 raised ValueError: the true cause", 1)


def test_a_node_that_was_not_started_again_keeps_what_it_has_printed(tmp_path):
    text = """
import os, sys, time
attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
print("attempt", attempt, "rank", os.environ["RANK"], flush=True)
time.sleep(2)
if attempt == "0" and os.environ["RANK"] == "1": sys.exit(3)
"""
    run, _ = launch(program(tmp_path, text), nproc_per_node=[1, 1], max_restarts=1)
    assert run.failure is None, run.failure
    assert run.outputs == ["attempt 0 rank 0\n", "attempt 1 rank 1\n"]
