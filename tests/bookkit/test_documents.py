"""What README.md, CONTRIBUTING.md and the pages say of the book and its tools is so."""

import ast
import re
from pathlib import Path

import pytest

from bookkit import rules
from bookkit.chapters import chapters

ROOT = Path(__file__).parents[2]
# What setup.md quotes of other programs.
FOREIGN = {
    "Running as root is not recommended",
    "Gloo connectFullMesh failed",
    "Unable to resolve hostname",
    "EADDRINUSE",
    "address already in use",
    "Duplicate GPU detected",
    "unhandled system error",
    "Bus error",
}


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def own_sentences():
    """All texts of our code, each number and each blank to fill in as one #."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield blank(node.value)
            elif isinstance(node, ast.JoinedStr):
                yield blank("".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values))


def blank(sentence):
    return re.sub(r"(\{\}|\d+|…)(\.(\{\}|\d+))*", "#", sentence)


def quoted():
    """What the first column of setup.md's table of failures quotes, but for paths."""
    rows = re.findall(r"^\| (.*?) \|", text("book/setup.md").split("## When something fails")[1], re.M)
    return [quote for row in rows for quote in re.findall(r"`([^`]+)`", row) if not quote.startswith(("/", "make "))]


def test_the_failures_that_setup_quotes_are_those_that_the_tools_print():
    assert len(quoted()) > len(FOREIGN)
    known = list(own_sentences())
    ours = [quote for quote in quoted() if quote not in FOREIGN]
    assert [quote for quote in ours if not any(blank(quote) in sentence for sentence in known)] == []


@pytest.mark.parametrize(
    ("name", "row"), [("README.md", r"^\| \[.*\]\((.*)\.ipynb\) \|"), ("book/index.md", r"^\| \{doc\}`/(.*)` \|")]
)
def test_the_tables_of_chapters_are_those_of_the_toc(name, row):
    listed = [str(path.relative_to(ROOT).with_suffix("")) for path in chapters(ROOT)]
    rows = [page for page in re.findall(row, text(name), re.M) if not (ROOT / f"{page}.md").exists()]
    assert rows == listed


def test_contributing_names_every_tag():
    assert [tag for tag in rules.TAGS if f"`{tag}`" not in text("CONTRIBUTING.md")] == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "book/setup.md"])
def test_the_verbs_are_those_of_the_makefile(name):
    verbs = set(re.findall(r"^([a-z]+):.*## ", text("Makefile"), re.M)) - {"help"}
    assert set(re.findall(r"\bmake ([a-z]+)(?=[`\s])", text(name))) >= verbs


def test_the_reference_has_every_public_name():
    import ranklab

    listed = re.findall(r"ranklab\.(\w+)$", text("book/api.md"), re.MULTILINE)
    assert sorted([*listed, "check"]) == ranklab.__all__
