"""Ranks and nodes as data: numbering, the environment of torchrun, and what readers may ask for."""

import json
import socket
import subprocess
import sys

import pytest

from ranklab.errors import WorldError
from ranklab.layout import name_ranks, places, read_layout, read_ranks


def test_uneven_nodes_are_numbered_node_by_node():
    numbers = [(place.rank, place.node_rank, place.local_rank, place.local_world_size) for place in places([2, 1])]
    assert numbers == [(0, 0, 0, 2), (1, 0, 1, 2), (2, 1, 0, 1)]
    assert {place.world_size for place in places([2, 1])} == {3}
    assert {place.nnodes for place in places([2, 1])} == {2}


def test_two_nodes_of_eight_are_ranks_0_to_15():
    assert [place.rank for place in places([8, 8])] == list(range(16))
    assert [place.rank for place in places([8, 8]) if place.local_rank == 3] == [3, 11]


def test_the_environment_is_what_torchrun_sets_on_two_uneven_nodes(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    script = tmp_path / "dump.py"
    script.write_text("import json, os; print(json.dumps(dict(os.environ)))")
    agents = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "torch.distributed.run", "--nnodes=2", f"--nproc-per-node={processes}"),
                *(f"--node-rank={node}", "--master-addr=127.0.0.1", f"--master-port={port}"),
                *("--redirects=3", f"--log-dir={tmp_path / str(node)}", str(script)),
            ],
            stderr=subprocess.DEVNULL,
        )
        for node, processes in enumerate([2, 1])
    ]
    assert [agent.wait(90) for agent in agents] == [0, 0]
    logs = sorted(tmp_path.glob("*/*/attempt_0/*/stdout.log"))
    theirs = [json.loads(log.read_text()) for log in logs]
    for place, environment in zip(places([2, 1]), theirs, strict=True):
        ours = place.environment("127.0.0.1", port)
        assert ours == {name: environment[name] for name in ours if name in environment}
        # What torchrun sets for its workers beyond ours belongs to the elastic agent, which these ranks lack.
        extra = {
            name for name in environment if name.startswith(("RANK", "LOCAL_", "GROUP_", "ROLE_", "WORLD_", "MASTER_"))
        }
        assert extra <= set(ours)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"size": 0}, "at least one rank"),
        ({"size": -2}, "at least one rank"),
        ({"size": "four"}, "whole number, for example start(4), but it is 'four'"),
        ({"size": 2.0}, "whole number"),
        ({"size": True}, "whole number"),
        ({"nodes": []}, "nodes is empty"),
        ({"nodes": [2, 0]}, "at least one rank"),
        ({"nodes": "2,1"}, "lists the processes of each node"),
        ({"nodes": 3}, "lists the processes of each node"),
        ({"size": 4, "nodes": [2, 2]}, "not both"),
    ],
)
def test_a_request_that_makes_no_sense_gets_one_sentence(arguments, sentence):
    with pytest.raises(WorldError) as caught:
        read_layout(**arguments)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_number_is_one_node_and_nothing_is_four_ranks():
    assert read_layout(3) == (3,)
    assert read_layout() == (4,)
    assert read_layout(nodes=(2, 1)) == (2, 1)


@pytest.mark.parametrize(
    ("text", "ranks"),
    [("0,2", [0, 2]), ("1-3", [1, 2, 3]), ("3,0", [0, 3]), ("all", [0, 1, 2, 3]), ("[0, 2]", [0, 2]), ("2", [2])],
)
def test_ranks_are_read(text, ranks):
    assert read_ranks(text, 4) == ranks


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("9", "There is no rank 9: this world has ranks 0 to 3."),
        ("two", "--ranks takes numbers"),
        ("-1", "--ranks takes numbers"),
        ("3-1", "names no rank: write the smaller number first"),
        ("0,3-1", "--ranks 3-1 names no rank"),
        ("", "--ranks takes numbers"),
    ],
)
def test_ranks_that_do_not_exist_get_one_sentence(text, sentence):
    with pytest.raises(WorldError, match=sentence.replace("-", "[-]")):
        read_ranks(text, 4)


@pytest.mark.parametrize(
    ("ranks", "name"),
    [
        ([2], "rank 2"),
        ([0, 1], "ranks 0, 1"),
        ([0, 1, 2, 3], "ranks 0–3"),
        ([0, 2], "ranks 0, 2"),
        ([5, 0, 1, 2], "ranks 0–2, 5"),
    ],
)
def test_ranks_are_named_shortly(ranks, name):
    assert name_ranks(ranks) == name
