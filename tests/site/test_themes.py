"""Figures in both themes and at full size, pages without scripts, and paper."""

import re

import pytest
from PIL import Image

from ranklab.palette import DARK_PAGE, LIGHT_PAGE

PAGE = re.compile(rb"/Type\s*/Page\b")
CHAPTER = "book/data-parallel/ddp.html"
MOVES = "book/breaking/hangs.html"
SHOWN = "() => [...document.querySelectorAll('article img')].filter(i => i.checkVisibility()).map(i => i.src)"


def rgb(colour):
    return f"rgb({int(colour[1:3], 16)}, {int(colour[3:5], 16)}, {int(colour[5:], 16)})"


@pytest.mark.parametrize(("theme", "ground"), [("light", "#fbfbf9"), ("dark", DARK_PAGE)])
def test_a_figure_stands_on_the_ground_of_its_theme_and_only_one_of_two_is_loaded(visit, site, theme, ground):
    seen = visit(CHAPTER, color_scheme=theme)
    shown = seen.page.evaluate(SHOWN)
    assert shown
    assert all(source.endswith("-dark.png") == (theme == "dark") for source in shown)
    picture = Image.open(site / "_images" / shown[0].rsplit("/", 1)[1]).convert("RGB")
    assert "#{:02x}{:02x}{:02x}".format(*picture.getpixel((1, 1))) == ground
    loaded = [path.name for path in seen.files if path.suffix == ".png"]
    assert all(name.endswith("-dark.png") == (theme == "dark") for name in loaded)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_that_moves_hides_its_picture_in_both_themes(look, theme):
    page = look(MOVES, theme=theme).page
    moving = page.locator("div.cell_output:has(.rl-figure)")
    assert moving.locator(".rl-figure").first.is_visible()
    assert not [picture for picture in moving.locator("img").all() if picture.is_visible()]


def test_a_tap_opens_a_figure_at_its_full_size_and_escape_closes_it(visit):
    page = visit(CHAPTER, width=375, height=800).page
    link = page.locator("a.rl-full.only-light").first
    small = link.locator("img").bounding_box()["width"]
    link.click()
    large = page.locator("dialog.rl-figure img")
    assert large.bounding_box()["width"] > 1.5 * small
    assert large.get_attribute("alt") == link.locator("img").get_attribute("alt")
    page.keyboard.press("Escape")
    page.locator("dialog.rl-figure").wait_for(state="detached")
    assert link.evaluate("link => link === document.activeElement")


def test_without_scripts_a_page_has_its_colours_its_figures_and_closed_solutions(chromium, site):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((site / CHAPTER).as_uri())
    styles = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    assert styles == rgb(LIGHT_PAGE)
    assert page.locator("a.rl-full.only-light img").first.is_visible()
    assert not page.locator("a.rl-full.only-dark img").first.is_visible()
    solution = page.locator("details.solution").first
    assert not solution.locator("div.cell_input").first.is_visible()
    solution.locator("> summary").click()
    assert solution.locator("div.cell_input").first.is_visible()
    context.close()


def test_on_paper_the_text_comes_first_whole_and_light(visit):
    page = visit(CHAPTER).page
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    for menu in ("#pst-primary-sidebar", "#pst-secondary-sidebar", ".bd-header-article"):
        assert not page.locator(menu).is_visible(), menu
    assert page.locator("article h1").bounding_box()["y"] < 200
    assert page.evaluate("() => [...document.querySelectorAll('article details')].every(fold => fold.open)")
    for theme in "light", "dark":
        page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
        assert page.locator("a.rl-full.only-light img").first.is_visible(), theme
        assert not page.locator("a.rl-full.only-dark img").first.is_visible(), theme
    cut = "all => all.filter(e => getComputedStyle(e).breakInside !== 'avoid').length"
    assert page.locator("article img, article div.rl-panel").evaluate_all(cut) == 0
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details.solution[open]").count() == 0


def test_on_paper_the_questions_of_the_test_are_a_sheet_without_the_answers(visit):
    page = visit("book/teaching/tests.html").page
    page.emulate_media(media="print")
    parts = page.locator("article section section")
    assert parts.evaluate_all("all => all.map(e => e.id)") == ["the-questions", "the-answers", "the-feedback-sheet"]
    assert set(parts.evaluate_all("all => all.map(e => getComputedStyle(e).breakBefore)")) == {"page"}
    printed = page.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "1cm"))
    assert len(PAGE.findall(printed)) == 4, "how to use it, and then a page for each"
