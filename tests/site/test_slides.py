"""Decks and sheets in a headless Chromium, opened from the file system with the network off."""

import re
from pathlib import Path

import pytest

from bookkit.teaching.__main__ import make
from tests.site.conftest import open_page

ROOT = Path(__file__).parents[2]
# The one with most slides, one with long reports, one with the longest code.
DECKS = ["sharded", "hangs", "from-spawn-to-torchrun"]
SHEETS = [*DECKS, "mixed-precision", "data-parallel-and-the-gil", "uneven-inputs"]
FULL = """() => [...document.querySelectorAll(".slide")].filter(slide => {
  const frame = slide.getBoundingClientRect(), body = slide.querySelector(".body");
  return body.scrollHeight > body.clientHeight || body.scrollWidth > body.clientWidth || body.style.transform
    || [...body.querySelectorAll("*")].some(e => e.getBoundingClientRect().bottom > frame.bottom);
}).map(slide => slide.id)"""
SMALLEST = """() => Math.min(...[...document.querySelectorAll(".slide .body *")].filter(e => e.textContent)
  .map(e => parseFloat(getComputedStyle(e).fontSize)))"""
PAGE = re.compile(rb"/Type\s*/Page\b")


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slides")
    make(ROOT, [Path(name) for name in SHEETS], folder)
    return folder


@pytest.fixture
def page(chromium, decks):
    context = chromium.new_context(viewport={"width": 1280, "height": 720})
    yield lambda name: open_page(context, decks, name)
    context.close()


@pytest.mark.parametrize("name", DECKS)
def test_no_slide_overflows_and_every_one_prints_on_a_page_of_its_own(page, name):
    seen = page(f"{name}.html")
    assert not (seen.errors or seen.foreign or seen.failed)
    seen.page.evaluate("document.body.classList.remove('live')")
    assert seen.page.evaluate(FULL) == []
    assert seen.page.evaluate(SMALLEST) >= 20  # of 720: readable from the last row
    printed = seen.page.pdf(prefer_css_page_size=True, print_background=True)
    assert len(PAGE.findall(printed)) == seen.page.locator(".slide").count()


def test_this_measure_notices_a_slide_that_is_too_full(page):
    seen = page("hangs.html")
    seen.page.evaluate("document.body.classList.remove('live')")
    seen.page.evaluate("document.querySelectorAll('.slide .body')[3].append('word '.repeat(900))")
    assert seen.page.evaluate(FULL) == ["4"]


def test_keys_go_through_the_slides_and_show_notes(page):
    seen = page("hangs.html")
    number = seen.page.locator(".slide.now footer span")
    assert number.inner_text().startswith("1 /")
    for key, expected in [("ArrowRight", "2 /"), (" ", "3 /"), ("ArrowLeft", "2 /"), ("Home", "1 /")]:
        seen.page.keyboard.press(key)
        assert number.inner_text().startswith(expected)
    assert not seen.page.locator(".notes.now").is_visible()
    seen.page.keyboard.press("n")
    assert seen.page.locator(".notes.now").is_visible()
    with seen.page.expect_popup() as window:
        seen.page.keyboard.press("s")
    seen.page.keyboard.press("End")
    assert window.value.locator("h2").inner_text().startswith("Summary")


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_is_one_printed_page(page, name):
    seen = page(f"{name}-sheet.html")
    assert seen.page.evaluate("(all => all.scrollHeight <= all.clientHeight)(document.querySelector('.sheet'))")
    assert len(PAGE.findall(seen.page.pdf(prefer_css_page_size=True))) == 1


def test_without_scripts_a_deck_can_be_read_from_top_to_bottom(chromium, decks):
    context = chromium.new_context(java_script_enabled=False)
    seen = open_page(context, decks, "hangs.html")
    assert seen.page.locator(".slide").last.is_visible() and seen.page.locator(".notes").first.is_visible()
    context.close()
