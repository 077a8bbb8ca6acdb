"""Graders of the chapter on launching: the right answer passes, each classic mistake gets its own sentence."""

import pytest
from support import started

from ranklab import check
from ranklab.check.launching import from_spawn_to_torchrun


@pytest.fixture(scope="module")
def uneven(bare_notebook):
    """Three ranks on nodes of one and two."""
    with started(bare_notebook, "ranklab.start(nodes=[1, 2])") as ready:
        yield ready


def verdict(capsys, grader, answer):
    grader(answer)
    return capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda node, local, nodes: sum(nodes[:node]) + local, "Correct: the 3 ranks that run say the same"),
        (
            lambda node, local, nodes: node * nodes[node] + local,
            "With nodes=[1, 2], local rank 0 of node 1 is rank 1, your answer is 2.",
        ),
        (lambda node, local, nodes: node * nodes[0] + local, "With nodes=[3, 1, 2], local rank 0 of node 2 is rank 4"),
        (lambda node, local, nodes: local, "local rank 0 of node 1 is rank 1, your answer is 0."),
        (lambda node, local, nodes: node * len(nodes) + local, "is rank 1, your answer is 2."),
        (lambda node, local, nodes: sum(nodes[: node + 1]) + local, "is rank 0, your answer is 1."),
        (lambda node, local, nodes: str(sum(nodes[:node]) + local), "is rank 0, your answer is '0'."),
        (lambda node, local, nodes: None, "is rank 0, your answer is None."),
        (lambda node, local: node + local, "your answer raised TypeError"),
        (lambda node, local, nodes: nodes[node + 2], "your answer raised IndexError: list index out of range"),
    ],
)
def test_rank_of(uneven, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.rank_of, answer)


