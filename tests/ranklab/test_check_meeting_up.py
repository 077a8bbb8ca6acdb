"""Graders of the chapter on meeting up: the right answer passes, each classic mistake gets its own sentence."""

import socket

import pytest
from support import started

from ranklab import check
from ranklab.check.ranks import meeting_up


@pytest.fixture(scope="module")
def uneven(bare_notebook):
    """Four ranks on nodes of three and one."""
    with started(bare_notebook, "ranklab.start(nodes=[3, 1])") as ready:
        yield ready


def verdict(capsys, grader, answer):
    answer.__module__ = "__main__"  # travels by value: a rank cannot import this file
    grader(answer)
    return capsys.readouterr().out.strip()


def told(order=(("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")), place="", alone="", number=int):
    """Return an answer that is right but for what is changed."""

    def how_to_meet(environ):
        import torch.distributed as dist

        for rank, size in order:
            if rank in environ:
                url = place or f"tcp://{environ['MASTER_ADDR']}:{environ['MASTER_PORT']}"
                return {"init_method": url, "rank": number(environ[rank]), "world_size": number(environ[size])}
        where = {"init_method": alone} if alone else {"store": dist.HashStore()}
        return {**where, "rank": 0, "world_size": 1}

    return how_to_meet


def by_the_size(environ):
    size = int(environ.get("WORLD_SIZE", environ.get("SLURM_NTASKS", 1)))
    rank = int(environ.get("RANK", environ.get("SLURM_PROCID", 0)))
    place = f"tcp://{environ['MASTER_ADDR']}:{environ['MASTER_PORT']}" if size > 1 else "tcp://127.0.0.1:0"
    return {"init_method": place, "rank": rank, "world_size": size}


def unasked_size(environ):
    rank = int(environ.get("RANK", environ.get("SLURM_PROCID", 0)))
    size = int(environ.get("WORLD_SIZE", environ.get("SLURM_NTASKS", 1)))
    return {"init_method": "env://", "rank": rank, "world_size": size}


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (told(), "Correct: in 7 situations the ranks met as they were told, 4 together or each alone."),
        (told(alone="tcp://127.0.0.1:0"), "Correct: in 7 situations"),
        (told(place="env://"), "Correct: in 7 situations"),
        (lambda environ: {"rank": int(environ["RANK"])}, "Under torchrun, on rank 0: your answer has no 'world_size'."),
        (
            lambda environ: {"rank": int(environ["RANK"]), "world_size": int(environ["WORLD_SIZE"])},
            "says nothing about the place: neither 'init_method' nor 'store'.",
        ),
        (told(number=str), "rank is '0', not a whole number; variables are text."),
        (lambda environ: ("env://", 0, 4), "your answer is a tuple, not a dictionary of arguments."),
        (by_the_size, "With plain python, WORLD_SIZE=4 left in the shell, on rank 0: your answer raised KeyError"),
        (unasked_size, "With plain python, on rank 0: the meeting raised ValueError: Error initializing"),
        (
            told(order=(("SLURM_PROCID", "SLURM_NTASKS"), ("RANK", "WORLD_SIZE"))),
            "Under torchrun, which srun started once per node, on rank 0: rank and world size are 0 and 4, "
            "your answer is 0 and 2.",
        ),
        (
            told(order=(("RANK", "WORLD_SIZE"),)),
            "Under srun, MASTER_ADDR and MASTER_PORT exported, on rank 0: rank and",
        ),
        (
            told(place="tcp://127.0.0.1:23455"),  # all ranks would meet there, on one computer
            "Under torchrun, on rank 0: where MASTER_ADDR is computer1 and MASTER_PORT is 23456, your answer still is "
            "'tcp://127.0.0.1:23455'.",
        ),
        (told(alone="tcp://127.0.0.1"), "With plain python, on rank 0: the meeting raised ValueError"),
    ],
)
def test_how_to_meet(uneven, capsys, answer, sentence):
    said = verdict(capsys, check.how_to_meet, answer)
    assert sentence in said
    assert said.startswith(("Correct:", "Not yet. "))


