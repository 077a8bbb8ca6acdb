"""Build the site with Jupyter Book: warnings are errors, and nothing of this machine is published."""

import gzip
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bookkit.chapters import chapters
from bookkit.errors import BookError
from bookkit.leaks import ANSI
from bookkit.normalise import normalise
from bookkit.notebook import read, write
from bookkit.progress import console, progress

BUILD = "_build"
# What Sphinx leaves beside the pages for its own next run, or for its author.
UNPUBLISHED = (".buildinfo", ".doctrees", "reports", "_sources/.ipynb_checkpoints")
PERCENT = re.compile(r"^(?:reading sources|writing output)\.+ \[ *(\d+)%\]")


def stage(root, name):
    """Copy what the site is made of to ``_build/<name>/source`` and return that folder.

    Sphinx then sees the book and nothing else, and a chapter that is executed there may write
    files without touching the author's.
    """
    root = Path(root)
    source = root / BUILD / name / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    for file in ("_config.yml", "_toc.yml"):
        if not (root / file).is_file():
            raise BookError(f"There is no {file} in {root}; call bookkit from the top of the book")
        shutil.copy2(root / file, source)
    chaff = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__", ".DS_Store")
    shutil.copytree(root / "book", source / "book", ignore=chaff)
    return source


def build(source):
    """Build the site from a staged source and return its front page.

    The pages come to ``html`` beside the source, Sphinx's whole story to ``log.txt``.

    Raises:
        BookError: Sphinx warned or failed; its warnings are in the text.
    """
    place = Path(source).parent
    for chapter in chapters(source):
        write(chapter, normalise(read(chapter)))
    work, html, log = place / "work", place / "html", place / "log.txt"
    shutil.rmtree(work, ignore_errors=True)
    _jupyter_book(source, work, log)
    shutil.rmtree(html, ignore_errors=True)
    (work / "_build" / "html").rename(html)
    shutil.rmtree(work)
    _unpublish(html)
    return html / "index.html"


def describe(index):
    """Say where the site is and what its heaviest page weighs."""
    page, weight = heaviest(index.parent)
    console.print(
        f"Heaviest page: {page.relative_to(index.parent)}, {weight / 1000:.0f} kB compressed", highlight=False
    )
    console.print(f"The site is at {index}", highlight=False)


def heaviest(html):
    """The page that weighs most when a browser loads it compressed: ``(path, bytes)``."""
    weights = {page: page_weight(page) for page in html.rglob("*.html") if "_static" not in page.parts}
    page = max(weights, key=weights.get)
    return page, weights[page]


def page_weight(page):
    """Bytes of a page and of every local file that it names, as gzip sends them."""
    links = _Links()
    links.feed(page.read_text(encoding="utf-8"))
    files = {page.resolve()}
    for url in links.found:
        parts = urlsplit(url)
        if not parts.scheme and not parts.netloc and parts.path:
            files.add((page.parent / unquote(parts.path)).resolve())
    return sum(len(gzip.compress(file.read_bytes())) for file in files if file.is_file())


class _Links(HTMLParser):
    """The files that a browser loads with a page; links to other pages are not among them."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if tag == "link" and attributes.get("rel") in ("stylesheet", "preload", "icon"):
            self.found.append(attributes.get("href") or "")
        elif tag in ("script", "img"):
            self.found.append(attributes.get("src") or "")


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
            for coloured in sphinx.stdout:
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
