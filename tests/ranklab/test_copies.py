"""Ranks of a launch that are copies of a process that has imported torch: what a program finds is what Python gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from launches import program

import ranklab
from ranklab.launch import agents
from ranklab.launch.copied import may_copy
from ranklab.launch.quick import copies
from ranklab.system.deadman import HOME

COPIED = sys.platform == "linux"
FACTS = """
import json, os, signal, sys, traceback
import torch

class Mine:
    pass

loader, frames = [type(__loader__).__name__, __annotations__], len(traceback.extract_stack())
streams = [(s.encoding, s.errors, s.line_buffering, s.write_through) for s in (sys.stdout, sys.stderr)]
signals = [str(signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)]
alone = sys.modules["__main__"] is sys.modules[Mine.__module__]
leads, threads = os.getsid(0) == os.getpid(), torch.get_num_threads()
cpus = sorted(os.sched_getaffinity(0))
opened = [os.readlink("/proc/self/fd/0"), sorted(map(int, os.listdir("/proc/self/fd")))[:-1]]
told = [sys.argv, sys.path, __name__, __file__, __spec__, __package__, alone, os.getcwd(), dict(os.environ)]
print(json.dumps([*told, loader, sys.orig_argv, cpus, leads, threads, streams, signals, opened]))
"""
HOWS = [
    "def fail(x):\n    return 1 / x\nfail(0)",
    "raise SystemExit(3)",
    "import sys; sys.exit('in words')",
    "import atexit; atexit.register(print, 'the end'); raise KeyboardInterrupt",
    "import sys; sys.stderr = None; raise OSError(28, 'no space')",
    "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise ExceptionGroup('two', [ValueError(1), KeyError('k')])",
    "import atexit, sys; atexit.register(lambda: print(sys.last_value, sys.last_traceback.tb_lineno)); [][1]",
    "def",
    "import atexit; atexit.register(print, 'the end'); print('begins')",
    "import os; os.kill(os.getpid(), 9)",
    "import threading, time; threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()",
]
DRAWN = """
import random, os
import torch, numpy
print(random.random(), numpy.random.rand(), torch.rand(1).item(), torch.initial_seed())
"""
SPAWNS = """
import multiprocessing

def double(x):
    return 2 * x

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(double, [21]))
"""
HOOKED = "import sys\ndef hook(*_): raise OSError(28, 'no space')\nsys.excepthook = hook\nraise ValueError"
RESTARTS = """
import os, sys
began = "torch" in sys.modules
import torch
print(began, os.environ["TORCHELASTIC_RESTART_COUNT"])
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    raise SystemExit(1)
"""
LATE = """
import os, sys
print("torch" in sys.modules)
os.environ["TORCH_SHOW_CPP_STACKTRACES"] = "1"
import torch
"""


DRIVER = """
import json, os, subprocess, sys
from types import SimpleNamespace
from ranklab.launch.quick import copies
os.environ["OMP_NUM_THREADS"] = "2"
import torch
del sys.path[0]
try:
    nursery = copies.Nursery()
except copies.Born as born:
    asked = born.args
else:
    asked = ()
if asked:
    copies.become(*asked)
    raise SystemExit

def ends(start, path):
    with open(path + ".out", "w+") as out, open(path + ".err", "w+") as err:
        status = start((sys.executable, "-u", path, "--word"), out, err).wait(300)
        out.seek(0), err.seek(0)
        return [status, out.read(), err.read()]

def python(args, out, err):
    return subprocess.Popen(args, stdout=out, stderr=err, stdin=subprocess.DEVNULL, start_new_session=True)

def copy(args, out, err):
    rank = nursery.start(SimpleNamespace(_stdout=out, _stderr=err), args, dict(os.environ))
    assert rank is not None
    return rank

for path in sys.argv[1:]:
    print(json.dumps([ends(python, path), ends(copy, path)]))
"""

ENDS = """
import json, os, signal, sys
from types import SimpleNamespace
import psutil
from ranklab.launch.quick import copies

def start(nursery):
    streams = SimpleNamespace(_stdout=sys.stderr, _stderr=sys.stderr)
    return nursery.start(streams, (sys.executable, "-u", sys.argv[1]), dict(os.environ))

def begin():
    try:
        return copies.Nursery()
    except copies.Born as born:
        asked = born.args
    copies.become(*asked)
    raise SystemExit

def children():
    return [(child.pid, child.status()) for child in psutil.Process().children()]

nursery = begin()
((first, _),) = children()
rank = start(nursery)
left = [pid for pid, _ in children() if pid not in (first, rank.pid)]
ended = rank.wait(300)
os.kill(first, signal.SIGKILL)
os.waitpid(first, 0)
after = start(nursery)
copies._note = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
late = start(begin())
psutil.wait_procs(psutil.Process().children(), timeout=300)
running = [pid for pid, status in children() if status != psutil.STATUS_ZOMBIE]
print(json.dumps([left, ended, after, late, running]))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """How each program ends under Python and as a copy: its status, what it printed, and what it said of an error."""
    if not COPIED:
        pytest.skip("ranks are copied on Linux only")
    folder = tmp_path_factory.mktemp("programs")
    paths = [program(folder, text, f"{number}.py") for number, text in enumerate([FACTS, DRAWN, SPAWNS, HOOKED, *HOWS])]
    command = [sys.executable, program(folder, DRIVER, "driver.py"), *paths]
    run = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600)
    assert run.returncode == 0, run.stderr
    return dict(zip([FACTS, DRAWN, SPAWNS, HOOKED, *HOWS], map(json.loads, run.stdout.splitlines()), strict=True))


