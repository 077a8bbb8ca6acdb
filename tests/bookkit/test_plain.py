"""Chapters are plain Markdown, and the site gets Sphinx's roles and directives."""

import re
from pathlib import Path

import nbformat
import pytest

from bookkit.chapters import named
from bookkit.plain import anchor, entries, for_the_site

ROOT = Path(__file__).parents[2]
TERMS = {"term-rank": "rank", "term-local-rank": "local rank"}
ROLE = re.compile(r"\{[a-z]+\}`(?!`)")
DIRECTIVE = re.compile(r"^(?::{3,}|`{3,})\{(?!literalinclude|admonition)", re.M)


def test_a_link_to_the_glossary_becomes_a_term():
    assert for_the_site("A [rank](../glossary.md#term-rank).", TERMS) == "A {term}`rank`."
    assert for_the_site("Two [ranks](../glossary.md#term-rank).", TERMS) == "Two {term}`ranks <rank>`."
    assert for_the_site("A [rank](glossary.md#term-rank).", TERMS) == "A {term}`rank`."


def test_a_link_to_a_term_that_the_glossary_lacks_stays_for_sphinx_to_find():
    link = "[x](../glossary.md#term-x)"
    assert for_the_site(link, TERMS) == link


def test_a_quotation_with_a_bold_title_becomes_a_box():
    text = "> **Start here.** Run *this*.\n>\n> Then that.\n\nGo on.\n"
    assert for_the_site(text, {}) == ":::{admonition} Start here\nRun *this*.\n\nThen that.\n:::\n\nGo on.\n"
    assert for_the_site("> Somebody said so.", {}) == "> Somebody said so."


def test_what_only_the_site_needs_stands_in_a_comment():
    start = "<!-- site\n````{solution-start} one\n:class: dropdown\n````\n-->\n\n**Solution.** It is 1."
    assert for_the_site(start, {}) == "````{solution-start} one\n:class: dropdown\n````\n\nIt is 1."
    assert for_the_site("<!-- a note -->\n\n**Solution.** No.", {}) == "<!-- a note -->\n\n**Solution.** No."


def test_a_terms_anchor_is_that_of_sphinx():
    assert [anchor(term) for term in ("local rank", "1F1B", "task (Slurm)", "nproc_per_node")] == [
        "term-local-rank",
        "term-1F1B",
        "term-task-Slurm",
        "term-nproc_per_node",
    ]
    assert entries(ROOT)["rank"].startswith("The number of a {term}`process`")


@pytest.mark.parametrize("path", named(ROOT, []), ids=lambda path: path.stem)
def test_no_chapter_shows_roles_and_directives_to_other_programs(path):
    notebook = nbformat.read(path, as_version=4)
    written = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    texts = [re.sub(r"<!--.*?-->", "", source, flags=re.S) for source in written]
    shown = [found for text in texts for found in (*ROLE.findall(text), *DIRECTIVE.findall(text))]
    assert shown == []
