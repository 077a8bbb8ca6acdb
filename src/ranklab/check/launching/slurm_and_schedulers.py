"""Graders of the chapter *slurm-and-schedulers*; readers find them in :mod:`ranklab.check`.

A batch file is run by bash, and the programs that it calls only note how they were called; Slurm's manuals of sbatch
and srun say what they find in their environment.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...system.trial import finish
from ..grading import asked, entries, listed
from ..verdict import NotYet, Verdict, correct, grader, not_yet

CLUSTERS = ((4, 2, 2), (1, 3, 2), (2, 8, 1, 4))
PROGRAM = "train.py"
DEADLINE = 10.0  # seconds in which the processors were not with others
FIRST_JOB = 4711
NODELISTS = {
    "n1": ["n1"],
    "n[1-3]": ["n1", "n2", "n3"],
    "gpu[1-2],login3": ["gpu1", "gpu2", "login3"],
    "a[1,3-4],b2": ["a1", "a3", "a4", "b2"],
    "rack-7,rack-[9-11]": ["rack-7", "rack-9", "rack-10", "rack-11"],
    "n[08-10]": ["n08", "n09", "n10"],
    "n[098-101]": ["n098", "n099", "n100", "n101"],
}
STUBS = {
    "srun": """
tasks=$TASKS hosts=$HOSTS some=
while [ "${1#-}" != "$1" ]; do
  name=${1%%=*} value=${1#*=}
  case "$name" in
    --label|--exact|--overlap|--exclusive|--kill-on-bad-exit|--unbuffered|-[lKu]) ;;
    -[A-Za-z]?*) name=${1:0:2} value=${1:2} ;;
    *) if [ "$name" = "$1" ]; then value=$2; shift; fi ;;
  esac
  case "$name" in
    --ntasks-per-node) tasks=$value ;;
    --nodes|-N) some=$value ;;
    --nodelist|-w) hosts=${value//,/ } ;;
  esac
  shift
done
set -- "$(printf '%s ' $hosts | cut -d' ' -f1-${some:-99})" "$@"
hosts=$1 node=0 rank=0; shift
for host in $hosts; do
  for ((task = 0; task < tasks; task++)); do
    export NODE=$host SLURMD_NODENAME=$host SLURM_STEP_ID=0 SLURM_NODEID=$node
    SLURM_LOCALID=$task SLURM_PROCID=$rank "$@" </dev/null
    rank=$((rank + 1))
  done
  node=$((node + 1))
done
""",
    "scontrol": """
[ "$1 ${2%s} ${3-$SLURM_JOB_NODELIST}" = "show hostname $SLURM_JOB_NODELIST" ] && printf "%s\\n" $HOSTS
""",
    "hostname": 'echo "$NODE"',
    # One write a call: a batch file may start several at once.
    "torchrun": 'line=$(printf "%s\\t" "${SLURM_STEP_ID-none}" "$NODE" "$@"); echo "$line" >>"$CALLS"',
}


@dataclass
class Call:
    """One start of torchrun: by srun or by the batch script, on which host, and how."""

    by_srun: bool
    host: str
    options: argparse.Namespace


@grader
def uneven(answer: Callable[[list[int]], str]) -> Verdict:
    """Grade a batch file for nodes with different numbers of ranks, by what it starts on each node.

    Args:
        answer: ``uneven(nodes)`` returns the text of a batch file that runs train.py with ``nodes[i]`` ranks on node
            i, under one torchrun per node. It runs in the notebook, and a bash runs the file there, too.

    Exercise of the chapter *slurm-and-schedulers*.
    """
    for nodes in CLUSTERS:
        text, problem = asked(answer, list(nodes))
        where = f"uneven({list(nodes)})"
        if not problem and not (isinstance(text, str) and text.startswith("#!")):
            problem = "a batch file is a text whose first line begins with #!."
        problem = problem or _batch_problem(nodes, text)
        if problem:
            return not_yet(f"{where}: {problem}")
    return correct(f"on {len(CLUSTERS)} clusters each node starts its own number of ranks, and all meet at the first.")


def _batch_problem(nodes: Sequence[int], text: str) -> str:
    asks = _asks(text)
    if "hetjob" in asks:
        return "one job has all nodes here; leave out hetjob."
    if asks.get("nodes") != str(len(nodes)):
        return f"it asks for {asks.get('nodes', 'no number of')} nodes (#SBATCH --nodes); there are {len(nodes)}."
    ports = []
    for job in FIRST_JOB, FIRST_JOB + 1:
        calls = _run(nodes, text, asks.get("ntasks-per-node", "1"), job)
        if problem := _calls_problem(nodes, calls):
            return problem
        ports.append(_meeting(calls[0].options)[1])
    return "two jobs that share a node would meet at one port: make it depend on the job." * (ports[0] == ports[1])


def _asks(text: str) -> dict[str, str]:
    """Return what the #SBATCH lines ask for, those above the first command."""
    found: dict[str, str] = {}
    short = {"-N": "nodes", "-n": "ntasks", "-c": "cpus-per-task"}
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            break
        if not line.startswith("#SBATCH"):
            continue
        words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
        for number, word in enumerate(words):
            name, equals, value = word.partition("=")
            following = words[number + 1] if number + 1 < len(words) else ""
            if word[:2] in short and len(word) > 2:  # -N3
                found[short[word[:2]]] = word[2:]
            elif name.startswith("-") or name == "hetjob":
                found[short.get(name, name.lstrip("-"))] = value if equals else following
    return found


def _run(nodes: Sequence[int], text: str, tasks: str, job: int) -> list[Call]:
    """Run a batch file as the first node of its job would, and return how torchrun was started."""
    hosts = [f"node{number + 1}" for number in range(len(nodes))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for program, script in STUBS.items():
            (folder / program).write_text(f"#!/bin/bash\n{script}\n")
            (folder / program).chmod(0o755)
        (folder / "job.sbatch").write_text(text)
        environment = {
            "PATH": f"{folder}:{os.environ.get('PATH', os.defpath)}",
            "CALLS": str(folder / "calls"),
            "HOSTS": " ".join(hosts),
            "TASKS": tasks,
            "NODE": hosts[0],
            "SLURMD_NODENAME": hosts[0],
            "SLURM_JOB_ID": str(job),
            "SLURM_JOBID": str(job),  # its former name, which Slurm still sets
            "SLURM_JOB_NODELIST": f"node[1-{len(hosts)}]",
            "SLURM_NODELIST": f"node[1-{len(hosts)}]",
            "SLURM_NNODES": str(len(hosts)),
            "SLURM_JOB_NUM_NODES": str(len(hosts)),
            "SLURM_NTASKS": str(len(hosts)),
            "SLURM_NODEID": "0",
            "SLURM_PROCID": "0",
            "SLURM_LOCALID": "0",
        }
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        command = ["bash", "-c", "bash job.sbatch 2>errors"]
        try:
            child = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True, text=True, **pipes)
        except FileNotFoundError:
            raise NotYet("There is no bash on this machine, which would run the batch file.") from None
        try:
            finish([child], DEADLINE)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # what the batch file has started and left
        if child.returncode == -signal.SIGKILL:
            raise NotYet(f"The batch file did not end within {DEADLINE:g} s of its own.")
        noted = folder / "calls"
        if not noted.exists():
            said = (folder / "errors").read_text(errors="replace").strip().splitlines()[-1:]
            why = f" bash said: {said[0].replace(str(folder) + '/', '')}" if said else ""
            raise NotYet(f"The batch file for {list(nodes)} starts no torchrun.{why}")
        lines = noted.read_text().splitlines()
    return [_call(line.split("\t")[:-1]) for line in lines]


def _call(words: list[str]) -> Call:
    from torch.distributed.run import get_args_parser

    parser, said = get_args_parser(), io.StringIO()
    for action in parser._actions:  # here an option that was not given is "", and what was given is a text
        if action.nargs is None and action.option_strings:
            action.type, action.default = str, ""
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            options = parser.parse_args(words[2:])
    except SystemExit:
        raise NotYet(f"torchrun says: {said.getvalue().strip().rpartition('error: ')[2]}.") from None
    return Call(words[0] != "none", words[1], options)


def _meeting(options: argparse.Namespace) -> tuple[str, str]:
    if options.rdzv_endpoint:
        host, _, port = options.rdzv_endpoint.rpartition(":")
        return host, port
    return options.master_addr, options.master_port


def _calls_problem(nodes: Sequence[int], calls: Sequence[Call]) -> str:
    if not all(call.by_srun for call in calls):
        return "a torchrun stands in the batch script without srun, so it runs on the first node alone."
    for number in range(len(nodes)):
        times = [call.host for call in calls].count(f"node{number + 1}")
        if times > 1:
            return f"node {number} starts torchrun {times} times; one task per node is enough."
        if not times:
            return f"node {number} starts no torchrun."
    calls = sorted(calls, key=lambda call: int(call.host.removeprefix("node")))
    if len(calls) > 1 and all(call.options.node_rank == "0" for call in calls):
        return "each node is told that it is node 0. Who replaces $SLURM_NODEID, and where?"
    for number, call in enumerate(calls):
        if problem := _call_problem(nodes, number, call.options):
            return f"the torchrun of node {number}: {problem}"
    return ""


def _call_problem(nodes: Sequence[int], number: int, options: argparse.Namespace) -> str:
    if options.nnodes != str(len(nodes)):
        return f"--nnodes is {len(nodes)}; yours is {options.nnodes or 'missing'}."
    if options.nproc_per_node != str(nodes[number]):
        return f"--nproc-per-node is {nodes[number]}; yours is {options.nproc_per_node or 'missing'}."
    if options.rdzv_backend in ("", "static") and options.node_rank != str(number):
        return f"--node-rank is {number}; yours is {options.node_rank or 'missing'}."
    host, port = _meeting(options)
    if host != "node1":
        return f"all meet at the first node, node1; yours is {host or 'missing'}."
    if not port.isdigit():
        return f"--master-port is {port or 'missing'}, and not a number."
    if options.training_script != PROGRAM:
        return f"the program is {PROGRAM}; yours is {options.training_script}."
    return ""


@grader
def hostnames(answer: Callable[[str], Sequence[str]]) -> Verdict:
    """Grade the names that a list of Slurm's stands for.

    Args:
        answer: ``hostnames(nodelist)`` returns the names for ``"gpu[1-2],login3"``. It runs in the notebook.

    Exercise of the chapter *slurm-and-schedulers*.
    """
    for nodelist, expected in NODELISTS.items():
        given = entries(answer, f'hostnames("{nodelist}")', nodelist, what="a list of names")
        if given != expected:
            return not_yet(f'hostnames("{nodelist}"): {_names_problem(given, expected)}')
    return correct(f"{len(NODELISTS)} lists of nodes have the names that scontrol shows.")


def _names_problem(given: list, expected: list[str]) -> str:
    told = f"the names are {listed(expected)}; your answer is {given}"  # type: ignore[arg-type]
    if not all(isinstance(name, str) for name in given):
        return f"{told}: names are texts."
    if sorted(given) == sorted(expected):
        return f"{told}: the first node has to come first."
    if any(character in name for name in given for character in "[]"):
        return f"{told}: the brackets are not names."
    if [name.replace("0", "") for name in given] == [name.replace("0", "") for name in expected]:
        longer = any(len(mine) > len(right) for mine, right in zip(given, expected, strict=True))
        return (
            f"{told}: {'a number gets no zero that the list does not have' if longer else 'numbers keep their zeros'}."
        )
    if given == expected[:-1]:
        return f"{told}: the last number belongs to the range."
    return f"{told}."