def launch(path, seed="0", **options):
    return ranklab.torchrun(path, show=False, timeout=600, env={"PYTHONHASHSEED": seed}, **options)


def test_a_program_finds_what_python_would_give_it(told):
    (status, fresh, _), (same, copy, _) = told[FACTS]
    assert (status, same) == (0, 0) and json.loads(copy) == json.loads(fresh)


@pytest.mark.parametrize("how", HOWS)
def test_a_program_ends_as_under_python(told, how):
    fresh, copy = told[how]
    assert copy == fresh


def test_a_hook_that_fails_is_told_with_what_it_should_have_shown(told):
    status, _, said = told[HOOKED][1]
    assert status == 1 == told[HOOKED][0][0]
    assert "Error in sys.excepthook:" in said and "no space" in said and "Original exception was:" in said


def test_a_copy_draws_numbers_of_its_own(told):
    (_, fresh, _), (status, copy, _) = told[DRAWN]
    both = fresh.split() + copy.split()
    assert status == 0 and len(both) == 8 == len(set(both))


def test_a_copy_may_spawn(told):
    assert told[SPAWNS][1] == [0, "[42]\n", ""]


@pytest.mark.skipif(not COPIED, reason="ranks are copied on Linux only")
def test_where_the_process_that_is_copied_ends_python_starts_the_rank_and_none_runs_twice(tmp_path):
    paths = [program(tmp_path, ENDS, "ends.py"), program(tmp_path, "print('runs')")]
    run = subprocess.run([sys.executable, *paths], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == [[], 0, None, None, []]
    assert run.stderr == "runs\n"  # once: the rank whose start nobody was told of has ended by itself


def test_two_copies_draw_different_numbers_and_have_one_parent_that_ends_with_them(tmp_path):
    text = DRAWN + "print(os.getpid(), os.getppid())"
    one, other = (output.split() for output in launch(program(tmp_path, text), nproc_per_node=2).outputs)
    assert one[-1] == other[-1] and len({*one, *other}) == len(one) + len(other) - 1
    for pid in (one[-2], *other[-2:]):
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)


@pytest.mark.skipif(not COPIED, reason="ranks are copied on Linux only")
def test_a_restart_gets_a_copy_too(tmp_path):
    run = launch(program(tmp_path, RESTARTS), max_restarts=1)
    assert run.attempts == [["True 0\n"], ["True 1\n"]] and run.failure is None


def test_a_fresh_rank_imports_torch_itself(tmp_path):
    path = program(tmp_path, "import sys; print('torch' in sys.modules)\nimport torch")
    assert launch(path, fresh=True).outputs == ["False\n"]
    assert launch(path).outputs == [f"{COPIED}\n"]
    # Ranks that disagree about the order of a set are a lesson, and copies would agree.
    assert launch(path, seed="random").outputs == ["False\n"]


def test_a_program_that_sets_variables_before_it_imports_torch_is_fresh(tmp_path):
    assert launch(program(tmp_path, LATE)).outputs == ["False\n"]


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("import os, torch\nos.environ['A'] = 'b'", True),
        ("import os\nos.environ['A'] = 'b'\nimport torch", False),
        ("from os import environ\nimport torch", False),
        ("import os\nos.putenv('A', 'b')\nfrom torch import nn", False),
        ("import os\nrank = int(os.environ['RANK'])\nimport torch", False),  # it only reads, but who knows
        ("'''os.environ'''\nimport time\nfrom torch.nn import Linear", False),
        ("'''Words.'''\nimport time\nfrom torch.nn import Linear", True),
        ("import settings\nimport torch", False),
        ("import settings, torch", False),
        ("import torch, settings", True),
        ("try:\n    import settings\nexcept ImportError:\n    pass\nimport torch", False),
        ("def main():\n    import torch\n    import settings", False),
        ("def main():\n    import torch", True),
        ("import importlib\nimportlib.import_module('settings')\nimport torch", False),
        ("from dotenv import load_dotenv\nload_dotenv()\nimport torch", False),
        (f"x = {' + '.join('1' * 4000)}\nimport torch", False),  # too deep for ast, and not for Python
        ("from settings import size\nimport torch", False),
        ("import torch\nimport settings", True),
        ("from package.part import size\nimport torch", False),
        ("print('no torch')", True),
        ("def", False),
        ("", True),
    ],
)
def test_what_may_be_copied(tmp_path, text, may):
    (tmp_path / "settings.py").touch()
    (tmp_path / "package").mkdir()
    assert may_copy(Path(program(tmp_path, text))) is may


def test_a_module_of_pythons_own_name_beside_the_program_is_found_first_by_python_alone(tmp_path):
    (tmp_path / "profile.py").touch()
    assert not may_copy(Path(program(tmp_path, "import torch")))
    assert may_copy(Path(program(tmp_path, "import torch", "profile.py")))  # it does not import itself


def test_what_is_beside_a_program_is_beside_the_file_that_a_link_leads_to(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "settings.py").touch()
    path = program(tmp_path / "there", "import settings\nimport torch")
    (tmp_path / "link.py").symlink_to(path)
    assert not may_copy(tmp_path / "link.py")


def test_a_program_that_cannot_be_read_is_left_to_python(tmp_path):
    assert not may_copy(tmp_path / "missing.py")


def test_the_folder_of_the_launch_is_the_one_that_the_doctor_looks_for():
    assert copies.HOME == HOME and agents.QUICK == copies.HERE