def test_the_readers_group_is_made_again(uneven, capsys):
    assert uneven.px("import torch.distributed as dist\ndist.init_process_group()").error is None
    assert "Correct" in verdict(capsys, check.how_to_meet, told())
    again = uneven.px("assert dist.get_world_size() == 4\ndist.barrier()\ndist.destroy_process_group()")
    assert again.error is None, again.error


def test_a_group_that_cannot_be_made_again_is_told(uneven, capsys, monkeypatch):
    def refused(port):
        raise ConnectionError("no store")

    refused.__module__ = "__main__"
    monkeypatch.setattr(meeting_up.smaller, "connect", refused)
    assert uneven.px("import torch.distributed as dist\ndist.init_process_group()").error is None
    said = verdict(capsys, check.how_to_meet, told())
    assert said.endswith('\nYour process group could not be made again: call dist.init_process_group("gloo").')


def test_nobody_else_takes_the_port_before_the_ranks_meet(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    port = meeting_up._hold_port()
    with pytest.raises(OSError, match="in use"), socket.socket() as stranger:
        stranger.bind(("127.0.0.1", port))
    meeting_up._leave()
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", port))


def levels(nodes):
    ends = [sum(nodes[: node + 1]) for node in range(len(nodes))]
    inner = [list(range(end - count, end)) for end, count in zip(ends, nodes, strict=True)]
    return inner, [ranks[0] for ranks in inner]


def equal_nodes(nodes):
    inner = [list(range(node * nodes[0], (node + 1) * nodes[0])) for node in range(len(nodes))]
    return inner, [ranks[0] for ranks in inner]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            levels,
            "Correct: added up over two levels, every rank has 10, as one process. "
            "The groups need 4 connections, one group of all needs 6.",
        ),
        (equal_nodes, "With nodes=[3, 1]: node 1 runs rank 3, your answer is [3, 4, 5]."),
        (lambda nodes: ([list(range(count)) for count in nodes], [0, 3]), "your answer is [0]. Those are local ranks."),
        (lambda nodes: (levels(nodes)[0], list(range(len(nodes)))), "is [0, 1]. Those are the numbers of the nodes."),
        (lambda nodes: (levels(nodes)[0], [g[-1] for g in levels(nodes)[0]]), "are [0, 3], your answer is [2, 3]."),
        (lambda nodes: (levels(nodes)[0][:1], [0]), "there are 2 nodes, your answer has 1 groups for them."),
        (lambda nodes: None, "return two lists: the ranks of each node, and the first ranks of the nodes."),
        (lambda nodes: ([nodes], 0), "return two lists: the ranks of each node, and the first ranks of the nodes."),
        (lambda nodes: nodes[9], "With nodes=[3, 1]: your answer raised IndexError: list index out of range"),
        (lambda nodes: (map(iter, levels(nodes)[0]), iter(levels(nodes)[1])), "Correct: added up over two levels"),
        (lambda nodes: 1 / 0, "your answer raised ZeroDivisionError"),
        (
            lambda nodes: levels(nodes) if nodes == [3, 1] else equal_nodes(nodes),
            "With nodes=[1, 3]: node 1 runs ranks 1, 2, 3, your answer is [1].",
        ),
    ],
)
def test_two_levels(uneven, capsys, answer, sentence):
    said = verdict(capsys, check.two_levels, answer)
    assert sentence in said
    assert said.startswith(("Correct:", "Not yet. "))


def test_who_has_met_does_not_leave_before_the_others_have(monkeypatch):
    """gloo has connected a rank before the others know; if it left at once, they would find it gone and fail."""
    import torch.distributed as dist

    done = []
    monkeypatch.setattr(dist, "init_process_group", lambda **given: done.append("met"))
    monkeypatch.setattr(dist, "get_world_size", lambda: 4)
    monkeypatch.setattr(meeting_up, "_leave", lambda: done.append("left"))
    for name in ("RANK", "LOCAL_RANK", "GROUP_RANK"):
        monkeypatch.setenv(name, "0")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    for name in ("WORLD_SIZE", "GROUP_WORLD_SIZE"):
        monkeypatch.setenv(name, "4")
    assert meeting_up._meet(told(), 0, 1) == (4, "")
    assert done == ["met"]
