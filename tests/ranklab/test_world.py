"""A world: starting, asking, stopping, and every wrong way to do it."""

import inspect
import socket
import subprocess
import sys
import textwrap

import pytest
from support import processes_of

import ranklab
from ranklab.errors import WorldError
from ranklab.starting import read_deadline


def sentence(shown, *parts):
    """Assert that a cell ended in one sentence with these parts, and showed no Python frames of ours."""
    assert isinstance(shown.error, WorldError), shown
    assert "\n" not in str(shown.error)
    for part in parts:
        assert part in str(shown.error)
    assert "Traceback" not in shown.text


@pytest.mark.parametrize(("given", "seconds"), [((None, None), 60.0), ((5, None), 5), ((None, 5), 5)])
def test_the_deadline_of_a_cell_has_a_former_name(given, seconds):
    assert read_deadline(*given) == seconds


def test_start_offers_all_of_its_arguments_to_completion():
    offered = inspect.signature(ranklab.start).parameters
    assert {"deadline", "timeout", "hosts", "address", "options", "engines"} <= set(offered)


def test_px_before_start_says_what_to_do():
    program = """
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_cell("import ranklab")
        result = shell.run_cell("%%px\\nprint(1)")
        print(type(result.error_in_exec).__name__, result.error_in_exec)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=300)
    assert "WorldError No ranks are running. Start them first: world = ranklab.start(4)." in run.stdout


def test_px_after_stop_says_what_to_do(bare_notebook):
    bare_notebook.run("world = ranklab.start(1)")
    bare_notebook.run("world.stop()")
    sentence(bare_notebook.px("print(1)"), "The ranks were stopped", "ranklab.start(4)")
    sentence(bare_notebook.run("world.pull('x')"), "The ranks were stopped")
    assert bare_notebook.run("world.stop()").error is None


def test_stop_leaves_no_process_and_no_file(bare_notebook):
    bare_notebook.run("world = ranklab.start(2)")
    world = bare_notebook.names["world"]
    home = world.processes.home
    assert len(processes_of(str(home))) >= 3
    world.stop()
    assert processes_of(str(home)) == []
    assert not home.exists()


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ("start(0)", "at least one rank"),
        ("start(nodes=[])", "nodes is empty"),
        ('start("four")', "whole number"),
        ("start(4, deadline=0)", "deadline takes seconds, for example start(4, deadline=10), not 0."),
        ('start(4, timeout="long")', "deadline takes seconds"),
        ('start(4, deadline=float("inf"))', "deadline takes seconds"),
        ("start(4, deadline=5, timeout=5)", "not both"),
        ("start(4, deadline=60, timeout=5)", "not both"),
        ("start(4, deadlin=5)", "start() has no 'deadlin'"),
        ('start(4, launcher="spawn")', 'already has 4 ranks on 1 node, started with launcher="fork"'),
        ('start(4, backend="nccl")', 'already has 4 ranks on 1 node, started with backend="gloo"'),
        ('start(4, backend="mpi")', 'backend is "gloo" or "nccl", or left out'),
    ],
)
def test_a_bad_start_costs_nothing(notebook, call, part):
    notebook.px("kept = 1")
    sentence(notebook.run(f"ranklab.{call}"), part)
    assert notebook.run("print(world.pull('kept'))").text == "[1, 1, 1, 1]"


def test_a_second_start_of_the_same_ranks_gives_them_back(notebook):
    notebook.px("kept = 2")
    shown = notebook.run("again = ranklab.start(4)")
    assert shown.text == "Already running: 4 ranks on 1 node. world.restart() makes new ones."
    assert notebook.run("print(again is world, world.pull('kept'))").text == "True [2, 2, 2, 2]"


def test_a_second_start_of_other_ranks_names_what_is_running(notebook):
    notebook.px("kept = 3")
    sentence(notebook.run("ranklab.start(nodes=[2, 1])"), "already has 4 ranks on 1 node", "world.stop()")
    assert notebook.run("print(world.pull('kept'))").text == "[3, 3, 3, 3]"


def test_pull_is_in_rank_order_and_push_reaches_every_rank(notebook):
    notebook.px("import os; rank = int(os.environ['RANK'])")
    assert notebook.run("print(world.pull('rank'))").text == "[0, 1, 2, 3]"
    notebook.run("world.push(gift=[1, 2])")
    notebook.px("gift.append(rank)", "--ranks 1")
    assert notebook.run("print(world.pull('gift'))").text == "[[1, 2], [1, 2, 1], [1, 2], [1, 2]]"


def test_pull_of_a_variable_that_some_ranks_lack_names_them(notebook):
    notebook.px("only_here = 1", "--ranks 0,3")
    sentence(notebook.run("world.pull('only_here')"), "No variable 'only_here' on ranks 1, 2")


def test_what_cannot_be_sent_is_named_in_a_sentence(notebook):
    notebook.px("import threading; lock = threading.Lock()")
    why = "TypeError: cannot pickle '_thread.lock' object."
    sentence(notebook.run("world.pull('lock')"), f"'lock' cannot be sent from ranks 0–3: {why}")
    sentence(
        notebook.run("import threading; world.push(a=1, lock=threading.Lock())"),
        f"'lock' cannot be sent to the ranks: {why}",
    )
    sentence(notebook.run("class Own: pass\nworld.push(a=1, own=Own())"), "'a', 'own' cannot be set on ranks 0–3: Attr")


def test_pull_replaces_a_rank_that_has_died(notebook):
    notebook.px("import os; there = 1")
    notebook.px("import os\nif os.environ['RANK'] == '3': os._exit(1)")
    sentence(notebook.run("world.pull('there')"), "No variable 'there' on rank 3")


def test_the_kernel_is_not_a_rank(notebook):
    assert notebook.run("import os; print('RANK' in os.environ)").text == "False"
    sentence(notebook.run("ranklab.device()"), "not a rank")


def test_a_device_is_the_cpu_or_a_gpu_of_ones_own(notebook):
    notebook.px("import ranklab, os; where = ranklab.device()\nlocal = int(os.environ['LOCAL_RANK'])")
    shown = notebook.px("print(where.type == 'cpu' or where.index == local)")
    assert shown.text == "ranks 0–3   True"


def test_the_display_draws_the_nodes(notebook):
    shown = notebook.run("world")
    assert "4 ranks on 1 node" in repr(notebook.names["world"])
    html = notebook.names["world"]._repr_html_()
    assert html.count('class="rl-node"') == 1 and html.count('class="rl-rank"') == 4
    assert shown.error is None


def test_program_joins_the_cells_that_succeeded_on_all_ranks(notebook):
    world = notebook.names["world"]
    world.cells.clear()
    notebook.px("a = 1")
    notebook.px("b = 2", "--ranks 1")
    notebook.px("c = 1 / 0")
    notebook.px("d = 3\n")
    assert world.program() == "a = 1\n\nd = 3\n"


def test_commands_are_what_one_would_type(notebook):
    lines = notebook.names["world"].commands("train.py").splitlines()
    assert len(lines) == 4
    assert lines[3].startswith("RANK=3 LOCAL_RANK=3 WORLD_SIZE=4")
    assert lines[3].endswith("MASTER_PORT=$PORT python train.py &")


def test_the_commands_run_a_program_by_hand(notebook, tmp_path):
    """What ``world.commands`` prints is typed into a shell and gives the sum."""
    script = tmp_path / "sum.py"
    script.write_text(
        "import torch, torch.distributed as dist\n"
        "dist.init_process_group()\n"
        "x = torch.tensor(dist.get_rank()); dist.all_reduce(x); print(x.item())\n"
        "dist.destroy_process_group()\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    lines = notebook.names["world"].commands(str(script)).replace("python ", f"{sys.executable} ")
    run = subprocess.run(["bash", "-c", f"PORT={port}\n{lines}\nwait"], capture_output=True, text=True, timeout=90)
    # Four processes share one pipe, so a line of one may end behind that of another.
    assert "".join(run.stdout.split()) == "6666", run.stderr


def test_restart_gives_new_processes_in_the_same_places(notebook):
    notebook.px("import os; lost, pid = 1, os.getpid()")
    before = notebook.names["world"].pull("pid")
    assert notebook.run("world.restart()").error is None
    notebook.px("import os; pid, rank = os.getpid(), int(os.environ['RANK'])")
    assert not set(before) & set(notebook.names["world"].pull("pid"))
    assert notebook.names["world"].pull("rank") == [0, 1, 2, 3]
    sentence(notebook.run("world.pull('lost')"), "No variable 'lost' on ranks 0–3")


def test_a_world_is_a_context_manager(notebook):
    notebook.run("world.stop()")
    shown = notebook.run("with ranklab.start(nodes=[1, 1]) as small:\n    print(small.size)")
    assert shown.error is None and shown.text == "2"
    assert not notebook.names["small"].running
