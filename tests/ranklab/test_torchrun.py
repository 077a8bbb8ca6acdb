"""torchrun from a notebook: what is shown, what comes back, and what is refused in one sentence."""

import os
import subprocess
import sys

import pytest
from launches import HELLO, program
from support import steady

import ranklab
from ranklab.launch.commandline import C10D, STATIC, Launch, read_launch


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setenv("IPP_NONINTERACTIVE", "1")


def typed(**launch):
    return Launch("hello.py", **launch).typed().splitlines()


def test_one_node_meets_itself():
    assert typed(nodes=(4,)) == ["$ torchrun --standalone --nproc-per-node=4 hello.py"]


def test_each_node_has_its_own_command():
    lines = typed(nodes=(2, 1), rdzv=STATIC, names=("computer1", "computer2"), address="computer1")
    meeting = "--master-addr=computer1 --master-port=$PORT hello.py"
    assert lines == [
        f"computer1 $ torchrun --nnodes=2 --node-rank=0 --nproc-per-node=2 {meeting}",
        f"computer2 $ torchrun --nnodes=2 --node-rank=1 --nproc-per-node=1 {meeting}",
    ]


def test_c10d_takes_the_same_words_on_every_node():
    lines = typed(nodes=(2, 2), rdzv=C10D, address="computer1")
    same = "torchrun --nnodes=2 --nproc-per-node=2 --rdzv-backend=c10d --rdzv-endpoint=computer1:$PORT --rdzv-id=job"
    assert lines == [f"node 0 $ {same} hello.py", f"node 1 $ {same} hello.py"]


def test_arguments_are_quoted_as_a_shell_reads_them():
    launch = typed(arguments=("--name", "two words"), flags=("--max-restarts=3",))
    assert launch == ["$ torchrun --standalone --nproc-per-node=1 --max-restarts=3 hello.py --name 'two words'"]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"script": "missing.py"}, "missing.py does not exist. The path counts from the folder of the notebook."),
        ({"script": "."}, ". is a folder, not a program."),
        ({"script": None}, "Name the program to run"),
        ({"nproc_per_node": 0}, "A node needs at least one process, but nproc_per_node is 0."),
        ({"nproc_per_node": [2, 0]}, "A node needs at least one process, but nproc_per_node is [2, 0]."),
        ({"nproc_per_node": []}, "nproc_per_node is empty"),
        ({"nproc_per_node": "gpu"}, "nproc_per_node is a whole number"),
        ({"nproc_per_node": True}, "nproc_per_node is a whole number"),
        ({"nproc_per_node": [2, 1], "hosts": [object()]}, "There are 1 hosts for 2 nodes"),
        ({"nproc_per_node": 2, "hosts": [object()] * 2}, "give one number a host: nproc_per_node=[2, 2]."),
        ({"hosts": [object()] * 2}, "There are 2 hosts: give one number a host: nproc_per_node=[1, 1]."),
        ({"rdzv": "etcd"}, 'rdzv is "static" or "c10d", or left out, not \'etcd\'.'),
        ({"nproc_per_node": [1, 1], "standalone": True}, "standalone means one node that meets itself"),
        ({"nnodes": 2}, "torchrun() sets --nnodes itself: give one number a node"),
        ({"master_port": 1234}, "torchrun() sets --master-port itself: ranklab finds a free port."),
        ({"timeout": 0}, "timeout is a number of seconds greater than 0, not 0."),
        ({"timeout": "long"}, "timeout is a number of seconds greater than 0, not 'long'."),
    ],
)
def test_a_request_that_cannot_be_met_is_one_sentence(tmp_path, wrong, sentence):
    request = {"script": program(tmp_path, HELLO)} | wrong
    with pytest.raises(ranklab.WorldError) as raised:
        ranklab.torchrun(**request)
    assert sentence in str(raised.value)


def test_keywords_become_options(tmp_path):
    script = program(tmp_path, HELLO)
    flags = {"max_restarts": 3, "module": False, "run_path": True, "role": None}
    assert read_launch(script, (), 1, None, None, flags).flags == ("--max-restarts=3", "--run-path")


@pytest.mark.parametrize(("nodes", "rdzv"), [(3, None), ([2, 1], "c10d")])
def test_outputs_come_in_rank_order(quiet, tmp_path, nodes, rdzv):
    run = ranklab.torchrun(program(tmp_path, HELLO), nproc_per_node=nodes, rdzv=rdzv, show=False)
    assert run.failure is None, run.failure
    # Which node is the first is for c10d to decide; the order of outputs is that of ranks all the same.
    orders = [[0, 1, 2]] if nodes == 3 else [[0, 1, 0], [0, 0, 1]][: 1 + (rdzv == "c10d")]
    printed = [[f"{rank} of 3 local {local} sum 3\n" for rank, local in enumerate(order)] for order in orders]
    assert run.outputs in printed
    assert len(run.commands.splitlines()) == (1 if nodes == 3 else 2)


def test_arguments_and_variables_arrive(quiet, tmp_path):
    script = program(tmp_path, "import os, sys; print(sys.argv[1:], os.environ['MINE'], 'RANK' in os.environ)")
    run = ranklab.torchrun(script, "--steps", 3, env={"MINE": 7}, show=False)
    assert run.outputs == ["['--steps', '3'] 7 True\n"]


def test_the_reader_sees_it_once(bare_notebook, tmp_path):
    script = program(tmp_path, "print('hello')")
    bare_notebook.names["script"] = script
    first = bare_notebook.run("run = ranklab.torchrun(script, nproc_per_node=2)\nrun")
    assert first.error is None, first.error
    assert first.text.count("hello") == 1 and "ranks 0, 1   hello" in first.text
    assert "rl-commands" in first.html and ">--nproc-per-node=2</span>" in first.html and "rl-panel" in first.html
    again = bare_notebook.run("run")
    assert "ranks 0, 1   hello" in again.text
    assert steady(first.text.replace(script, "hello.py"))


def test_a_restart_keeps_what_each_attempt_printed(quiet, tmp_path):
    text = """
import os
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print("attempt", attempt, flush=True)
assert attempt > 0
"""
    run = ranklab.torchrun(program(tmp_path, text), nproc_per_node=1, max_restarts=1, show=False)
    assert run.failure is None
    assert run.attempts == [["attempt 0\n"], ["attempt 1\n"]] and run.outputs == run.attempts[-1]


def test_a_flag_that_does_not_exist_is_told_in_torchruns_words(quiet, tmp_path):
    run = ranklab.torchrun(program(tmp_path, HELLO), master_address="here", show=False)
    assert str(run.failure) == "torchrun refuses the command: unrecognized arguments: --master-address=here"
    assert run.outputs == [""]


def test_a_machine_whose_name_does_not_resolve_is_no_obstacle(tmp_path):
    """In a namespace of its own for the host name; skipped where the system allows none."""
    unshare = ["unshare", "--user", "--map-root-user", "--uts", "sh", "-c", 'hostname nowhere && exec "$@"', "sh"]
    try:
        subprocess.run([*unshare, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no user namespaces here")
    code = (
        "import ranklab, sys; script = sys.argv[1]\n"
        "for nodes in (2, [1, 1]):\n"
        "    run = ranklab.torchrun(script, nproc_per_node=nodes, show=False)\n"
        "    print(run.failure, len(run.outputs))\n"
    )
    environment = os.environ | {"IPP_NONINTERACTIVE": "1"}
    command = [*unshare, sys.executable, "-c", code, program(tmp_path, HELLO)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment, check=False)
    assert done.stdout == "None 2\nNone 2\n", done.stderr
