"""A room of learners through the real hub: ``python -m tests.benchmarks.hub [learners]``.

Starts ``make hub`` in a folder of its own, and a headless Chromium with a window for each learner. All of them at once
log in by the form, open a notebook with *core* cells of "Your first ranks" in JupyterLab, and run it: four ranks, an
error, a hang and its report, wrong answers and right ones. Then all run it again, while three of them lose their kernel
by SIGKILL, and one fills its memory. The instructor looks at the page; a learner may not. All log out. The table says
what it took, how many right answers were accepted, and what was left; exit status 1 where anything was lost.

It needs requirements-hub.txt, Node, npm and Chromium, and no other load: figures are this machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bookkit.hub.passwords import read
from bookkit.hub.ports import free
from tests.benchmarks.learner import KILLED, Learner, notebook, row
from tests.benchmarks.room import _span

ROOT = Path(__file__).parents[2]
PATIENCE = 600  # seconds for a step of a room on a machine that may be busy
LEFT = 60  # seconds in which all that a learner ran has to be gone


class Hub:
    """``make hub`` for a benchmark or a test, without make.

    Args:
        folder: the room's.
        names: the learners.
        words: more words of the command line.
    """

    def __init__(self, folder: Path, names: list[str], *words: str) -> None:
        self.folder, self.address = folder, f"http://127.0.0.1:{free(1)[0]}"
        listed = folder / "names.txt"
        listed.write_text("\n".join(names) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "bookkit.hub", "--room", str(folder), "--names", str(listed)]
        command += ["--port", self.address.rpartition(":")[2], *words]
        command += ["--allow-root"] if os.geteuid() == 0 else []
        self.log = (folder / "hub.log").open("w+")
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True
        )

    def wait(self, seconds: float = PATIENCE) -> float:
        """Wait until the hub answers; return the seconds that it took."""
        from urllib.request import urlopen

        began = time.monotonic()
        while time.monotonic() - began < seconds:
            if self.process.poll() is not None:
                break
            try:
                with urlopen(f"{self.address}/hub/login", timeout=10):
                    return time.monotonic() - began
            except OSError:
                time.sleep(2)
        raise RuntimeError(f"The hub did not come up:\n{self.said()}")

    def said(self) -> str:
        """What the hub has written."""
        return Path(self.log.name).read_text(encoding="utf-8")

    def passwords(self) -> dict[str, str]:
        """The room's password and the instructor's."""
        return read(self.folder / "passwords.txt")

    def running(self, learner: str = "") -> list:
        """The processes of a learner, or of all: what has the learner's home in its environment."""
        import psutil

        home, found = str(self.folder / "learners" / learner), []
        for process in psutil.process_iter():
            try:
                if process.environ().get("HOME", "").startswith(home):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def megabytes(self) -> float:
        """The memory of all that learners run, shared pages counted once a share."""
        import psutil

        total = 0
        for process in self.running():
            try:
                total += process.memory_full_info().pss
            except psutil.Error:
                continue
        return total / 2**20

    def stop(self) -> int:
        """End the hub as Ctrl-C does, and return its exit status."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            return self.process.wait(120)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.log.close()


async def gone(hub: Hub, seconds: float = LEFT) -> int:
    """Wait until learners run nothing any more; return how many processes are left."""
    for _ in range(round(seconds)):
        if not hub.running():
            break
        await asyncio.sleep(1)
    return len(hub.running())


async def room(hub: Hub, names: list[str], repeat: int) -> tuple[list[Learner], list[tuple[str, str]], list[str]]:
    """Let the learners go through the lesson; return them, the table, and what went wrong."""
    from playwright.async_api import async_playwright

    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    passwords, table, wrong = hub.passwords(), [], []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--disable-gpu", *as_root])
        learners = [Learner(name, hub, browser, repeat) for name in names]

        async def step(name: str, *calls) -> None:
            print(f"{time.strftime('%H:%M:%S')} {name}, load {os.getloadavg()[0]:.0f} …", file=sys.stderr, flush=True)
            began = time.monotonic()
            for outcome in await asyncio.gather(*calls, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    wrong.append(f"{name}: {type(outcome).__name__}: {str(outcome)[:300]}")
            table.append((f"seconds of {name}, all together", f"{time.monotonic() - began:.0f}"))

        await step("log in", *(one.log_in(passwords["room"]) for one in learners))
        for one in learners:
            notebook(hub.folder, one.name, repeat)
        await step("the lesson", *(one.run_all() for one in learners))
        table.append(("MB of all that learners run, with four ranks each", f"{hub.megabytes():.0f}"))
        table.append(("MB a learner", f"{hub.megabytes() / len(learners):.0f}"))
        killed, hog = learners[: min(KILLED, len(learners) // 3)], learners[-1]
        others = [one for one in learners if one is not hog and one not in killed]
        await step(
            "the lesson again, with faults",
            *(one.lose_kernel() for one in killed),
            hog.fill_memory(),
            *(one.run_all(again=True) for one in others),
        )
        table.append(("kernels killed, and one memory filled", f"{len(killed)}, {hog.said}"))
        if "MemoryError" not in hog.said:
            wrong.append(f"{hog.name} filled its memory, and was told: {hog.said}")
        instructor = Learner("instructor", hub, browser, repeat)
        await step("the instructor's page", instructor.see_board(passwords["instructor"]))
        table.append(("the instructor's page, first lines", instructor.said.replace("\n", " · ")[:70]))
        await step("a learner asks for that page", learners[0].see_board())
        if "403" not in learners[0].said:
            wrong.append(f"A learner saw the instructor's page: {learners[0].said[:200]}")
        began = time.monotonic()
        await step("log out", *(one.log_out() for one in learners))
        left = await gone(hub)
        table.append(("processes left after log out", str(left)))
        table.append(("seconds until they were gone", f"{time.monotonic() - began:.0f}"))
        if left:
            wrong.append(f"left: {[process.cmdline()[:4] for process in hub.running()]}")
        await browser.close()
    return learners, table, wrong


def main() -> int:
    """Run the room and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.hub", description=__doc__.split("\n\n")[0])
    parser.add_argument("learners", nargs="?", type=int, default=12, help="how many at once (default: 12)")
    parser.add_argument("--repeat", type=int, default=4, help="right answers to each exercise in a lesson (default: 4)")
    parser.add_argument("--memory", type=float, default=3, help="GB for each process (default: 3)")
    told = parser.parse_args()
    names = [f"learner-{number + 1}" for number in range(told.learners)]
    folder = Path(tempfile.mkdtemp(prefix="room-"))
    hub = Hub(folder, names, "--memory", str(told.memory))
    try:
        up = hub.wait()
        learners, table, wrong = asyncio.run(room(hub, names, told.repeat))
        status = hub.stop()
    finally:
        hub.stop()
    given, accepted = sum(one.given for one in learners), sum(one.accepted for one in learners)
    rows = [
        ("learners, four ranks each", str(len(names))),
        ("processors of this machine", str(os.cpu_count())),
        ("seconds until the hub was up", f"{up:.0f}"),
        ("seconds from the form to JupyterLab", _span([one.seconds for one in learners], "log_in", 0)),
        ("seconds of a lesson", _span([one.seconds for one in learners], "lesson", 0)),
        *table,
        ("hangs reported", f"{sum(one.hangs for one in learners)} of {sum(one.lessons for one in learners)}"),
        (
            "wrong answers refused",
            f"{sum(one.refused for one in learners)} of {2 * sum(one.lessons for one in learners)}",
        ),
        ("right answers accepted", f"{accepted} of {given}"),
        ("exit status of the hub", str(status)),
    ]
    for entry in rows:
        print(row(*entry))
    for sentence in [*wrong, *(f"{one.name}: {said}" for one in learners for said in one.trouble)]:
        print("WRONG", sentence)
    if not wrong and accepted == given:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    print(f"The room's folder stays for a look: {folder}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
