"""The graders of slurm-and-schedulers: right answers pass, each classic mistake is told in its own sentence."""

import re
import shutil
import subprocess

import pytest
from batch_files import by_c10d, one_srun_per_node, right

from ranklab import check
from ranklab.check.launching import slurm_and_schedulers as graders


def said(capsys, grader, answer) -> str:
    grader(answer)
    return capsys.readouterr().out.strip()


def changed(old, new):
    def answer(nodes):
        text = right(nodes)
        assert old in text
        return text.replace(old, new)

    return answer


@pytest.mark.parametrize("answer", [right, one_srun_per_node, by_c10d])
def test_each_node_gets_its_own_number(capsys, answer):
    assert said(capsys, check.uneven, answer).startswith("Correct: on 3 clusters")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (changed("${counts[$SLURM_NODEID]}", "4"), "the torchrun of node 1: --nproc-per-node is 2; yours is 4."),
        (changed("bash -c 'counts", 'bash -c "counts'), "starts no torchrun. bash said: "),
        (changed("=$SLURM_NODEID", "=0"), "each node is told that it is node 0. Who replaces $SLURM_NODEID"),
        (changed("=$SLURM_NODEID", "=$SLURM_LOCALID"), "each node is told that it is node 0."),
        (changed("ntasks-per-node=1", "ntasks-per-node=2"), "node 0 starts torchrun 2 times; one task per node"),
        (changed("srun bash", "bash"), "a torchrun stands in the batch script without srun"),
        (changed("$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)", "$SLURM_JOB_NODELIST"), "node[1-3]."),
        (changed("--master-addr=$MASTER_ADDR", "--master-addr=$(hostname)"), "node 1: all meet at the first node"),
        (changed("$((20000 + SLURM_JOB_ID % 10000))", "23456"), "two jobs that share a node would meet at one port"),
        (changed("--master-port=$MASTER_PORT", ""), "--master-port is missing"),
        (changed("--nnodes=$SLURM_NNODES", ""), "--nnodes is 3; yours is missing."),
        (changed("--node-rank=$SLURM_NODEID", ""), "--node-rank is 0; yours is missing."),
        (changed("train.py", "main.py"), "the program is train.py; yours is main.py."),
        (changed("--ntasks-per-node=1", "--hetjob"), "leave out hetjob"),
        (lambda nodes: right(nodes).replace(f"--nodes={len(nodes)}", "--nodes=2"), "it asks for 2 nodes"),
        (lambda nodes: right(nodes).replace("#SBATCH", "# SBATCH"), "it asks for no number of nodes"),
        (lambda nodes: None, "a batch file is a text"),
        (lambda nodes: 1 / 0, "your answer raised ZeroDivisionError"),
    ],
)
def test_a_wrong_batch_file_is_told_why(capsys, wrong, sentence):
    told = said(capsys, check.uneven, wrong)
    assert told.startswith("Not yet. ")
    assert sentence in told


def test_a_batch_file_that_does_not_end_is_ended(capsys, monkeypatch):
    monkeypatch.setattr(graders, "DEADLINE", 0.5)
    endless = changed("srun bash", "sleep 60; srun bash")
    assert "did not end within 0.5 s" in said(capsys, check.uneven, endless)


def expand(nodelist):
    names = []
    for prefix, inside in re.findall(r"([^,\[]+)(?:\[([^\]]*)\])?", nodelist):
        for part in inside.split(","):
            first, _, last = part.partition("-")
            numbers = range(int(first), int(last or first) + 1) if first else []
            names += [f"{prefix}{number:0{len(first)}}" for number in numbers] or [prefix]
    return names


def without_zeros(nodelist):
    return [re.sub("0+([1-9])", r"\1", name) for name in expand(nodelist)]


def without_the_last(nodelist):
    return expand(nodelist)[:-1] if "-3]" in nodelist else expand(nodelist)


def test_the_names_of_a_list(capsys):
    assert said(capsys, check.hostnames, expand).startswith("Correct: 7 lists")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda nodelist: nodelist.split(","), 'hostnames("n[1-3]"): the names are n1, n2 and n3'),
        (lambda nodelist: nodelist.split(","), "the brackets are not names."),
        (without_zeros, "numbers keep their zeros."),
        (without_the_last, "the last number belongs to the range."),
        (lambda nodelist: expand(nodelist)[::-1], "the first node has to come first."),
        (lambda nodelist: 3, "a list of names is expected"),
        (lambda nodelist: [1], "names are texts."),
    ],
)
def test_wrong_names_are_told_why(capsys, wrong, sentence):
    told = said(capsys, check.hostnames, wrong)
    assert told.startswith("Not yet. ")
    assert sentence in told


@pytest.mark.skipif(not shutil.which("scontrol"), reason="Slurm is not installed (Debian: slurm-client)")
def test_scontrol_says_the_same(tmp_path, monkeypatch):
    (tmp_path / "slurm.conf").write_text("ClusterName=none\nSlurmctldHost=none\n")
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "slurm.conf"))
    for nodelist, names in graders.NODELISTS.items():
        shown = subprocess.run(["scontrol", "show", "hostnames", nodelist], capture_output=True, text=True, check=True)
        assert shown.stdout.split() == names
