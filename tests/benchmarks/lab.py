"""Does *Run All* in JupyterLab bring a reader through a chapter? ``python -m tests.benchmarks.lab [chapter …]``.

Copies the book, starts JupyterLab as ``make lab`` does, opens each chapter in a headless Chromium, calls *Run All
Cells* and reads the notebook that JupyterLab saves. Where there is no GPU, cells that need one raise an error, and all
the others have to run as if they were not there. Prints one line a run. Exit status 1 where a cell was not run, or
raised an error that its tags do not expect.

It needs Chromium, and writes nothing into this folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from nbformat import NotebookNode
from rich.console import Console

from bookkit.chapters import named
from bookkit.needs import NEEDS_GPU, no_gpu, raises
from bookkit.notebook import code_cells, read, tags, write

ROOT = Path(__file__).parents[2]
SETTINGS = ROOT / "src/bookkit/jupyter"
PATIENCE = 600  # seconds for JupyterLab to start, and for a chapter to run, on a machine that may be busy
QUIET = 4  # seconds without work of the kernel after which all of its output has arrived
RUN_ALL = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }"
SAVE = "() => window.jupyterapp.commands.execute('docmanager:save')"
STATUS = "() => window.jupyterapp.shell.currentWidget.sessionContext.kernelDisplayStatus"


@contextlib.contextmanager
def jupyterlab(folder: Path):
    """Yield the address and the token of a JupyterLab that serves a folder, and end it."""
    runtime = folder / "runtime"
    environment = os.environ | {"JUPYTER_RUNTIME_DIR": str(runtime), "JUPYTER_CONFIG_PATH": str(SETTINGS)}
    environment.pop("IPP_NONINTERACTIVE", None)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--expose-app-in-browser", "--ServerApp.port=0"]
    command += [f"--ServerApp.root_dir={folder}", *(["--allow-root"] if os.geteuid() == 0 else [])]
    with (
        open(folder / "lab.log", "w") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log) as lab,
    ):
        try:
            yield address(lab, runtime)
        finally:
            lab.terminate()


def address(lab: subprocess.Popen, runtime: Path) -> tuple[str, str]:
    """Return the address and the token of a JupyterLab, once it answers."""
    told, began = runtime / f"jpserver-{lab.pid}.json", time.monotonic()
    while time.monotonic() - began < PATIENCE and lab.poll() is None:
        with contextlib.suppress(OSError, ValueError):  # it is not written yet, or not whole
            info = json.loads(told.read_text())
            urllib.request.urlopen(f"{info['url']}api?token={info['token']}").close()
            return info["url"], info["token"]
        time.sleep(0.2)
    raise SystemExit(f"JupyterLab did not start:\n{(runtime.parent / 'lab.log').read_text()[-2000:]}")


def run_all(page, url: str, path: Path) -> float:
    """Run all cells of a chapter, save it, and return the seconds that it took."""
    page.goto(f"{url}lab/tree/{path}?reset")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    while page.evaluate(STATUS) != "idle":
        page.wait_for_timeout(500)
    began = busy = time.monotonic()
    page.evaluate(RUN_ALL)
    while time.monotonic() - busy < QUIET and time.monotonic() - began < PATIENCE:
        page.wait_for_timeout(500)
        busy = busy if page.evaluate(STATUS) == "idle" else time.monotonic()
    page.evaluate(SAVE)
    return busy - began


def end_kernels(url: str, token: str) -> None:
    """End what a chapter has left running, as *Shut Down All Kernels* does."""

    def ask(what: str, method: str = "GET"):
        request = urllib.request.Request(f"{url}api/{what}", method=method, headers={"Authorization": f"token {token}"})
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or "null")

    for session in ask("sessions"):
        ask(f"sessions/{session['id']}", "DELETE")


def untouched(path: Path) -> NotebookNode:
    """Return a chapter as somebody has it who has run nothing."""
    notebook = read(path)
    for _, _, cell in code_cells(notebook):
        cell.execution_count, cell.outputs = None, []
    return notebook


def verdict(notebook: NotebookNode) -> tuple[str, bool]:
    """Return what a run of all cells came to, in words, and whether that is right."""
    ran, raised, wrong = 0, 0, []
    for _, number, cell in code_cells(notebook):
        errors = [output for output in cell.outputs if output.output_type == "error"]
        without = NEEDS_GPU in tags(cell) and no_gpu()
        ran += cell.execution_count is not None
        raised += bool(errors and without)
        if cell.source.strip() and cell.execution_count is None:
            wrong.append(f"cell [{number}] was not run")
        elif not without and bool(errors) != raises(cell):
            said = f"{errors[0].ename}: {errors[0].evalue[:80]}" if errors else "no error, and its tags expect one"
            wrong.append(f"cell [{number}]: {said}")
    lacked = f", {raised} raised for want of a GPU" if raised else ""
    return "; ".join([f"{ran} cells ran{lacked}", *wrong]), not wrong


def main() -> int:
    """Print a line for each run; return 1 where one was not as it should be."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("chapters", nargs="*", type=Path, help="all where none is given")
    wish, console, failed = parser.parse_args(), Console(), 0
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        raise SystemExit("There is no Chromium on this machine: sudo apt install chromium")
    with tempfile.TemporaryDirectory(prefix="bookkit-") as home, sync_playwright() as playwright:
        folder = Path(home)
        shutil.copytree(ROOT / "book", folder / "book", ignore=shutil.ignore_patterns("_build", "__pycache__"))
        shutil.copy(ROOT / "_toc.yml", folder)  # mingpt reads the text of the book, in its order
        with jupyterlab(folder) as (url, token):
            chromium = playwright.chromium.launch(
                executable_path=browser, args=["--no-sandbox"] if os.geteuid() == 0 else []
            )
            for path in (Path(chosen).relative_to(ROOT) for chosen in named(ROOT, wish.chapters)):
                for _ in range(wish.rounds):
                    write(folder / path, untouched(ROOT / path))
                    page = chromium.new_page()
                    page.set_default_timeout(PATIENCE * 1000)
                    page.goto(f"{url}lab?token={token}")  # leaves a cookie
                    seconds = run_all(page, url, path)
                    page.close()
                    end_kernels(url, token)
                    said, right = verdict(read(folder / path))
                    failed |= not right
                    console.print(f"{path.stem}: {seconds:.0f} s, {said}", highlight=False, markup=False)
            chromium.close()
    return failed


if __name__ == "__main__":
    sys.exit(main())
