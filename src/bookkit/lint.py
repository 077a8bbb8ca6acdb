"""Ruff over the code, and over the chapters with their ``%%px`` cells."""

import copy
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4.rwbase import rejoin_lines

from bookkit.errors import BookError
from bookkit.notebook import cell_name, to_bytes
from bookkit.rules import Finding

LINTED = ("src", "tests")
FORMAT = (
    "format",
    "not in ruff's format",
    "run `ruff format`; for a chapter `python -m bookkit normalise`",
)
KNOWN = "%%time"
# What a page shows on a desktop without a scroll bar under the cell.
LINE = "84"
STDIN = ["--no-cache", "--line-length", LINE, "--stdin-filename", "book/chapter.ipynb", "-"]
PX = re.compile(r"\A%%px\b.*")


def lint_code(root):
    """Findings of ``ruff check`` and ``ruff format`` in src and tests."""
    folders = [name for name in LINTED if (Path(root) / name).is_dir()]
    if not folders:
        return []
    top, findings = Path(root).resolve(), []
    for command in (["check"], ["format", "--check"]):
        for complaint in json.loads(_ruff([*command, "--output-format", "json", *folders], root)):
            place = f"{Path(complaint['filename']).relative_to(top)}:{complaint['location']['row']}"
            findings.append(Finding(place, *_words(complaint)))
    return findings


def lint_chapter(chapter, root):
    """Findings of ruff in a chapter's code, the kernel's cells and the ranks' cells as one program.

    ruff skips cells of a magic that it does not know, and cannot be taught ``%%px``
    (astral-sh/ruff#13977). It reads a copy in which the line is ``%%time``, which it knows.
    """
    notebook = _disguised(chapter.notebook)
    complaints = json.loads(_ruff(["check", "--output-format", "json", *STDIN], root, notebook))
    findings = [
        Finding(f"{chapter.title}, {cell_name(chapter.notebook, item['cell'] - 1)}", *_words(item))
        for item in complaints
    ]
    changes = _ruff(["format", "--diff", *STDIN], root, notebook)
    for number in re.findall(r"^\+\+\+ .*:cell (\d+)\n@@", changes, re.M):
        place = f"{chapter.title}, {cell_name(chapter.notebook, int(number) - 1)}"
        findings.append(Finding(place, *FORMAT))
    return findings


def formatted(notebook, root):
    """A copy of a notebook whose code, that of the ranks too, has ruff's format and order of imports."""
    imports = _ruff(["check", "--fix-only", "--select", "I", *STDIN], root, _disguised(notebook))
    result = copy.deepcopy(notebook)
    cells = rejoin_lines(nbformat.from_dict(json.loads(_ruff(["format", *STDIN], root, imports)))).cells
    for cell, mended in zip(result.cells, cells, strict=True):
        if cell.cell_type == "code":
            first = PX.match(cell.source)
            cell.source = first[0] + mended.source.removeprefix(KNOWN) if first else mended.source
    return result


def _disguised(notebook):
    """A notebook's text for ruff, with a magic that ruff knows in place of each %%px line."""
    copied = copy.deepcopy(notebook)
    for cell in copied.cells:
        if cell.cell_type == "code":
            cell.source = PX.sub(KNOWN, cell.source)
    return to_bytes(copied).decode()


def _words(complaint):
    """A complaint of ruff as rule, what was found and how to mend it."""
    if complaint["code"] == "unformatted":
        return FORMAT
    fix = complaint.get("fix") or {}
    mend = fix.get("message") or f"see `ruff rule {complaint['code']}`"
    return complaint["code"] or "syntax", complaint["message"], mend[0].lower() + mend[1:]


def _ruff(arguments, root, stdin=None):
    """Run ruff and return what it printed; 1 means that it found something, more that it failed."""
    beside = Path(sys.executable).with_name("ruff")
    ruff = str(beside) if beside.exists() else shutil.which("ruff")
    if ruff is None:
        raise BookError("ruff is not installed; `make check` without VENV= installs it")
    done = subprocess.run([ruff, *arguments], cwd=root, input=stdin, text=True, capture_output=True)
    if done.returncode > 1:
        raise BookError(f"ruff failed: {done.stderr.strip()}")
    return done.stdout
