"""``%%px``: what a cell shows, and that it always comes back."""

import os
import sys

import psutil
import pytest
from support import steady, stopwatch

from ranklab.cells import cell as cells
from ranklab.errors import RankError, RankTimeout, WorldError


@pytest.fixture(autouse=True)
def rank_variable(notebook):
    notebook.px("import os; rank = int(os.environ['RANK'])")


@pytest.fixture
def group(notebook):
    """A process group on all ranks and a tensor to reduce."""
    shown = notebook.px(
        "import torch, torch.distributed as dist\n"
        "if not dist.is_initialized(): dist.init_process_group()\n"
        "one = torch.ones(1000)"
    )
    assert shown.error is None, shown


def test_prints_come_in_rank_order_whoever_is_first(notebook):
    shown = notebook.px("import time; time.sleep(0.05 * (3 - rank)); print('rank says', rank)")
    assert shown.text.splitlines() == [f"rank {rank}   rank says {rank}" for rank in range(4)]


def test_a_cell_shows_the_same_bytes_on_every_run(notebook):
    cell = "print('x' * rank); print(rank % 2); rank // 2"
    assert len({(notebook.px(cell).text, notebook.px(cell).html) for _ in range(5)}) == 1


def test_values_are_shown_without_the_engines_counter(notebook):
    assert notebook.px("rank * 0 + 7").text == "ranks 0–3   7"


def test_chosen_ranks_only(notebook):
    assert notebook.px("print(rank)", "--ranks 0,2").text == "rank 0   0\nrank 2   2"
    assert notebook.px("print(rank)", "--ranks 1-2").text == "rank 1   1\nrank 2   2"


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("--ranks 9", "There is no rank 9"),
        ("--ranks x", "--ranks takes numbers"),
        ("--timeout 0", "--timeout takes seconds"),
        ("--timeout inf", "--timeout takes seconds"),
    ],
)
def test_a_bad_option_runs_nothing(notebook, options, part):
    notebook.px("touched = False")
    shown = notebook.px("touched = True", options)
    assert isinstance(shown.error, WorldError) and part in str(shown.error)
    assert notebook.names["world"].pull("touched") == [False] * 4


def test_what_a_rank_displays_is_shown_under_its_name(notebook):
    shown = notebook.px("from IPython.display import display, HTML; display(HTML(f'<i>{rank}</i>'))", "--ranks 1,2")
    assert shown.text.count("rank 1") == 1
    assert shown.html.index("rank 1") < shown.html.index("<i>1</i>") < shown.html.index("rank 2")


def test_stderr_is_shown_and_marked(notebook):
    shown = notebook.px("import sys; print('beware', file=sys.stderr)", "--ranks 2")
    assert shown.text == "rank 2 ! beware"
    assert {"ranklab": {"stderr": True}} in shown.metadata


def test_an_error_is_cut_to_the_cell_and_comes_first(notebook):
    notebook.px("def share(total):\n    return total // (rank - 2)")
    shown = notebook.px("print('before')\nprint(share(6))")
    assert isinstance(shown.error, RankError)
    assert steady(shown.text) == "\n".join(
        [
            "rank 2 raised ZeroDivisionError: integer division or modulo by zero",
            "rank 2   line 2:  print(share(6))",
            "         line 2 in share (an earlier cell):  return total // (rank - 2)",
            "         ZeroDivisionError: integer division or modulo by zero",
            "rank 0   before",
            "         -3",
            "rank 1   before",
            "         -6",
            "rank 2   before",
            "rank 3   before",
            "         6",
        ]
    )


def test_a_library_call_is_named_without_its_path(notebook):
    shown = notebook.px("import json; json.loads('{')", "--ranks 0")
    assert "in json.loads" in steady(shown.text)


def test_the_headline_is_the_first_line_of_a_long_message(notebook):
    shown = notebook.px("raise ValueError('first\\nsecond')", "--ranks 3")
    assert str(shown.error) == "rank 3 raised ValueError: first"
    assert "second" in shown.text


def test_a_syntax_error_shows_its_line(notebook):
    shown = notebook.px("x = 1\nprint(1", "--ranks 0")
    assert "line 2:  print(1" in steady(shown.text)
    assert "SyntaxError" in str(shown.error)


