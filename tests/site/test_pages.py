"""The built pages in a headless Chromium, opened from the file system with the network off."""

import html
import json
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support import eventually

from bookkit.chapters import chapters, pages
from ranklab.palette import DARK_PAGE, LIGHT_PAGE, label_color, rank_color

ROOT = Path(__file__).parents[2]
PAGES = [str(page.relative_to(ROOT).with_suffix(".html")) for page in pages(ROOT)]
CHAPTERS = [str(page.relative_to(ROOT).with_suffix(".html")) for page in chapters(ROOT)]
THEMES = {"light": LIGHT_PAGE, "dark": DARK_PAGE}
MOST_PAGE, MOST_FRAME, MOST_REQUESTS = 300_000, 150_000, 14
WITHOUT_RANKS = (  # pages that show no panel of two ranks
    "book/launching/slurm-and-schedulers.html",  # what Slurm starts prints without one
    "book/capstone/profiling.html",  # the ranks write traces
    "book/capstone/scaling-and-cost.html",  # the ranks keep their times
)

# Text whose contrast with what lies behind it is below WCAG AA, as "ratio text".
FAINT = """() => {
  const rgba = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                       return .2126 * r + .7152 * g + .0722 * b; };
  const once = f => { const known = new Map(); return e => { if (!known.has(e)) known.set(e, f(e)); return known.get(e); }; };
  const behind = once(e => {
    if (!e) return [255, 255, 255, 1];
    const ground = rgba(getComputedStyle(e).backgroundColor);
    return ground[3] === 1 ? ground : over(ground, behind(e.parentElement));
  });
  const opacity = once(e => e ? Number(getComputedStyle(e).opacity) * opacity(e.parentElement) : 1);
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let measured = 0;
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || !e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const box = e.getBoundingClientRect();
    if (box.width < 2 || box.height < 2 || box.right < 0) continue;
    const style = getComputedStyle(e), ground = behind(e), ink = rgba(style.color);
    ink[3] *= opacity(e);
    const [low, high] = [light(over(ink, ground)), light(ground)].sort((a, b) => a - b);
    const ratio = (high + .05) / (low + .05), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    measured += 1;
    if (ratio < (large ? 3 : 4.5)) found.push(`${ratio.toFixed(2)} <${e.tagName.toLowerCase()} class="${e.className}"> ${text.slice(0, 40)}`);
  }
  return { measured, found };
}"""  # noqa: E501

# What sticks out of the page to the right, unless a box of its own scrolls or hides it.
WIDE = """() => {
  const wide = document.documentElement.clientWidth;
  return document.documentElement.scrollWidth <= wide ? [] :
    [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > wide + 1)
      .map(e => `${e.tagName} ${e.className}`).slice(0, 8)
      .concat(`${document.documentElement.scrollWidth} > ${wide}`);
}"""


# Text of a cell that is cut off or hidden behind a scroll bar of its own.
CUT = """selector => [...document.querySelectorAll(selector)]
  .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1)
  .map(e => `${e.scrollWidth - e.clientWidth} px of ${e.textContent.trim().slice(0, 60)}`)"""


def hexed(css):
    return "#" + "".join(f"{int(n):02x}" for n in re.findall(r"\d+", css)[:3])


@pytest.mark.parametrize("name", [*PAGES, "index.html", "search.html", "genindex.html"])
def test_a_page_loads_whole_and_asks_for_nothing_from_elsewhere(look, name):
    seen = look(name)
    assert seen.errors == []
    assert seen.foreign == []
    assert seen.failed == []
    assert [str(path) for path in seen.files if not path.is_file()] == []


# Pictures come when they are scrolled to; here all that the theme shows come now.
ALL_PICTURES = """() => Promise.all([...document.images].filter(image => image.checkVisibility()).map(image => {
  image.loading = "eager";
  return image.complete || new Promise(done => { image.onload = image.onerror = () => done(true); });
}))"""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_with_its_frame_and_all_its_pictures_weighs_at_most_300_kb_compressed(look, name):
    seen = look(name)
    seen.page.evaluate(ALL_PICTURES)
    assert len(seen.files) > 3, "this measured less than a page with its style sheet and script"
    weight = seen.weight(own=True) + seen.weight(own=False)
    assert weight <= MOST_PAGE, sorted((path.stat().st_size, path.name) for path in seen.files)[-5:]
    assert len(seen.files) <= MOST_REQUESTS, sorted(path.name for path in seen.files)


