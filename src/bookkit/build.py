"""Build the site with Jupyter Book: warnings are errors, and nothing of this machine is published."""

import fcntl
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from bookkit.chapters import chapters
from bookkit.errors import BookError
from bookkit.leaks import ANSI
from bookkit.normalise import normalise
from bookkit.notebook import read, write
from bookkit.progress import progress
from bookkit.recorded import shown
from bookkit.website.finish import finish

BUILD = "_build"
# What Sphinx leaves beside the pages for its own next run, or for its author.
UNPUBLISHED = (".buildinfo", ".doctrees", "reports")
PERCENT = re.compile(r"^(?:reading sources|writing output)\.+ \[ *(\d+)%\]")


@contextmanager
def staged(root, name):
    """Copy what the site is made of to ``_build/<name>/source`` and yield that folder, ours alone meanwhile.

    Sphinx then sees the book and nothing else, and a chapter that is executed there may write
    files without touching the author's.

    Raises:
        BookError: ``root`` is not the top of a book, or another ``make <name>`` works in that folder.
    """
    root = Path(root)
    for part in ("_config.yml", "_toc.yml", "book"):
        if not (root / part).exists():
            raise BookError(f"There is no {part} in {root}; call bookkit from the top of the book")
    place = root / BUILD / name
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the system lets go of it however we end
        except BlockingIOError:
            raise BookError(f"Another `make {name}` is at work in {place}; wait until it has ended") from None
        source = place / "source"
        shutil.rmtree(source, ignore_errors=True)
        source.mkdir()
        for file in ("_config.yml", "_toc.yml"):
            shutil.copy2(root / file, source)
        chaff = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__", ".DS_Store")
        shutil.copytree(root / "book", source / "book", ignore=chaff)
        yield source


def build(source):
    """Build the site from a staged source and return its front page.

    The pages come to ``html`` beside the source, Sphinx's whole story to ``log.txt``.

    Raises:
        BookError: Sphinx warned or failed; its warnings are in the text.
    """
    place = Path(source).parent
    for chapter in chapters(source):
        write(chapter, shown(normalise(read(chapter), str(chapter.relative_to(source)))))
    work, html, log = place / "work", place / "html", place / "log.txt"
    shutil.rmtree(work, ignore_errors=True)
    _jupyter_book(source, work, log)
    shutil.rmtree(html, ignore_errors=True)
    (work / "_build" / "html").rename(html)
    shutil.rmtree(work)
    _unpublish(html)
    finish(html, Path(source), place.parent / "kept")
    return html / "index.html"


def _jupyter_book(source, work, log):
    # Under the leash: killed with us even where we cannot say goodbye.
    command = [sys.executable, "-m", "bookkit.leash", "jupyter_book.cli.main:main", "build", str(source)]
    command += ["--path-output", str(work), "-W", "-n", "--keep-going"]
    sphinx = subprocess.Popen(
        command,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},  # its progress is of use only while it runs
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        # Reading counts to 100 %, then writing does; each is half of the work.
        with open(log, "w", encoding="utf-8") as story, progress("Building the site", 100, "%") as advance:
            writing = 0
            for coloured in sphinx.stdout or ():
                line = ANSI.sub("", coloured)
                story.write(line)
                if match := PERCENT.match(line):
                    writing = 50 if line.startswith("writing") else writing
                    advance(writing + int(match[1]) // 2, line.split("]")[-1].strip()[:40])
            status = sphinx.wait()
            advance(100)
    finally:
        sphinx.kill()
        sphinx.wait()
    if status:
        raise BookError(f"The site was not built. The whole story is in {log}; what counts:\n\n{_blame(log)}")


def _blame(log):
    """The warnings and errors of a build, or its last words where it named none."""
    lines = log.read_text(encoding="utf-8").splitlines()
    blamed = [line for line in lines if re.search(r"\b(WARNING|ERROR|CRITICAL|SEVERE)\b", line)]
    return "\n".join(blamed or lines[-30:])


def _unpublish(html):
    for name in UNPUBLISHED:
        path = html / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
