"""A learner in a room: one window of a browser, and a notebook with the core cells of a chapter."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from pathlib import Path

CHAPTER = "ranks/your-first-ranks.ipynb"
LESSON, HOG = "book/ranks/lesson.ipynb", "book/ranks/hog.ipynb"
# The first lines by which the chapter's cells are known, in the order of the page.
CORE = (
    "squares = ", "import ranklab", 'print("hello")', "pid = os.getpid()", "rank = int(", "world_size = dist.get_world",
    "share = range", "total = torch.tensor(mine)\ndist", "print(100 //", "if rank == 0:\n    dist.all_reduce(total)",
    "answer is {answer}", "if not dist.is_initialized():\n    dist.init_process_group(\"gloo\")\n\ntotal",
)  # fmt: skip
EXERCISES = ("ranklab.check.my_share(", "ranklab.check.sum_on_rank_zero(")
CONSENT = "import os\nos.makedirs(os.environ['RANKLAB_ROOM'], exist_ok=True)"
END = 'print("over, in kernel", os.getpid())'  # so that the end of an earlier run is not taken for this one's
FILL = "full = []\nwhile True:\n    full.append(bytearray(2**26))"
KILLED = 3
MINUTE = 60_000  # what a page may take for a click, in milliseconds: the machine may be busy
PATIENCE = 900


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
    cells = [new_code_cell(CONSENT), *map(fresh, chosen)]
    for exercise in EXERCISES:
        wrong, right = [cell for cell in code if exercise in cell.source][:2]
        cells += [fresh(wrong), *(fresh(right) for _ in range(repeat))]
    for path, content in ((LESSON, [*cells, new_code_cell(END)]), (HOG, [new_code_cell(FILL)])):
        made = new_notebook(cells=content, metadata={"kernelspec": chapter.metadata["kernelspec"]})
        nbformat.write(made, home / path)


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
        self.seconds: dict[str, float] = {}
        self.trouble: list[str] = []
        self.said = self.ended = ""
        self.given = self.accepted = self.refused = self.hangs = self.lessons = 0

    async def log_in(self, password: str) -> None:
        """Type name and password, and wait for JupyterLab."""
        began = time.monotonic()
        await self._sign(password)
        await self.page.wait_for_selector("#jp-main-dock-panel", timeout=10 * MINUTE)
        self.seconds["log_in"] = time.monotonic() - began

    async def _sign(self, password: str, after: str = "") -> None:
        context = await self.browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(5 * MINUTE)
        self.page = await context.new_page()
        self.page.on("dialog", lambda dialog: asyncio.ensure_future(dialog.accept()))  # leave without saving
        await self.page.goto(f"{self.hub.address}/hub/login{after}")
        await self.page.fill("input[name=username]", self.name)
        await self.page.fill("input[name=password]", password)
        await self.page.click("#login_submit")

    async def open(self, path: str) -> None:
        """Open a notebook and wait for its kernel."""
        await self.page.goto(f"{self.hub.address}/user/{self.name}/lab/tree/{path}?reset")
        idle = '.jp-Notebook-ExecutionIndicator[data-status="idle"]'
        await self.page.wait_for_selector(idle, state="attached", timeout=10 * MINUTE)

    async def choose(self, menu: str, entry: str) -> None:
        """Choose an entry of JupyterLab's menu."""
        await self.page.click(f'#jp-MainMenu .lm-MenuBar-itemLabel:text-is("{menu}")')
        await self.page.click(f'.lm-Menu-itemLabel:text-is("{entry}")')

    async def run_all(self, again: bool = False) -> None:
        """Open the lesson and run all its cells; ``again`` in a fresh kernel."""
        began = time.monotonic()
        if not again:
            await self.open(LESSON)
            await self.choose("Run", "Run All Cells")
        else:
            await self._restart()
        self._count(await self._finished(LESSON))
        self.seconds["lesson"] = time.monotonic() - began

    async def _restart(self) -> None:
        await self.choose("Kernel", "Restart Kernel and Run All Cells…")
        await self.page.click(".jp-Dialog button.jp-mod-accept")

    async def lose_kernel(self) -> None:
        """Run the lesson again, lose the kernel by SIGKILL while the ranks work, and run it to its end."""
        await self._restart()
        await asyncio.sleep(10)
        kernels = [one for one in self.hub.running(self.name) if "ipykernel_launcher" in " ".join(one.cmdline())]
        for kernel in kernels:
            kernel.send_signal(signal.SIGKILL)
        if not kernels:
            self.trouble.append("no kernel to kill was found")
        await asyncio.sleep(5)
        await self.run_all()

    async def fill_memory(self) -> None:
        """Run a cell that takes memory without end, and keep what it was told."""
        await self.open(HOG)
        await self.choose("Run", "Run All Cells")
        errors = [
            output["ename"] for cell in await self._finished(HOG) for output in cell["outputs"] if "ename" in output
        ]
        self.said = ", ".join(errors) or "nothing"
        await self.choose("Kernel", "Shut Down Kernel")

    async def _finished(self, path: str) -> list[dict]:
        """Save until the file's last cell has an output, and return the cells."""
        file, until = self.hub.folder / "learners" / self.name / path, time.monotonic() + PATIENCE
        while time.monotonic() < until:
            await asyncio.sleep(3)
            await self.page.keyboard.press("Control+s")
            try:
                cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
            except ValueError:
                continue
            end = "".join(map(_text, cells[-1]["outputs"]))
            if end and end != self.ended and cells[-1]["execution_count"]:
                self.ended = end
                return cells
        await self.page.screenshot(path=str(self.hub.folder / f"{self.name}.png"))
        raise TimeoutError(f"{self.name}: {path} did not come to its end")

    def _count(self, cells: list[dict]) -> None:
        texts = ["".join(map(_text, cell["outputs"])) for cell in cells]
        # Not at its beginning: a cell that takes long shows first what the ranks do.
        right = sum("Correct:" in text for text in texts)
        self.lessons += 1
        self.given += 2 * self.repeat
        self.accepted += right
        self.refused += sum("Not yet." in text for text in texts)
        self.hangs += any("RankTimeout" in text for text in texts)
        if right < 2 * self.repeat:
            self.trouble += [text[:400] for text in texts if "Correct:" not in text and text][-6:]

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