def test_a_cell_that_cannot_be_compiled_is_told_without_its_temporary_file(notebook):
    shown = notebook.px("def f(): pass\n\nprint(await f())", "--ranks 0")
    assert str(shown.error) == "rank 0 raised SyntaxError: 'await' outside function"
    assert "line 3:  print(await f())" in steady(shown.text)


def test_a_chained_error_tells_both(notebook):
    shown = notebook.px("try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('no a') from e", "--ranks 0")
    assert "KeyError: 'a'" in shown.text and "ValueError: no a" in shown.text


def test_a_message_that_cannot_be_printed_is_told(notebook):
    shown = notebook.px("class Odd(Exception):\n    def __str__(self): raise RuntimeError\nraise Odd", "--ranks 1")
    assert str(shown.error).startswith("rank 1 raised Odd: <its message cannot be printed")
    assert "line 3:  raise Odd" in shown.text


def test_a_rank_that_raises_frees_those_that_wait_for_it(notebook, group):
    notebook.px("mark = rank * 10")
    clock = stopwatch()
    shown = notebook.px("if rank == 1: raise ValueError('no')\ndist.all_reduce(one)")
    assert clock() < 4
    assert str(shown.error) == "rank 1 raised ValueError: no"
    waiting = "dist.all_reduce(one)\n                waits in all_reduce, collective 1, shape (1000,)"
    assert waiting in steady(shown.text)
    assert notebook.names["world"].pull("mark") == [0, 10, 20, 30]
    again = notebook.px("dist.init_process_group()\nn = torch.ones(1); dist.all_reduce(n); print(n.item())")
    assert again.text == "ranks 0–3   4.0"


def test_a_skipped_collective_ends_at_the_deadline_with_variables(notebook, group):
    notebook.px("mark = rank + 5")
    clock = stopwatch()
    shown = notebook.px("if rank != 3:\n    dist.all_reduce(one)", "--timeout 1")
    assert clock() < 4
    assert isinstance(shown.error, RankTimeout)
    assert str(shown.error) == (
        "After 1 s: ranks 0–2 wait in all_reduce for rank 3, which finished the cell without it."
    )
    assert "line 2:  dist.all_reduce(one)" in steady(shown.text)
    assert notebook.names["world"].pull("mark") == [5, 6, 7, 8]
    assert notebook.px("dist.init_process_group(); print(dist.get_world_size())").text == "ranks 0–3   4"


def test_two_ranks_that_receive_from_each_other_are_freed(notebook, group):
    shown = notebook.px("dist.recv(one, src=1 - rank)", "--timeout 1 --ranks 0,1")
    assert isinstance(shown.error, RankTimeout)
    assert "rank 0 receives from rank 1, rank 1 receives from rank 0" in shown.text
    assert notebook.px("dist.init_process_group(); print(dist.get_world_size())").text == "ranks 0–3   4"


def test_a_collective_that_nobody_waited_for_does_not_block_the_next_cell(notebook, group):
    shown = notebook.px(
        "import time\nif rank == 0: time.sleep(60)\nelse: work = dist.all_reduce(one, async_op=True)", "--timeout 1"
    )
    assert str(shown.error).startswith("After 1 s: ")
    clock = stopwatch()
    assert notebook.px("print('here')").text == "ranks 0–3   here"
    assert clock() < 3


def test_ranks_are_asked_what_they_called_only_after_a_cell_that_called(notebook, group, monkeypatch):
    asked = []
    monkeypatch.setattr(cells, "ask", lambda _, rank, question: asked.append(rank))
    notebook.px("print(rank)")
    assert asked == []
    notebook.px("dist.all_reduce(one)")
    assert asked == [0, 1, 2, 3]
    notebook.px("print(rank)")
    assert asked == [0, 1, 2, 3]


