"""The rules of how a chapter speaks: each fires on what it is for, and no chapter waits without need."""

import subprocess
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from bookkit import voice
from bookkit.chapter import Chapter
from bookkit.notebook import write
from bookkit.rulebook import RULES

ROOT = Path(__file__).parents[2]
WHY = " ".join(["You have a script that uses one GPU, and one day somebody gives you four."] * 4)
OPENING = f"# A chapter\n\n{WHY}\n\n| Time | Ranks |\n|---|---|\n| 8 minutes core, 13 in all | 4 |"
TEXT = """
## What you will learn

## The sum

*Core · 8 minutes*

**How many lines will you see?** (A) one (B) four

It is one.[^one]

[^one]: `all_reduce` in torch/distributed/distributed_c10d.py, torch 2.13.

### More of it

*More · 5 minutes*

## When it breaks

## On GPUs

## Exercises

## Take it home

## Summary
"""
NAMES = {
    "sections", "why-first", "minutes", "answers", "late", "citation", "footnote", "visible-lines", "visible-assertion",
    "words", "formula",
}  # fmt: skip


def spoken(tmp_path, make, change=lambda notebook: None, name="chapter"):
    """What the rules of this module find in a chapter that keeps all of them, after a change."""
    notebook = make.clean()
    notebook.cells = [
        new_markdown_cell(OPENING),
        new_markdown_cell(TEXT),
        new_markdown_cell(f"{voice.LATE}: run this."),
        new_code_cell("%%px\nrank = 0"),
        new_code_cell("# What this page checks\nassert True", metadata={"tags": ["hide-input"]}),
    ]
    change(notebook)
    path = tmp_path / "part" / f"{name}.ipynb"
    write(path, notebook)
    chapter = Chapter(path)
    return {item.name: list(item.look(chapter)) for item in RULES if item.name in NAMES and list(item.look(chapter))}


@pytest.fixture
def found(tmp_path, make):
    return lambda change: spoken(tmp_path, make, change)


def replaced(index, old, new):
    def change(notebook):
        assert old in notebook.cells[index].source
        notebook.cells[index].source = notebook.cells[index].source.replace(old, new)

    return change


def test_a_chapter_that_keeps_them_passes(tmp_path, make):
    assert spoken(tmp_path, make) == {}
    assert {item.name for item in RULES} >= NAMES


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("sections", replaced(1, "## Take it home", "")),
        ("sections", replaced(1, "## On GPUs", "### On GPUs")),
        ("why-first", replaced(0, WHY, "A chapter.")),
        ("minutes", replaced(0, "8 minutes core", "20 minutes core")),
        ("minutes", replaced(0, "13 in all", "30 in all")),
        ("minutes", replaced(0, "8 minutes core, 13 in all", "13 minutes")),
        ("answers", replaced(1, "(A) one (B) four", "")),
        ("answers", replaced(1, "(B) four", "")),
        ("answers", replaced(1, "will you see?**", "will you see? There are two.**")),
        ("formula", replaced(1, "It is one.", "It is $N$.")),
        ("late", replaced(2, voice.LATE, "Run")),
        ("late", replaced(3, "%%px\n", "")),
        ("citation", replaced(1, "It is one.", "It is one (torch/distributed/run.py, 2.13).")),
        ("footnote", replaced(1, "It is one.[^one]", "It is one.[^two] [^one]")),
        ("footnote", replaced(1, "It is one.[^one]", "It is one.")),
        ("visible-lines", replaced(3, "rank = 0", "rank = 0\n" * 15)),
        ("visible-assertion", replaced(3, "rank = 0", "assert True")),
        ("words", replaced(1, "It is one.", "It is simply one.")),
        ("words", replaced(1, "It is one.", "It is one!")),
        ("words", replaced(1, "It is one.", "It mends one.")),
    ],
)
def test_each_rule_fires(found, rule, change):
    assert list(found(change)) == [rule]


def test_answers_may_stand_in_the_line_below_their_question(found):
    assert found(replaced(1, "will you see?** (A)", "will you see?**\n(A)")) == {}


def test_a_class_may_be_longer(found):
    assert found(replaced(3, "rank = 0", "class Model:\n" + "    a = 0\n" * 15)) == {}


def test_what_follows_a_directive_is_read(found):
    assert found(replaced(2, "run this.", "run this.\n\n````{note}\n````\n\nIt is `a` simply.")).keys() == {"words"}


def test_a_solution_may_be_longer(found):
    def appended(*cells):
        return lambda notebook: notebook.cells.extend(cells)

    start, end = new_markdown_cell("````{solution-start} sum\n````"), new_markdown_cell("````{solution-end}\n````")
    long = new_code_cell("a = 0\n" * 15)
    assert found(appended(start, long, end)) == {}
    assert list(found(appended(start, end, long))) == ["visible-lines"]


def test_who_checks_chapters_has_these_rules():
    listed = "import bookkit.check, bookkit.rulebook; print(*(item.name for item in bookkit.rulebook.RULES))"
    names = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True).stdout.split()
    assert set(names) >= NAMES
