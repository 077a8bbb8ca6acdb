"""The index of errors in a browser: a line from a terminal finds its entry."""

from urllib.parse import quote

import pytest
from messages.catalogue import MESSAGES

NAME = "book/error-index.html"
PASTED = {
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.7]:41234": (
        "Connection closed by peer"
    ),
    "[rank3]: RuntimeError: [Rank 0]: Rank 6 failed to pass monitoredBarrier in 30000 ms": (
        "failed to pass monitoredBarrier in"
    ),
    "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. ": "is killed by signal: Killed.",
    "EADDRINUSE": "The server socket has failed to listen on any local network address",
    "RuntimeError: Mesh should not be bigger than default world size 8, but found 16 ranks!": (
        "Mesh should not be bigger than default world size"
    ),
}
VISIBLE = "section > section > section:not([hidden]) > h3 code"


@pytest.mark.parametrize("line", PASTED)
def test_a_pasted_line_leaves_its_entry_alone(visit, line):
    page = visit(NAME).page
    assert page.locator(VISIBLE).count() == len(MESSAGES)
    page.get_by_label("Paste a line from your terminal").fill(line)
    assert [code.strip() for code in page.locator(VISIBLE).all_inner_texts()] == [PASTED[line]]
    page.get_by_label("Paste a line from your terminal").fill("")
    assert page.locator(VISIBLE).count() == len(MESSAGES)


def test_words_that_are_nowhere_are_said_to_be_nowhere(visit):
    page = visit(NAME).page
    page.get_by_label("Paste a line from your terminal").fill("zzyzxqqq")
    assert page.locator(VISIBLE).count() == 0
    assert "Leave out" in page.get_by_role("status").inner_text()


@pytest.mark.parametrize("core", [message.core for message in MESSAGES[::15]])
def test_the_search_of_the_site_finds_the_literal_text(visit, core):
    page = visit(f"search.html?q={quote(core)}").page
    page.locator('#search-results ul.search li a[href*="error-index.html"]').first.wait_for()