def test_the_frame_of_all_pages_weighs_at_most_150_kb_compressed(look):
    seen = look(CHAPTERS[0])  # style sheets and scripts; what a search looks through comes when somebody searches
    assert seen.weight(own=False) <= MOST_FRAME, sorted((path.stat().st_size, path.name) for path in seen.files)[-5:]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_a_title_of_its_own_and_one_first_heading(look, name):
    page = look(name).page
    heading = page.locator("h1:visible")
    assert heading.count() == 1
    words = heading.evaluate("h => h.firstChild.textContent.trim()")
    assert page.title() in (f"{words} — Rank by Rank", "Rank by Rank")
    assert page.title() != "Rank by Rank" or name == PAGES[0]
    assert page.locator("html").get_attribute("lang") == "en"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [360, 768, 390])  # a page that keeps its width is not laid out anew
def test_no_page_scrolls_sideways_on_a_small_screen(look, name, width):
    assert look(name, width=width).page.evaluate(WIDE) == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 1200, 1440])
def test_nothing_that_was_printed_hides_behind_a_scroll_bar(look, name, width):
    page = look(name, width=width).page
    assert page.evaluate(CUT, "div.cell_output, div.cell_output *") == []
    if width >= 1200:
        assert page.evaluate(CUT, "article pre") == []


def test_a_copy_button_covers_no_code_until_it_is_wanted(visit):
    page = visit(CHAPTERS[0]).page
    code = page.locator("div.highlight:has(button.copybtn)").first
    opacity = "e => getComputedStyle(e.querySelector('button.copybtn')).opacity"
    assert code.evaluate(opacity) == "0"
    code.hover()
    assert code.evaluate(opacity) == "1"
    page.mouse.move(0, 0)
    code.locator("button.copybtn").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert code.evaluate(opacity) == "1"


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("theme", THEMES)
def test_every_text_reaches_the_contrast_of_wcag_aa(look, name, theme):
    page = look(name, theme=theme).page
    assert page.locator("html").get_attribute("data-theme") == theme
    result = page.evaluate(FAINT)
    assert result["measured"] > 20
    assert result["found"] == []


