"""Look over everything that is published: chapters, code, tracked files and built pages."""

import os
import shutil
import subprocess
from pathlib import Path

from bookkit import leaks
from bookkit.build import BUILD
from bookkit.chapter import Chapter
from bookkit.chapters import chapters, strays
from bookkit.errors import count
from bookkit.lint import lint_chapter, lint_code
from bookkit.notebook import cell_name
from bookkit.progress import console, progress
from bookkit.recorded import waiting
from bookkit.rulebook import Finding
from bookkit.rules import examine
from bookkit.typecheck import check_types

# A line of a test or a rule that holds a leak on purpose says so.
PLANTED = "bookkit: planted"
PAGES = {".html", ".txt", ".ipynb", ".json", ".xml"}
# Where git does not say what is ignored.
UNTRACKED = {".git", ".venv", BUILD, "__pycache__", ".pytest_cache", ".ruff_cache", ".ipynb_checkpoints"}
PUBLISHED = (leaks.PATH, *leaks.SECRETS)


def check(root):
    """Check the whole book below ``root`` and print the outcome.

    Returns:
        The findings; none means that the book may be published.
    """
    root = Path(root)
    opened = [Chapter(path, str(path.relative_to(root))) for path in chapters(root)]
    findings = []
    with progress("Checking", len(opened) + 5, "steps") as advance:
        for done, chapter in enumerate(opened):
            advance(done, chapter.title)
            findings += examine(chapter) + lint_chapter(chapter, root)
        steps = [
            ("chapters", lost),
            ("code", lint_code),
            ("types", check_types),
            ("files", tracked_files),
            ("pages", built_pages),
        ]
        for done, (what, step) in enumerate(steps, start=len(opened)):
            advance(done, what)
            findings += step(root)
        advance(len(opened) + 5)
    report(opened, findings)
    return findings


def check_chapters(paths, root):
    """Check some chapters by their rules and ruff, print the outcome and return the findings."""
    opened = [Chapter(path, str(Path(path).relative_to(root))) for path in paths]
    findings = [finding for chapter in opened for finding in examine(chapter) + lint_chapter(chapter, root)]
    report(opened, findings)
    return findings


def report(opened, findings):
    """Print each finding on a line of its own, then the cells that wait for a GPU, and the counts."""
    for finding in findings:
        console.print(str(finding))
    late = [(chapter, index, why) for chapter in opened for index, why in waiting(chapter.notebook)]
    for chapter, index, why in late:
        place = f"{chapter.title}, {cell_name(chapter.notebook, index)}"
        console.print(f"{place}: {why}. It needs a GPU: `make record GPU=1 CH={chapter.path.stem}` where there is one.")
    cells = sum(len(chapter.code) for chapter in opened)
    style = "bold red" if findings else "bold green"
    summary = f"{count(len(opened), 'chapter')}, {count(cells, 'cell')}, {count(len(findings), 'finding')}"
    summary += f", {count(len(late), 'cell')} to record on a GPU" if late else ""
    console.print(summary, style=style)


def lost(root):
    """Notebooks that no reader would find, or a book without any chapter."""
    for path in strays(root):
        yield Finding(str(path.relative_to(root)), "toc", "not in _toc.yml", "name it there, or remove it")
    if not chapters(root):
        yield Finding("_toc.yml", "toc", "it names no notebook", "add the first chapter")


def tracked_files(root):
    """Machine paths and secrets in text files that git has or would take; chapters have their own rules.

    Where this is no checkout, or git is not installed, they are all files but those that are built.
    """
    root = Path(root)
    if (root / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, capture_output=True, text=True,
        )  # fmt: skip
        if listed.returncode:
            fix = "fix this, for no file outside the book was searched for leaks"
            yield Finding(".git", "git", f"git failed ({' '.join(listed.stderr.split())})", fix)
        names = filter(None, listed.stdout.split("\0"))
    else:
        names = _unbuilt(root)
    for name in sorted(names):
        path = root / name
        if path.suffix != ".ipynb" and path.is_file():
            yield from _scan(path, name)


def _unbuilt(root):
    """The files below ``root`` without environments, caches and what was built."""
    for folder, below, files in os.walk(root):
        here = Path(folder)
        below[:] = [name for name in below if name not in UNTRACKED and not (here / name / "pyvenv.cfg").exists()]
        yield from (str((here / name).relative_to(root)) for name in files)


def built_pages(root):
    """Machine paths and secrets in the pages of every site that was built."""
    for path in sorted((Path(root) / BUILD).glob("*/html/**/*")):
        # What the theme brings along in _static is minified and not ours.
        if path.suffix in PAGES and "_static" not in path.parts:
            yield from _scan(path, str(path.relative_to(root)))


def _scan(path, title):
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return  # a picture, a font
    for number, line in enumerate(text.splitlines(), start=1):
        if PLANTED in line:
            continue
        line = leaks.plain(line)
        for pattern in PUBLISHED:
            for found in pattern.find(line):
                yield Finding(f"{title}:{number}", "leak", f"{pattern.name} ({found})", pattern.fix)
