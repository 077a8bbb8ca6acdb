"""A room of learners through the real hub: ``python -m tests.benchmarks.hub [learners]``.

Starts ``make hub`` in a folder of its own, and a headless Chromium with a window for each learner. All of them at once
log in by the form, open a notebook with *core* cells of "Your first ranks" in JupyterLab, and run it: four ranks, an
error, a hang and its report, wrong answers and right ones. Then all run it again, while three of them lose their kernel
by SIGKILL, and one fills its memory. The instructor looks at the page; a learner may not. All log out. The table says
what it took in seconds, memory and processor seconds, how many right answers were accepted, whether a neighbour noticed
anything, what was left, and what thirty learners need by these figures; exit status 1 where anything was lost.

It needs requirements-hub.txt, Node, npm and Chromium, and no other load: figures are this machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bookkit.hub.passwords import read
from bookkit.hub.ports import free
from tests.benchmarks.learner import KILLED, Learner, notebook, row
from tests.benchmarks.watched import KINDS, Watch, model

ROOT = Path(__file__).parents[2]
PATIENCE = 600  # seconds until the hub answers, on a machine that may be busy
STOP = 300  # seconds for the hub to end
LEFT = 180  # seconds in which all that learners ran has to be gone; the table says how many it took
MODELLED = ("log in", "the lesson")  # the steps whose processor seconds the model takes
REPEAT = 5  # right answers to each of two exercises in each lesson: 12 learners hand in 230


class Hub:
    """``make hub`` for a benchmark or a test, without make.

    Args:
        folder: the room's.
        names: the learners.
        memory: GB for each process of a learner.

    Attributes:
        left: how many processes of the hub itself outlived it.
    """

    def __init__(self, folder: Path, names: list[str], memory: float = 4) -> None:
        self.memory, self.left = memory, 0
        self.folder, self.address = folder, f"http://127.0.0.1:{free(1)[0]}"
        listed = folder / "names.txt"
        listed.write_text("\n".join(names) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "bookkit.hub", "--room", str(folder), "--names", str(listed)]
        command += ["--port", self.address.rpartition(":")[2], "--memory", str(memory)]
        command += ["--allow-root"] if os.geteuid() == 0 else []
        self.log = (folder / "hub.log").open("w+")
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # A shell lets what it starts with & ignore Ctrl-C, and the hub would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
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
        import psutil

        own = []
        if self.process.poll() is None:
            own = psutil.Process(self.process.pid).children(recursive=True)
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            status = self.process.wait(STOP)
            self.left += len(psutil.wait_procs(own, timeout=LEFT)[1])
            return status
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


def span(seconds: list[float]) -> str:
    """Return the median and the longest."""
    return f"{statistics.median(seconds):.0f} (longest {max(seconds):.0f})" if seconds else "none"


async def room(hub: Hub, watch: Watch, learners: list[Learner], browser) -> tuple[list[tuple[str, str]], list[str]]:
    """Let the learners go through the lesson; return the table and what went wrong."""
    passwords, table, wrong, spent = hub.passwords(), [], [], {}

    async def step(name: str, *calls) -> None:
        print(f"{time.strftime('%H:%M:%S')} {name}, load {os.getloadavg()[0]:.0f} …", file=sys.stderr, flush=True)
        began, before = time.monotonic(), watch.seconds()
        for outcome in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(outcome, BaseException):
                wrong.append(f"{name}: {type(outcome).__name__}: {str(outcome)[:300]}")
        seconds = time.monotonic() - began
        spent[name] = {kind: amount - before[kind] for kind, amount in watch.seconds().items()}
        table.append((f"seconds of {name}, all together", f"{seconds:.0f}"))
        if name in MODELLED:
            figures = ", ".join(f"{kind} {spent[name][kind]:.0f}" for kind in (*KINDS, "others"))
            table.append((f"processor seconds of {name}", figures))

    await step("log in", *(one.log_in(passwords["room"]) for one in learners))
    table.append(("seconds from the form to JupyterLab", span([one.logged_in for one in learners])))
    for one in learners:
        notebook(hub.folder, one.name, one.repeat)
    await step("the lesson", *(one.run_all() for one in learners))
    table.append(("seconds of a learner's lesson", span([one.lessons[0].seconds for one in learners if one.lessons])))
    memory = watch.megabytes()
    table.append(("MB, all learners with four ranks each", ", ".join(f"{kind} {memory[kind]:.0f}" for kind in KINDS)))
    table.append(("MB a learner", f"{memory['learners'] / len(learners):.0f}"))

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
    second = [one.lessons[1] for one in others if len(one.lessons) > 1]
    whole = sum(lesson.whole(others[0].given) for lesson in second)
    table.append(("neighbours who lost nothing meanwhile", f"{whole} of {len(others)}"))
    table.append(("seconds of a neighbour's lesson", span([lesson.seconds for lesson in second])))
    table.append(("those who lost their kernel, and finished", f"{sum(len(one.lessons) == 2 for one in killed)}"))

    instructor = Learner("instructor", hub, browser, 0)
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
    table.append(("MB by which the machine's free memory shrank at most", f"{watch.most:.0f}"))
    if left:
        wrong.append(f"left: {[process.cmdline()[:4] for process in hub.running()]}")
    table.append(("", ""))
    if memory["learners"]:
        table += model(len(learners), memory, {name: spent[name] for name in MODELLED}, hub.memory)
    return table, wrong


async def hold(hub: Hub, learners: int, repeat: int) -> tuple[list[Learner], list[tuple[str, str]], list[str]]:
    """Open the browser, let the room go through the lesson, and return what came of it."""
    from playwright.async_api import async_playwright

    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=["--disable-gpu", *as_root], timeout=1000 * PATIENCE
        )
        room_of = [Learner(f"learner-{number + 1}", hub, browser, repeat) for number in range(learners)]
        with Watch(hub) as watch:
            table, wrong = await room(hub, watch, room_of, browser)
        await browser.close()
    return room_of, table, wrong


def main() -> int:
    """Run the room and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.hub", description=__doc__.split("\n\n")[0])
    parser.add_argument("learners", nargs="?", type=int, default=12, help="how many at once, 3 at least (default: 12)")
    words = f"right answers to each exercise in a lesson (default: {REPEAT})"
    parser.add_argument("--repeat", type=int, default=REPEAT, help=words)
    parser.add_argument("--memory", type=float, default=3, help="GB for each process (default: 3)")
    told = parser.parse_args()
    if told.learners < 3:
        parser.error("three learners at least: one is killed, one fills the memory, and one must not notice")
    folder = Path(tempfile.mkdtemp(prefix="room-"))
    hub = Hub(folder, [f"learner-{number + 1}" for number in range(told.learners)], memory=told.memory)
    try:
        up = hub.wait()
        learners, table, wrong = asyncio.run(hold(hub, told.learners, told.repeat))
        status = hub.stop()
    finally:
        hub.stop()
    lessons = [lesson for one in learners for lesson in one.lessons]
    given, accepted = learners[0].given * len(lessons), sum(lesson.accepted for lesson in lessons)
    rows = [
        ("learners, four ranks each", str(told.learners)),
        ("processors of this machine", str(os.cpu_count())),
        ("seconds until the hub was up", f"{up:.0f}"),
        ("lessons run to their end", f"{len(lessons)} of {2 * told.learners - 1}"),
        ("hangs reported: who, where, for whom", f"{sum(lesson.reported for lesson in lessons)} of {len(lessons)}"),
        ("wrong answers refused", f"{sum(lesson.refused for lesson in lessons)} of {2 * len(lessons)}"),
        ("right answers accepted", f"{accepted} of {given}"),
        ("clicks that a busy page lost", f"{sum(one.clicked_again for one in learners)}"),
        ("exit status of the hub; processes it left", f"{status}; {hub.left}"),
        *table,
    ]
    for entry in rows:
        print(row(*entry))
    wrong += [f"{one.name}: {said}" for one in learners for said in one.trouble]
    for sentence in wrong:
        print("WRONG", sentence)
    if not wrong and len(lessons) == 2 * told.learners - 1 and not hub.left:
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    print(f"The room's folder stays for a look: {folder}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