def test_the_switch_goes_through_both_themes_and_is_remembered(visit):
    page = visit(PAGES[0]).page
    grounds = set()
    for _ in range(3):
        page.locator("button.theme-switch-button:visible").first.click()
        theme = page.locator("html").get_attribute("data-theme")
        ground = hexed(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert ground == THEMES[theme]
        grounds.add(ground)
    assert grounds == set(THEMES.values())
    here = page.url
    there = here.replace(PAGES[0], PAGES[1])

    def remembered():  # a browser writes what a page stores when it has time, and the next page may store its own
        page.goto(here)
        while page.locator("html").get_attribute("data-theme") != "dark":
            page.locator("button.theme-switch-button:visible").first.click()
        page.goto(there)
        return page.locator("html").get_attribute("data-theme") == "dark"

    assert eventually(remembered)


# Of each cell that is not folded what its button copies, and what it shows.
COPIED = """() => [...document.querySelectorAll("div.cell_input")].filter(c => !c.closest("details")).map(cell => [
  document.querySelector(cell.querySelector("button.copybtn").dataset.clipboardTarget).textContent,
  cell.querySelector("pre").textContent,
])"""


@pytest.mark.parametrize("name", CHAPTERS)
def test_every_code_cell_has_a_copy_button_for_its_code(look, name):
    cells = look(name).page.evaluate(COPIED)
    assert len(cells) > 5
    assert [copied for copied, shown in cells if copied != shown] == []


def test_the_menu_of_downloads_opens_by_keyboard_and_closes(visit):
    page = visit(CHAPTERS[0]).page
    button, link = page.get_by_role("button", name="Download this page"), page.locator("a.btn-download-source-button")
    assert not link.is_visible()
    button.press("Enter")
    assert link.is_visible() and button.get_attribute("aria-expanded") == "true"
    page.keyboard.press("Tab")
    assert link.evaluate("link => link === document.activeElement")
    page.keyboard.press("Escape")
    assert not link.is_visible() and button.evaluate("button => button === document.activeElement")
    button.click()
    page.mouse.click(5, 5)
    assert not link.is_visible() and button.get_attribute("aria-expanded") == "false"


def test_what_scrolls_is_reached_by_keyboard_and_nothing_else(visit, site):
    script = (site / "_static" / "book.js").read_text(encoding="utf-8")
    assert ".nboutput > .output_area" not in script  # the theme's own way
    page = visit(CHAPTERS[0], width=390).page
    boxes = page.locator("article pre")
    scrolls = "all => all.filter(e => e.checkVisibility()).map(e => [e.scrollWidth > e.clientWidth, e.tabIndex === 0])"
    assert eventually(lambda: all(wide == reached for wide, reached in boxes.evaluate_all(scrolls)))
    boxes.first.evaluate("box => { box.style.width = '40px'; box.style.whiteSpace = 'pre'; }")
    assert eventually(lambda: boxes.first.get_attribute("tabindex") == "0")


@pytest.mark.parametrize("name", CHAPTERS)
def test_the_notebook_can_be_downloaded(look, site, name):
    page = look(name).page
    links = page.locator("a.btn-download-source-button").evaluate_all("all => all.map(a => a.href)")
    files = [Path(unquote(urlsplit(link).path)) for link in links if link.endswith(".ipynb")]
    assert len(files) == 1
    assert files[0].is_relative_to(site)
    assert json.loads(files[0].read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("name", CHAPTERS)
def test_solutions_are_closed_until_they_are_asked_for(look, site, name):
    page = look(name).page  # with all solutions open
    solutions = page.locator("details.admonition.solution")
    assert solutions.count() >= 1
    assert not re.search(r"<details[^>]*solution[^>]*\bopen\b", (site / name).read_text(encoding="utf-8"))
    assert page.locator("div.admonition.exercise").count() >= solutions.count()
    for solution in {0: solutions.first, solutions.count() - 1: solutions.last}.values():
        inside = solution.locator("div.cell_input").first
        assert inside.is_visible()
        solution.locator("> summary").click()
        assert not inside.is_visible()
        solution.locator("> summary").click()


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_says_what_it_shows(look, name):
    pictures = look(name).page.locator("article img")
    unnamed = pictures.evaluate_all(
        "all => all.filter(i => !(i.alt || '').trim() || i.alt.endsWith('.png')).map(i => i.src)"
    )
    assert unnamed == []


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_has_a_figure(look, name):
    assert look(name).page.locator("article img, article div.rl-nodes").count() >= 1


@pytest.mark.parametrize("name", [PAGES[0], *CHAPTERS])
@pytest.mark.parametrize("theme", THEMES)
def test_a_rank_has_its_colour_on_every_page_and_in_both_themes(look, name, theme):
    page = look(name, theme=theme).page
    chips = page.locator(".rl-rank").evaluate_all(
        """all => all.map(e => [e.textContent, getComputedStyle(e)])
                     .map(([text, style]) => [text, style.backgroundColor, style.color])"""
    )
    chips = [(re.fullmatch(r"(?:rank )?(\d+)", text), ground, ink) for text, ground, ink in chips]
    ranks = [(int(match[1]), hexed(ground), hexed(ink)) for match, ground, ink in chips if match]
    assert len({rank for rank, _, _ in ranks}) >= 2 or name in WITHOUT_RANKS
    assert ranks == [(rank, rank_color(rank), label_color(rank)) for rank, _, _ in ranks]


def test_cells_that_run_on_ranks_are_marked(look):
    page = look(PAGES[0]).page
    marked = page.locator("div.highlight.rl-on-ranks pre")
    assert marked.count() >= 1
    assert all(text.startswith("%%px") for text in marked.all_text_contents())


def test_every_link_inside_the_site_leads_somewhere(site):
    pages = {(site / name).resolve(): (site / name).read_text(encoding="utf-8") for name in PAGES}
    names = {path: set(re.findall(r'\bid="([^"]*)"', text)) for path, text in pages.items()}
    links, missing = 0, []
    for path, text in pages.items():
        for link in re.findall(r'<a\b[^>]*?\shref="([^"]*)"', text):
            parts = urlsplit(html.unescape(link))
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            links += 1
            if not target.is_file() or (parts.fragment and unquote(parts.fragment) not in names.get(target, ())):
                missing.append(f"{path.name}: {link}")
    assert missing == [] and links > 20 * len(PAGES)


def test_these_measures_notice_what_is_wrong(visit):
    seen = visit(PAGES[0], width=390)
    seen.page.evaluate(
        """() => {
          document.querySelector("article").insertAdjacentHTML("beforeend",
            '<p style="color:#999;background:#fff">too faint</p><div style="width:900px">too wide</div>' +
            '<img src="https://example.org/x.png">');
          console.error("planted");
        }"""
    )
    seen.page.wait_for_timeout(200)
    assert any("too faint" in text for text in seen.page.evaluate(FAINT)["found"])
    assert seen.page.evaluate(WIDE) != []
    assert seen.foreign == ["https://example.org/x.png"]
    assert "planted" in seen.errors
