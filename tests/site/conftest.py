"""The built site in a real browser: where it is, which pages it has, and a way to visit one."""

import fcntl
import functools
import gzip
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[2]
PAGE_OF_A_TEST = re.compile(r"\[(?:\w+-)?((?:book/)?[\w/-]+\.html)\]$")  # […], [light-…], [360-…]
MOST_OPEN = 6
QUIET = [
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class PageByPage(LoadScopeScheduling):
    """The tests of a page run one after the other in one worker, which opens it once; others stay with their file.

    The marker for groups does nothing here: xdist 3.8 changes a test's _nodeid, which pytest 9.2 does not read.
    """

    def _split_scope(self, nodeid):
        page = PAGE_OF_A_TEST.search(nodeid)
        return page[1] if page else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Deal out whole pages where the tests of the site run alone."""
    return PageByPage(config, log) if config.option.markexpr == "site" else None


@pytest.fixture(scope="session")
def site():
    """The folder of the built pages: ``SITE``, or ``make book``'s, built anew where a source is newer."""
    if os.environ.get("SITE"):
        return Path(os.environ["SITE"]).resolve()
    (ROOT / "_build").mkdir(exist_ok=True)
    with open(ROOT / "_build" / "site-tests.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two workers the second finds what the first has built
        return built()


def built():
    """``make book``'s pages, built anew where a source is newer."""
    html = ROOT / "_build" / "book" / "html"
    index = html / "index.html"
    sources = [
        ROOT / "_config.yml",
        ROOT / "_toc.yml",
        *(p for p in (ROOT / "book").rglob("*") if p.is_file() and p.suffix != ".pyc"),
        *(ROOT / "src" / "bookkit").rglob("*.py"),
    ]
    if not index.exists() or index.stat().st_mtime < max(p.stat().st_mtime for p in sources):
        path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [sys.executable, "-m", "bookkit", "build"],
            cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return html


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium, the system's own."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pages are not tested")
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip("There is no Chromium on this machine: the built pages are not tested.")
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET + as_root)
        yield browser
        browser.close()


@dataclass
class Visit:
    """One page as a reader meets it, and everything it asked for on the way."""

    page: object
    errors: list[str] = field(default_factory=list)
    files: set[Path] = field(default_factory=set)
    foreign: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def note(self, request):
        """Sort a request into files of the site and everything else."""
        parts = urlsplit(request.url)
        if parts.scheme == "file":
            self.files.add(Path(unquote(parts.path)))
        elif parts.scheme not in ("data", "blob"):
            self.foreign.append(request.url)

    def weight(self, own):
        """Bytes of what the page loaded, each file compressed with gzip.

        Args:
            own: True counts the page and its pictures in the light theme; False the frame, which a browser fetches once
                for all pages.
        """
        light = [path for path in self.files if path.is_file() and not path.name.endswith("-dark.png")]
        counted = (path for path in light if (path.suffix in (".html", ".png", ".svg")) == own)
        return sum(map(compressed, counted))


@functools.cache
def compressed(path):
    """The bytes of a file, compressed with gzip."""
    return len(gzip.compress(path.read_bytes(), mtime=0))


# A reader who has asked a page for all its outputs (ask.js): what tests look at is there.
ALL_SHOWN = "try { localStorage.setItem('rank-by-rank.ask:' + location.pathname, '{\"all\": true}'); } catch {}"


# What is far from view is not laid out before it comes near (site.css); tests look at all of a page.
LAID_OUT = """document.addEventListener("DOMContentLoaded", () => {
  document.head.append(Object.assign(document.createElement("style"),
    { textContent: ".bd-article section { content-visibility: visible !important }" }));
})"""


def open_page(context, site, name, asking=False):
    """Open a page of the site in a context without a network, and note what it does from the first request on.

    Args:
        context: the browser's.
        site: the folder of the pages.
        name: the page, with a query where there is one.
        asking: leave its questions unanswered, so that the outputs below them wait.
    """
    context.set_offline(True)
    if not asking:
        context.add_init_script(ALL_SHOWN)
    context.add_init_script(LAID_OUT)
    context.set_default_timeout(10_000)
    seen = Visit(context.new_page())
    seen.page.on("console", lambda m: seen.errors.append(m.text) if m.type == "error" else None)
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    seen.page.on("request", seen.note)
    seen.page.on("requestfailed", lambda request: seen.failed.append(request.url))
    path, _, query = name.partition("?")
    seen.page.goto((site / path).as_uri() + (f"?{query}" if query else ""))
    if path == "index.html":  # it only leads on; looking at it meanwhile would be looking at either page
        seen.page.wait_for_url("**/book/index.html")
    seen.page.wait_for_load_state("load")
    return seen


@pytest.fixture
def visit(chromium, site):
    """Open a page for a test that uses it: ``visit("book/index.html", width=390)``."""
    contexts = []

    def open_alone(name, width=1280, height=900, asking=False, **wishes):
        viewport = {"width": width, "height": height}
        options = {"color_scheme": "light", "reduced_motion": "reduce"} | wishes
        contexts.append(chromium.new_context(viewport=viewport, **options))
        return open_page(contexts[-1], site, name, asking)

    yield open_alone
    for context in contexts:
        context.close()


@pytest.fixture(scope="session")
def look(chromium, site):
    """Show a page to a test that only looks: ``look("book/index.html", theme="dark", width=390)``.

    Each page is opened once, with all its solutions, and follows the theme that the system asks for; the tests of a
    worker share it. They go page by page, so that few pages have to stay open.
    """
    context = chromium.new_context(reduced_motion="reduce")
    opened = {}

    def show(name, theme="light", width=1280, height=900):
        if name not in opened:
            if len(opened) >= MOST_OPEN:
                opened.pop(next(iter(opened))).page.close()
            opened[name] = open_page(context, site, name)
            opened[name].page.evaluate(
                "() => document.querySelectorAll('details.solution > summary').forEach(title => title.click())"
            )
        page = opened[name].page
        page.emulate_media(color_scheme=theme)
        page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
        page.set_viewport_size({"width": width, "height": height})
        return opened[name]

    yield show
    context.close()