def commands(**change):
    """Return an answer that is right but for what is changed."""

    def node_commands(nodes):
        lines = []
        for node, processes in enumerate(nodes):
            words = {
                "begin": "torchrun",
                "nnodes": f"--nnodes={len(nodes)}",
                "rank": f"--node-rank={node}",
                "nproc": f"--nproc-per-node={processes}",
                "addr": "--master-addr=computer1",
                "port": "--master-port=5678",
                "script": "train.py",
            } | {name: word.format(node=node, nodes=nodes, size=len(nodes)) for name, word in change.items()}
            lines.append(" ".join(words.values()))
        return lines

    return node_commands


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (commands(), "Correct: torchrun reads 2 commands, and they say what the running ranks say; those for"),
        (commands(nproc="--nproc_per_node 1"), "The command of node 1: --nproc-per-node is 2"),
        (commands(nproc="--nproc_node=2"), "torchrun says: unrecognized arguments: --nproc_node=2."),
        (commands(addr="--master_address=computer1"), "unrecognized arguments: --master_address=computer1."),
        (commands(nnodes="--nnodes=3"), "--nnodes is 2, the number of nodes; yours is 3."),
        (commands(nnodes=""), "--nnodes is 2, the number of nodes; yours is 1:1."),
        (commands(nproc="--nproc-per-node=2"), "The command of node 0: --nproc-per-node is 1, the processes of this"),
        (commands(rank=""), "The command of node 1: --node-rank is 1; yours is 0."),
        (commands(port=""), "it names no --master-port"),
        (commands(addr=""), "without the --master-addr of node 0, a node looks for it on itself."),
        (commands(addr="--master-addr=computer{node}"), "node 0: --master-addr is computer1, where node 0 is"),
        (commands(addr="--master-addr=foo"), "--master-addr is computer1, where node 0 is; yours is foo."),
        (commands(script="other.py"), "The command of node 0: the program is train.py; yours is other.py."),
        (commands(script=""), "torchrun says: the following arguments are required: training_script"),
        (lambda nodes: commands()([1, 2]), "With nodes=[2, 1, 3]: There are 3 nodes: return a list of 3 commands."),
        (
            lambda nodes: commands()([1, 2, 1][: len(nodes)]),
            "With nodes=[2, 1, 3]: The command of node 0: --nproc-per-node is 2, the processes",
        ),
        (commands(port="--master-port=5{node}"), "All nodes need the same --master-port: that of node 0."),
        (commands(begin="torchrun --standalone"), "--standalone means one node"),
        (commands(begin="torchrun --rdzv-backend=c10d"), "leave out --rdzv-backend"),
        (commands(begin="python"), "it begins with 'python', not with torchrun."),
        (commands(script="-m train.py"), "node 0: leave out -m: train.py is a file for Python to run"),
        (commands(script="--no-python train.py"), "node 0: leave out --no-python"),
        (
            commands(begin="torchrun --rdzv-endpoint=elsewhere:1"),
            "--rdzv-endpoint takes the place of --master-addr, and node 0 is at computer1; yours is elsewhere.",
        ),
        (commands(addr="--rdzv-endpoint=computer1:5678", port=""), "Correct: torchrun reads 2 commands"),
        (commands(addr="--rdzv-endpoint=computer1", port=""), "--rdzv-endpoint names no port"),
        (commands(nnodes="--nnodes={size}:{size}"), "Correct: torchrun reads 2 commands"),
        (commands(nnodes="--nnodes=1:{size}"), "--nnodes is 2, the number of nodes; yours is 1:2."),
        (commands(nnodes="--nnodes=two"), "The command of node 0: torchrun says: invalid literal for int()"),
        (commands(begin="torchrun --help"), "The command of node 0: it prints torchrun's help and starts nothing."),
        (commands(script="'train.py"), "The command of node 0: a shell cannot read it: No closing quotation."),
        (commands(port="--master-port=any"), "torchrun says: argument --master-port/--master_port: invalid int value"),
        (lambda nodes: "torchrun train.py", "There are 2 nodes: return a list of 2 commands."),
        (lambda nodes: [], "There are 2 nodes: return a list of 2 commands."),
        (lambda nodes: nodes.items(), "Your answer raised AttributeError"),
    ],
)
def test_node_commands(uneven, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.node_commands, answer)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (
            lambda environ: (int(environ.get("RANK", 0)), int(environ.get("WORLD_SIZE", 1))),
            "Correct: 3 ranks know who they are, and a program without a launcher is rank 0 of 1.",
        ),
        (
            lambda environ: (int(environ["RANK"]), int(environ["WORLD_SIZE"])) if "MASTER_ADDR" in environ else (0, 1),
            "Correct: 3 ranks know who they are",
        ),
        (
            lambda environ: (int(environ["RANK"]), int(environ["WORLD_SIZE"])),
            "Without a launcher, your answer raised KeyError: 'RANK'",
        ),
        (
            lambda environ: (int(environ.get("LOCAL_RANK", 0)), int(environ.get("WORLD_SIZE", 1))),
            "On rank 1, rank and world size are (1, 3); your answer is (0, 3).",
        ),
        (
            lambda environ: (int(environ.get("RANK", 0)), int(environ.get("GROUP_WORLD_SIZE", 1))),
            "On rank 0, rank and world size are (0, 3); your answer is (0, 2).",
        ),
        (
            lambda environ: (environ.get("RANK", 0), environ.get("WORLD_SIZE", 1)),
            "On rank 0, rank and world size are (0, 3); your answer is ('0', '3').",
        ),
        (
            lambda environ: (int(environ.get("RANK", 0)), int(environ.get("WORLD_SIZE", 0))),
            "Without a launcher, rank and world size are (0, 1); your answer is (0, 0).",
        ),
        (lambda environ: None, "On rank 0, rank and world size are (0, 3); your answer is None."),
        (lambda environ: int(environ.get("RANK", 0)), "your answer is 0."),
        (lambda: (0, 1), "On rank 0, your answer raised TypeError"),
    ],
)
def test_who_am_i(uneven, capsys, answer, sentence):
    assert sentence in verdict(capsys, check.who_am_i, answer)


def test_local_numbers_are_no_global_ones(monkeypatch, capsys):
    """Where all ranks that run stand on one node, they are the same there."""
    monkeypatch.setattr(from_spawn_to_torchrun, "on_ranks", lambda ask, answer: [ask(answer)])
    for name in from_spawn_to_torchrun.TOLD:
        monkeypatch.setenv(name, str(int(name.endswith("SIZE"))))

    def local(environ):
        return int(environ.get("LOCAL_RANK", 0)), int(environ.get("LOCAL_WORLD_SIZE", 1))

    check.who_am_i(local)
    sentence = "Not yet. On rank 5 of two nodes, rank and world size are (5, 8); your answer is (1, 4).\n"
    assert capsys.readouterr().out == sentence
