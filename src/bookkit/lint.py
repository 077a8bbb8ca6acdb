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
SYNTAX = "invalid-syntax"
KNOWN = "%%time"
# What a page shows on a desktop without a scroll bar under the cell.
LINE = "84"
STDIN = ["--no-cache", "--line-length", LINE, "--stdin-filename", "book/chapter.ipynb", "-"]
PX = re.compile(r"\A%%px\b.*")


def lint_code(root):
    """Findings of ``ruff check``, and of ``ruff format`` where all code can be parsed, in src and tests."""
    folders = [name for name in LINTED if (Path(root) / name).is_dir()]
    if not folders:
        return []
    complaints = _complaints(["check", "--no-cache", *folders], root)
    if not any(complaint["code"] == SYNTAX for complaint in complaints):
        complaints += _complaints(["format", "--check", "--no-cache", *folders], root)
    findings = []
    for complaint in complaints:
        name = str(Path(complaint["filename"]).relative_to(Path(root).resolve()))
        place = f"{name}:{complaint['location']['row']}"
        if complaint["code"] == "unformatted":
            findings.append(_unformatted(place, f"{_named(root)} format {name}"))
        else:
            findings.append(Finding(place, *_words(complaint, root)))
    return findings


def lint_chapter(chapter, root):
    """Findings of ruff in a chapter's code, the kernel's cells and the ranks' cells as one program.

    ruff skips cells of a magic that it does not know, and cannot be taught ``%%px``
    (astral-sh/ruff#13977). It reads a copy in which the line is ``%%time``, which it knows.
    """
    notebook = _disguised(chapter.notebook)
    complaints = _complaints(["check", *STDIN], root, notebook)
    findings = [
        Finding(f"{chapter.title}, {cell_name(chapter.notebook, item['cell'] - 1)}", *_words(item, root))
        for item in complaints
    ]
    if any(item["code"] == SYNTAX for item in complaints):
        return findings  # ruff formats only what it can parse
    changes = _ruff(["format", "--diff", *STDIN], root, notebook)
    for number in re.findall(r"^\+\+\+ .*:cell (\d+)\n@@", changes, re.M):
        place = f"{chapter.title}, {cell_name(chapter.notebook, int(number) - 1)}"
        findings.append(_unformatted(place, f"make record CH={chapter.title}"))
    return findings


def formatted(notebook, root, title):
    """A copy of a notebook whose code, that of the ranks too, has ruff's format and order of imports.

    Args:
        notebook: the chapter.
        root: the top of the book, where ruff finds its settings.
        title: what errors call the chapter.

    Raises:
        BookError: a cell is no valid Python.
    """
    disguised = _disguised(notebook)
    for item in _complaints(["check", "--select", "I", *STDIN], root, disguised):
        if item["code"] == SYNTAX:
            rule, found, fix = _words(item, root)
            raise BookError(str(Finding(f"{title}, {cell_name(notebook, item['cell'] - 1)}", rule, found, fix)))
    imports = _ruff(["check", "--fix-only", "--select", "I", *STDIN], root, disguised)
    result = copy.deepcopy(notebook)
    cells = rejoin_lines(nbformat.from_dict(json.loads(_ruff(["format", *STDIN], root, imports)))).cells
    for cell, fixed in zip(result.cells, cells, strict=True):
        if cell.cell_type == "code":
            first = PX.match(cell.source)
            cell.source = first[0] + fixed.source.removeprefix(KNOWN) if first else fixed.source
    return result


def _disguised(notebook):
    """A notebook's text for ruff, with a magic that ruff knows in place of each %%px line."""
    copied = copy.deepcopy(notebook)
    for cell in copied.cells:
        if cell.cell_type == "code":
            cell.source = PX.sub(KNOWN, cell.source)
    return to_bytes(copied).decode()


def _words(complaint, root):
    """A complaint of ``ruff check`` as rule, what was found and how to fix it."""
    code = complaint["code"]
    if code == SYNTAX:
        return code, complaint["message"], f"correct line {complaint['location']['row']}, which Python cannot read"
    offered = complaint.get("fix") or {}
    fix = offered.get("message") or f"see `{_named(root)} rule {code}`"
    return code, complaint["message"], fix[0].lower() + fix[1:]


def _unformatted(place, command):
    return Finding(place, "format", "not in ruff's format", f"run `{command}`")


def _complaints(arguments, root, stdin=None):
    """What ruff complains of, as its JSON tells it."""
    return json.loads(_ruff([*arguments, "--output-format", "json"], root, stdin))


def _ruff(arguments, root, stdin=None):
    """Run ruff and return what it printed; 1 means that it found something, more that it failed."""
    done = subprocess.run([_program(), *arguments], cwd=root, input=stdin, text=True, capture_output=True)
    if done.returncode > 1:
        raise BookError(f"ruff failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def _program():
    beside = Path(sys.executable).with_name("ruff")
    ruff = str(beside) if beside.exists() else shutil.which("ruff")
    if ruff is None:
        raise BookError("ruff is not installed; `make check` without VENV= installs it")
    return ruff


def _named(root):
    """How to call ruff from the top of the book in a shell whose PATH does not lead to it."""
    program, top = Path(_program()), Path(root).resolve()
    return str(program.relative_to(top) if program.is_relative_to(top) else program)
