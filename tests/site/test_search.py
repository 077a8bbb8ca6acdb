"""The search in a browser, from the file system: what comes first, what an excerpt quotes, and the keyboard."""

import pytest

# What a reader asks, and the page that teaches it.
TAUGHT = {
    "hang": "breaking/hangs",
    "hangs": "breaking/hangs",
    "hanging": "breaking/hangs",
    "bucket": "data-parallel/buckets",
    "all_reduce": "talking/all-reduce",
    "all-reduce": "talking/all-reduce",
    "allreduce": "talking/all-reduce",
    "local_rank": "ranks/rank-local-rank-world-size",
    "world size": "ranks/rank-local-rank-world-size",
    "torchrun": "launching/from-spawn-to-torchrun",
    "collective": "talking/collectives",
    "pipeline": "model-parallel/pipelines",
    "tensor parallel": "model-parallel/tensor-parallel",
    "checkpoint": "data-parallel/checkpoints",
    "mixed precision": "data-parallel/mixed-precision",
    "slurm": "launching/slurm-and-schedulers",
    "sharded": "model-parallel/sharded",
    "mesh": "model-parallel/meshes",
    "DDP": "data-parallel/ddp",
    "deadlock": "talking/point-to-point",
    "NCCL_DEBUG": "environment-variables",
    "Connection closed by peer": "error-index",
}
RESULT = "#search-results ul.search li a"
FIND = """queries => queries.map(query => rankByRankFind(rankByRankSearch, query).groups
  .map(({ page, hits }) => [page.address, ...hits.map(({ section }) => section.heading)]))"""


@pytest.fixture
def searched(visit):
    def search(query, **size):
        seen = visit(f"search.html?q={query}", **size)
        seen.page.locator(RESULT).first.wait_for()
        return seen

    return search


def test_the_page_that_teaches_a_word_comes_first(searched):
    found = searched("hang").page.evaluate(FIND, list(TAUGHT))
    first = {query: pages[0][0] for query, pages in zip(TAUGHT, found, strict=True)}
    assert first == {query: f"book/{page}.html" for query, page in TAUGHT.items()}


def test_a_chinese_word_finds_its_term_and_the_chapter(searched):
    page = searched("桶").page
    (found,) = page.evaluate(FIND, ["桶"])
    assert found[0][:2] == ["book/glossary.html", "bucket"]
    assert found[1][0] == "book/data-parallel/buckets.html"
    assert "梯度桶" in page.locator(RESULT).first.inner_text()


def bare(text):
    """A text without spaces, and without what stands between the cells of a table."""
    return "".join(text.replace(" · ", "").split())


def test_a_result_is_a_section_and_quotes_its_text(searched):
    seen = searched("hang")
    for result in seen.page.locator(RESULT).all()[:6]:
        quoted = result.locator(".rl-hit-text").inner_text().strip("… ")
        marks = [mark.lower() for mark in result.locator("mark").all_inner_texts()]
        assert all(mark.startswith("hang") for mark in marks)
        page = seen.page.context.new_page()
        page.goto(result.evaluate("link => link.href"))
        assert bare(quoted[:60]) in bare(page.locator("article").text_content())
        page.close()
    assert seen.errors == []
    assert seen.foreign == []


def test_what_is_searched_is_loaded_when_somebody_searches_and_the_keyboard_is_enough(visit):
    seen = visit("book/setup.html")
    data = "search-data.js"
    assert data not in {path.name for path in seen.files}
    seen.page.keyboard.press("Control+k")
    seen.page.keyboard.type("hang")
    seen.page.locator(RESULT).first.wait_for()
    assert data in {path.name for path in seen.files}
    seen.page.keyboard.press("ArrowDown")
    seen.page.keyboard.press("ArrowDown")
    seen.page.keyboard.press("ArrowUp")
    seen.page.keyboard.press("Enter")
    seen.page.wait_for_url("**/hangs.html")


def test_the_magnifier_stands_beside_the_words(searched):
    page = searched("hang", width=375).page
    field = page.locator("#rl-search input")
    words = field.evaluate("f => f.getBoundingClientRect().left + parseFloat(getComputedStyle(f).paddingLeft)")
    icon = page.locator("#rl-search .fa-magnifying-glass").bounding_box()
    assert icon["x"] + icon["width"] <= words


def test_search_says_so_where_there_is_nothing(visit):
    page = visit("search.html?q=zzyzxqqq").page
    page.get_by_role("status").filter(has_text="Nothing in the book has").wait_for()
    assert page.locator(RESULT).count() == 0