def test_one_cell_may_make_a_group_several_times(notebook):
    # Each group meets at a port of its own, agreed on in the group before: torch serves a store at MASTER_PORT again
    # only when rank 0 has destroyed the last one, and a rank that calls sooner is cut off by that.
    notebook.run("world.restart()")
    shown = notebook.px(
        "import os, socket, torch, torch.distributed as dist\n"
        "for _ in range(3):\n"
        "    dist.init_process_group()\n"
        "    n = torch.ones(1); dist.all_reduce(n)\n"
        "    with socket.create_server(('127.0.0.1', 0)) as free:\n"
        "        port = torch.tensor([free.getsockname()[1]])\n"
        "    dist.broadcast(port, src=0)\n"
        "    dist.destroy_process_group()\n"
        "    os.environ['MASTER_PORT'] = str(port.item())\n"
        "    print(n.item())",
        "--timeout 20",
    )
    assert shown.text == "ranks 0–3   4.0\n            4.0\n            4.0", shown


def test_the_store_of_the_first_group_ends_with_it_within_the_cell(notebook):
    notebook.run("world.restart()")
    notebook.px("import torch.distributed as dist")
    port = notebook.names["world"].processes.master_port
    shown = notebook.px(
        "import socket, time\n"
        "from ranklab.rank import meeting\n"
        "dist.init_process_group()\n"
        "dist.barrier()\n"  # a rank that leaves at once would cut others off while they still connect
        "begun, served = time.monotonic(), True\n"
        "while meeting._store is not None and time.monotonic() - begun < 5:\n"
        "    time.sleep(0.01)\n"
        "dist.destroy_process_group()\n"
        "while served and time.monotonic() - begun < 5:\n"
        f"    served = socket.socket().connect_ex(('127.0.0.1', {port})) == 0\n"
        "print(served)",
        "--timeout 20",
    )
    assert shown.text == "ranks 0–3   False", shown


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads Linux's table of sockets")
def test_the_store_of_the_first_group_listens_on_loopback_only(notebook):
    notebook.run("world.restart()")
    port = notebook.names["world"].processes.master_port
    listening = [c.laddr.ip for c in psutil.net_connections("tcp") if c.status == "LISTEN" and c.laddr.port == port]
    assert listening == ["127.0.0.1"]


def test_an_error_that_is_its_own_cause_is_told_once(notebook):
    shown = notebook.px("e = ValueError('own')\nraise e from e", "--ranks 0")
    assert str(shown.error) == "rank 0 raised ValueError: own"


def test_an_endless_loop_ends_at_the_deadline(notebook):
    shown = notebook.px("while rank == 1:\n    pass", "--timeout 1")
    assert str(shown.error) == "After 1 s: rank 1 is still at work, and waits for no other rank that torch knows of."
    assert "line" in shown.text and "rank 1   " in shown.text
    assert notebook.px("print(rank)").text.count("\n") == 3


def test_a_killed_rank_is_told_and_replaced(notebook):
    notebook.px("mark = rank")
    shown = notebook.px("import os, signal\nif rank == 2: os.kill(os.getpid(), signal.SIGKILL)")
    assert (
        str(shown.error)
        == "rank 2 was killed by SIGKILL in line 2:  if rank == 2: os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert "The next cell starts rank 2 again, without variables" in shown.text
    shown = notebook.px("import os; print(os.environ['RANK'], 'mark' in globals())")
    assert shown.text.splitlines() == ["rank 0   0 True", "rank 1   1 True", "rank 2   2 False", "rank 3   3 True"]


def test_a_rank_that_exits_is_told(notebook):
    shown = notebook.px("import os\nif rank == 0: os._exit(3)")
    assert str(shown.error) == "rank 0 ended with exit status 3 in line 2:  if rank == 0: os._exit(3)"


def test_noblock_returns_ipyparallels_result(notebook):
    shown = notebook.run("%%px --noblock --out later\nrank + 1")
    assert shown.error is None
    assert notebook.names["later"].wait_for_output(300)
    replies = notebook.names["later"].get()
    assert [reply.execute_result["data"]["text/plain"] for reply in replies] == ["1", "2", "3", "4"]


def test_px_line_magic(notebook):
    assert notebook.run("%px print('line', rank // 4)").text == "ranks 0–3   line 0"


def test_the_environment_of_a_rank_has_no_key_in_its_panel(notebook):
    """The connection key is in the engine's environment; ranklab itself never shows it."""
    assert "IPP_CONNECTION_INFO" not in os.environ
    world = notebook.names["world"]
    assert "key" not in world.commands() and "IPP" not in world.commands()
