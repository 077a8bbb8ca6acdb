"""A learner in a room: one window of a browser, and a notebook with the core cells of a chapter."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from bookkit.hub.room import SHARED

CHAPTER = "ranks/your-first-ranks.ipynb"
LESSON, HOG = "book/ranks/lesson.ipynb", "book/ranks/hog.ipynb"
# The first lines by which the chapter's cells are known, in the order of the page.
CORE = (
    "squares = ", "import ranklab", 'print("hello")', "pid = os.getpid()", "rank = int(", "world_size = dist.get_world",
    "share = range", "total = torch.tensor(mine)\ndist", "print(100 //", "if rank == 0:\n    dist.all_reduce(total)",
    "answer is {answer}", "if not dist.is_initialized():\n    dist.init_process_group(\"gloo\")\n\ntotal",
)  # fmt: skip
EXERCISES = ("ranklab.check.my_share(", "ranklab.check.sum_on_rank_zero(")
BEGUN = "begun"  # a file in a learner's home: a click on a page that is busy can be lost
BEGIN = f"""import os, time
os.makedirs(os.environ["RANKLAB_ROOM"], exist_ok=True)
with open(os.path.join(os.environ["HOME"], "{BEGUN}"), "w") as file:
    file.write(str(time.time()))
print("begun, in kernel", os.getpid())"""
END = 'print("over, in kernel", os.getpid())'  # so that the end of an earlier run is not taken for this one's
REPORT = re.compile(r"RankTimeout: After .* rank 0 waits in all_reduce for ranks 1–3")
FILL = "full = []\nwhile True:\n    full.append(bytearray(2**26))"
KILLED = 3
IDLE = '.jp-Notebook-ExecutionIndicator[data-status="idle"]'
MINUTE = 60_000  # milliseconds
CLICK = 15 * MINUTE  # what a page may take: twelve browsers and 48 ranks share two processors
STILL = 900  # seconds without a new output after which a lesson has stopped
LOST = 60  # seconds after which a click that moved nothing was lost
SAVED = 5  # seconds between two looks at what a notebook has printed


def notebook(folder: Path, learner: str, repeat: int) -> None:
    """Write the lesson into a learner's copy of the book, from the chapter's own cells, and a notebook that is a fault.

    Args:
        folder: the room's.
        learner: whose copy.
        repeat: how often the right answers are handed in.
    """
    import nbformat
    from nbformat.v4 import new_code_cell, new_notebook

    home = folder / "learners" / learner
    chapter = nbformat.read(home / "book" / CHAPTER, 4)
    code = [cell for cell in chapter.cells if cell.cell_type == "code"]

    def fresh(cell):
        return new_code_cell(cell.source, metadata={"tags": list(cell.metadata.get("tags", []))})

    chosen = [next(cell for cell in code if words in cell.source) for words in CORE]
    cells = [new_code_cell(BEGIN), *map(fresh, chosen)]
    for exercise in EXERCISES:
        wrong, right = [cell for cell in code if exercise in cell.source][:2]
        cells += [fresh(wrong), *(fresh(right) for _ in range(repeat))]
    for path, content in ((LESSON, [*cells, new_code_cell(END)]), (HOG, [new_code_cell(BEGIN), new_code_cell(FILL)])):
        made = new_notebook(cells=content, metadata={"kernelspec": chapter.metadata["kernelspec"]})
        nbformat.write(made, home / path)


@dataclass(frozen=True)
class Lesson:
    """What came of running the lesson's cells once.

    Attributes:
        seconds: from the click to the last output.
        accepted: right answers that were called right.
        refused: wrong answers that were called wrong; each lesson has two.
        reported: whether the hang's report named who waited, where and for whom.
        one_kernel: whether the kernel that ran the last cell ran the first.
    """

    seconds: float
    accepted: int
    refused: int
    reported: bool
    one_kernel: bool

    def whole(self, given: int) -> bool:
        """Whether nothing was lost; ``given`` is the number of right answers."""
        return self.accepted == given and self.refused == 2 and self.reported and self.one_kernel


class Learner:
    """One learner: what was done, and what came of it.

    Args:
        name: the learner's.
        hub: the running :class:`tests.benchmarks.hub.Hub`.
        browser: Playwright's.
        repeat: as for :func:`notebook`.
    """

    def __init__(self, name: str, hub, browser, repeat: int) -> None:
        self.name, self.hub, self.browser, self.repeat = name, hub, browser, repeat
        self.logged_in, self.clicked_again = 0.0, 0
        self.trouble: list[str] = []
        self.lessons: list[Lesson] = []
        self.said = self.ended = ""

    @property
    def given(self) -> int:
        """How many right answers a lesson hands in."""
        return len(EXERCISES) * self.repeat

    async def log_in(self, password: str) -> None:
        """Type name and password, and wait for JupyterLab."""
        began = time.monotonic()
        await self._sign(password)
        await self.page.wait_for_selector("#jp-main-dock-panel", timeout=2 * CLICK)
        self.logged_in = time.monotonic() - began

    async def _sign(self, password: str, after: str = "") -> None:
        context = await self.browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(CLICK)
        self.page = await context.new_page()
        self.page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))  # leave without saving
        await self.page.goto(f"{self.hub.address}/hub/login{after}")
        await self.page.fill("input[name=username]", self.name)
        await self.page.fill("input[name=password]", password)
        await self.page.click("#login_submit")

    async def open(self, path: str) -> None:
        """Open a notebook and wait for its kernel."""
        await self.page.goto(f"{self.hub.address}/user/{self.name}/lab/tree/{path}?reset")
        await self.page.wait_for_selector(IDLE, state="attached")

    async def choose(self, menu: str, entry: str) -> None:
        """Choose an entry of JupyterLab's menu."""
        await self.page.click(f'#jp-MainMenu .lm-MenuBar-itemLabel:text-is("{menu}")', timeout=2 * MINUTE)
        await self.page.click(f'.lm-Menu-itemLabel:text-is("{entry}")', timeout=2 * MINUTE)

    async def run_all(self, again: bool = False) -> None:
        """Open the lesson and run all its cells; ``again`` in a fresh kernel."""
        began = time.monotonic()
        if not again:
            await self.open(LESSON)
            await self._begin(self._run)
        else:
            await self._begin(self._restart)
        cells = await self._finished(LESSON)
        self._count(cells, time.monotonic() - began)

    async def _run(self) -> None:
        await self.choose("Run", "Run All Cells")

    async def _begin(self, click) -> None:
        """Click, and click again where nothing has begun and the kernel is idle."""
        from playwright.async_api import TimeoutError as Lost

        before, until = self._begun(), time.monotonic() + STILL
        while time.monotonic() < until:
            with contextlib.suppress(Lost):
                await click()
            for _ in range(LOST):
                await asyncio.sleep(1)
                if self._begun() != before:
                    return
            await self.page.wait_for_selector(IDLE, state="attached")
            if self._begun() != before:
                return
            await self.page.keyboard.press("Escape")  # a menu that was left open
            self.clicked_again += 1
        raise TimeoutError(f"{self.name}: no cell ran")

    def _begun(self) -> str:
        """When a first cell ran last."""
        file = self.hub.folder / "learners" / self.name / BEGUN
        return file.read_text(encoding="utf-8") if file.exists() else ""

    async def _restart(self) -> None:
        await self.choose("Kernel", "Restart Kernel and Run All Cells…")
        await self.page.click(".jp-Dialog button.jp-mod-accept", timeout=2 * MINUTE)

    async def lose_kernel(self) -> None:
        """Run the lesson again, lose the kernel by SIGKILL while its four ranks work, and run it to its end."""
        before = self._kernel()
        await self._begin(self._restart)
        until = time.monotonic() + STILL
        while not (kernel := self._kernel(ranks=4)) or kernel == before:
            if time.monotonic() > until:
                raise TimeoutError(f"{self.name}: no kernel with ranks came, which could be killed")
            await asyncio.sleep(1)
        kernel.send_signal(signal.SIGKILL)
        await asyncio.sleep(5)
        await self.run_all()

    def _kernel(self, ranks: int = 0):
        """The living kernel that told last of its ranks, where it has at least so many."""
        try:
            told = json.loads((self.hub.folder / "learners" / self.name / SHARED / "ranks.json").read_text())
        except (OSError, ValueError):
            return None
        alive = [one for one in self.hub.running(self.name) if one.pid == told["kernel"]]
        return alive[0] if alive and told["ranks"] >= ranks else None

    async def fill_memory(self) -> None:
        """Run a cell that takes memory without end, and keep what it was told."""
        await self.open(HOG)
        await self._begin(self._run)
        errors = [
            output["ename"] for cell in await self._finished(HOG) for output in cell["outputs"] if "ename" in output
        ]
        self.said = ", ".join(errors) or "nothing"
        await self.choose("Kernel", "Shut Down Kernel")

    async def _finished(self, path: str) -> list[dict]:
        """Save until the file's last cell has a new output, and return the cells."""
        file = self.hub.folder / "learners" / self.name / path
        cells, seen, moved = [], [], time.monotonic()
        while time.monotonic() - moved < STILL:
            await asyncio.sleep(SAVED)
            await self.page.keyboard.press("Control+s")
            try:
                cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
            except ValueError:
                continue
            end = "".join(map(_text, cells[-1]["outputs"]))
            if end and end != self.ended and cells[-1]["execution_count"]:
                self.ended = end
                return cells
            if seen != (seen := [(cell.get("execution_count"), cell.get("outputs")) for cell in cells]):
                moved = time.monotonic()
        await self.page.screenshot(path=str(self.hub.folder / f"{self.name}.png"))
        done = sum(bool(count) for count, _ in seen)
        raise TimeoutError(f"{self.name}: {path} stood still after {done} of {len(cells)} cells")

    def _count(self, cells: list[dict], seconds: float) -> None:
        texts = ["".join(map(_text, cell["outputs"])) for cell in cells]
        # Not at its beginning: a cell that takes long shows first what the ranks do.
        lesson = Lesson(
            seconds=seconds,
            accepted=sum("Correct:" in text for text in texts),
            refused=sum("Not yet." in text for text in texts),
            reported=any(map(REPORT.search, texts)),
            one_kernel=texts[0].split()[-1:] == texts[-1].split()[-1:],
        )
        self.lessons.append(lesson)
        if not lesson.whole(self.given):
            self.trouble += [str(lesson), *[text[:400] for text in texts if "Correct:" not in text and text][-6:]]

    async def see_board(self, password: str = "") -> None:
        """Ask for the instructor's page, with a log-in where a password is given; keep what it says."""
        if password:
            await self._sign(password, "?next=%2Fhub%2Fhome")
            await self.page.wait_for_url("**/hub/home")
        answer = await self.page.goto(f"{self.hub.address}/services/board/")
        self.said = f"{answer.status if answer else ''} {await self.page.inner_text('body')}"

    async def log_out(self) -> None:
        """Log out; the hub ends what the learner runs."""
        await self.page.goto(f"{self.hub.address}/hub/logout")
        await self.page.context.close()


def _text(output: dict) -> str:
    if "ename" in output:
        return f"{output['ename']}: {output['evalue']}"
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))


def row(name: str, figure: str) -> str:
    """Return a line of the table."""
    return f"{name:<56}{figure}"
