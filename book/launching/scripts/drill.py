"""Disturb an elastic job between two steps, and read who noticed: the plumbing of the chapter *elastic*.

The job is elastic.py with --gate, which stands still after the step that a file names. Every host writes two files into
the job's folder: ``<host>.log`` has one line per step, and ``<host>.torchrun`` what its torchrun says.
"""

import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import psutil

PROGRAM = "scripts/elastic.py"
# + is DEBUG: only then does torchrun say that it takes a silent host off the list.
LOGS = {"LOGLEVEL": "INFO", "TORCH_LOGS": "+torch.distributed.elastic.rendezvous"}
ADDED = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""} | LOGS
TOLD = r"Worker group FAILED.*|Detected \d+ new nodes.*|Detected dead node .*"
LINE = rf"(?m)^.(\d{{4}} [\d:.]+) .*\] (?:\[default\] )?({TOLD})$"
PATIENCE = 540  # seconds; less than the ten minutes that a cell has


class Drill:
    """A job on the hosts of a lab.

    Attributes:
        faults: one dict per fault: its name, when it ``began``, and, from the first new steps on, who ``noticed`` it
            as (host, words, time), when the first new step came ``back``, in a world of how many ``ranks``, and how
            many steps were done ``twice``.
    """

    def __init__(self, folder, settings, environment):
        self.folder, self.settings, self.environment = Path(folder), settings, environment
        self.faults, self._seen = [], {}

    def start(self, host):
        """Start torchrun on a host, in the background, as you would type it there; its last call is :func:`patient`."""
        torchrun = [sys.executable, "-m", "torch.distributed.run", *patient(self.settings).split()]
        job = [PROGRAM, "--gate", "--folder", str(self.folder)]
        with open(self.folder / f"{host.name}.torchrun", "ab") as said:
            files = {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": said}
            return host.popen([*torchrun, *job], env=os.environ | ADDED | self.environment, **files)

    def steps(self, name):
        """What the ranks of one host have logged: one dict per step."""
        path = self.folder / f"{name}.log"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def begin(self, fault):
        """Note that a fault begins."""
        self.faults.append({"fault": fault, "began": time.time()})

    def open_gate(self, step):
        """Let the job run to a step; do not wait."""
        (self.folder / "next").write_text(str(step))
        os.replace(self.folder / "next", self.folder / "GATE")

    def run_to(self, step, *names):
        """Let the job run to a step on these hosts and no others; wait, and print who has which rank."""
        before = max((line["step"] for name in self._seen for line in self._old(name)), default=0)
        self.open_gate(step)
        self.wait_for(lambda: all(self._stands(name, step, len(names)) for name in names))
        places = sorted((self._new(name)[-1]["rank"], name) for name in names)
        print(f"step {step}:", ", ".join(f"rank {rank} on {name}" for rank, name in places))
        new = self._new(names[0])
        again = [line["step"] for line in new if line["step"] <= before]
        if again:
            print(f"done again: steps {min(again)} to {max(again)}")
        if self.faults and "twice" not in self.faults[-1]:
            told = {"twice": len(again), "ranks": len(names), "noticed": self.noticed()}
            self.faults[-1].update(told, back=new[0]["time"])
        self._seen = {path.stem: len(self.steps(path.stem)) for path in self.folder.glob("*.log")}

    def noticed(self):
        """Which torchruns restart their rank since the last fault: (host, words, time)."""
        return [told for told in self._said() if "dead node" not in told[1]]

    def who_noticed(self):
        """Print what torchruns said of the last fault; the number of new nodes depends on who looks when."""
        for name, words, _ in self.noticed():
            print(f"{name}'s torchrun: {re.sub(r'Detected [0-9]+', 'Detected …', words)}")

    def taken_off_the_list(self):
        """Wait until a silent torchrun is taken off the list of members; return the name of its host."""
        self.wait_for(lambda: any("dead node" in words for _, words, _ in self._said()))
        gone = next(words for _, words, _ in self._said() if "dead node" in words)
        return re.search(r"'(\w+?)_", gone)[1]

    def wait_for_resent(self, host, packets):
        """Wait until TCP has sent so many packets again on a host."""
        before = _resent(host)
        self.wait_for(lambda: _resent(host) >= before + packets)

    def _said(self):
        found = []
        for path in sorted(self.folder.glob("*.torchrun")):
            for stamp, words in re.findall(LINE, path.read_text()):
                when = datetime.strptime(f"{datetime.now().year}{stamp}", "%Y%m%d %H:%M:%S.%f").timestamp()
                if when > self.faults[-1]["began"]:
                    found.append((path.stem, words, when))
        return found

    def _old(self, name):
        return self.steps(name)[: self._seen.get(name, 0)]

    def _new(self, name):
        return self.steps(name)[self._seen.get(name, 0) :]

    def _stands(self, name, step, size):
        last = (self._new(name) or [{}])[-1]
        return last.get("step") == step and last.get("world_size") == size

    @staticmethod
    def wait_for(condition):
        """Wait for something that a busy machine may do late."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            time.sleep(0.05)
            if time.monotonic() > deadline:
                raise TimeoutError("the job did not come; its files are in the drill's folder")


def patient(settings):
    """Let the last call be longer where other programs compute: a torchrun that is late there begins one round more."""
    busy = max(1, 1.5 * os.getloadavg()[0] / os.cpu_count())
    return re.sub(r"(?<=last_call_timeout=)\d+", lambda asked: f"{busy * int(asked[0]):.0f}", settings)


def torchrun_of(started):
    """The process of torchrun itself, on its host."""
    return _of(started, lambda command: "torch.distributed.run" in command)


def rank_of(started):
    """The process of the rank that this torchrun has started."""
    return _of(started, lambda command: PROGRAM in command and "torch.distributed.run" not in command)


def _of(started, wanted):
    return next(each for each in psutil.Process(started.pid).children(recursive=True) if wanted(each.cmdline()))


def _resent(host):
    """How many packets TCP has sent again on a host so far."""
    table = Path(f"/proc/{host.pid}/net/snmp").read_text().splitlines()
    names, numbers = (line.split() for line in table if line.startswith("Tcp:"))
    return int(numbers[names.index("RetransSegs")])
