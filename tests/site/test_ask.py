"""Predictions that ask: an answer comes before what the cell printed, and without scripts everything is there."""

import re
from pathlib import Path

import pytest

from bookkit.chapters import chapters
from bookkit.notebook import read
from bookkit.voice import BOLD_QUESTION
from tests.site.test_pages import FAINT, WIDE

ROOT = Path(__file__).parents[2]
HANGS = "book/breaking/hangs.html"
SCRIPT, STYLE = ROOT / "book/_static/ask.js", ROOT / "book/_static/ask.css"
ANSWER = re.compile(r"The answers? (?:is|are) ([A-D])(?: and ([A-D]))?\b")
FOUND = 0.95  # the part of all questions whose answer the page can mark; of the others it only shows the output

# What a page prints and what its cells hold is of no use here, and takes long to load.
BULK = re.compile(r"<pre\b.*?</pre>|<img\b[^>]*>|<script\b.*?</script>", re.S)
# Each question of a page: its words, and the letters that it offers.
QUESTIONS = """() => [...document.querySelectorAll(".rl-answers")].map(group => ({
  text: group.getAttribute("aria-label"),
  letters: [...group.children].map(button => button.dataset.letter).join(""),
}))"""
# What the page marks when every first answer is chosen, question by question.
MARKED = """() => {
  const groups = [...document.querySelectorAll(".rl-answers")];
  for (const group of groups) group.firstElementChild.click();
  return groups.map(group => group.querySelector(".rl-right")?.dataset.letter || "");
}"""
UNSEEN = "() => [...document.querySelectorAll('.rl-held')].filter(e => e.getBoundingClientRect().height < 2).length"


def plain(text):
    return re.sub(r"\{\w+\}(?=`)|[^A-Za-z0-9]", "", text)


def told(notebook):
    """The questions of a chapter with the letter that the prose gives for each; "" where it begins with other words."""
    cells, found = notebook.cells, []
    for index, cell in enumerate(cells):
        questions = BOLD_QUESTION.findall(cell.source) if cell.cell_type == "markdown" else []
        after = next((each.source for each in cells[index + 1 :] if each.cell_type == "markdown"), "")
        answer = ANSWER.match(after)
        letters = [letter for letter in answer.groups() if letter] if answer else []
        letters = letters if len(letters) == len(questions) else [""] * len(questions)
        found += zip(map(plain, questions), letters, strict=True)
    return found


# A page as Jupyter Book builds it: one question with its output and reason, then two before one output, then one that
# no text answers.
SMALL = """<!doctype html><html lang="en"><title>Small</title><meta charset="utf-8">
<link rel="stylesheet" href="{style}">
<script defer src="{script}"></script><main><article><section><h1>Small</h1><section><h2>One</h2>
<p>Two ranks. <strong>Who waits?</strong> (A) rank <code>0</code>, in
<code>recv</code> (B) nobody (C) both</p>
<div class="cell"><div class="cell_input">code</div></div>
<div class="cell"><div class="cell_input">code</div><div class="cell_output" id="first">printed first</div></div>
<p id="why">The answer is B. So it was<a id="note" href="#x">1</a>.</p><p id="next">It follows from that.</p>
<div class="cell"><div class="cell_input">more</div><div class="cell_output" id="free">asked by nobody</div></div>
<p><strong>What is heard?</strong> (A) an error (B) nothing</p><p><strong>And then?</strong> (A) a hang (B) an end</p>
<div class="cell"><div class="cell_input">code</div><div class="cell_output" id="second">printed second</div></div>
<p>The answers are B and A. That is why.</p></section><section><h2>Two</h2>
<p><strong>How many?</strong> (A) one (B) two</p>
<div class="cell"><div class="cell_input">code</div><div class="cell_output" id="third">printed third</div></div>
<p id="on">The next cell goes on.</p></section></section></article></main></html>"""


PARTS = ["first", "why", "next", "free", "second", "third", "on"]


@pytest.fixture
def small(chromium, tmp_path):
    """Open the small page; ``small(java_script_enabled=False)``. A second call opens it anew."""
    path = tmp_path / "small.html"
    path.write_text(SMALL.format(script=SCRIPT.as_uri(), style=STYLE.as_uri()), encoding="utf-8")
    contexts = []

    def opened(script=None, **wishes):
        contexts.append(chromium.new_context(**wishes))
        if script:
            contexts[-1].add_init_script(script)
        page = contexts[-1].new_page()
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


def seen(page):
    """Which of the outputs and texts are shown."""
    return [name for name in PARTS if page.locator(f"#{name}").is_visible()]


def pressed(page, question):
    return page.get_by_role("group", name=question).get_by_role("button", pressed=True).all_inner_texts()


def test_an_answer_comes_before_the_output_and_the_reason(small):
    page = small()
    assert seen(page) == ["free", "on"]
    assert page.get_by_text("What it prints waits for your answer.").count() == 3
    page.get_by_role("button", name="(C) both").click()
    assert seen(page) == ["first", "why", "next", "free", "on"]
    group = page.get_by_role("group", name="Who waits?")
    assert pressed(page, "Who waits?") == ["(C) both"]
    assert group.locator(".rl-right").inner_text().startswith("(B) nobody")
    assert group.get_by_role("button").first.inner_text() == "(A) rank 0, in recv"
    assert page.get_by_role("status").first.inner_text() == "You chose C. The page says B, and the reason is below."
    group.get_by_role("button", name="(B)").dispatch_event("click")  # too late
    assert pressed(page, "Who waits?") == ["(C) both"]


def test_the_keyboard_is_enough(small):
    page = small()
    page.get_by_role("button", name="(A) rank").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.get_by_text("You chose B, and so does the page.").is_visible()
    page.get_by_role("button", name="(A) one").focus()
    page.keyboard.press("b")
    assert page.get_by_text("You chose B. What follows is shown below.").is_visible()
    assert page.locator("#third").is_visible()


def test_two_questions_before_one_output_are_both_answered_first(small):
    page = small()
    page.get_by_role("button", name="(A) an error").click()
    assert "second" not in seen(page) and page.get_by_text("One more question").is_visible()
    page.get_by_role("button", name="(B) an end").click()
    assert "second" in seen(page) and page.get_by_text("You chose A and B. The page says B and A").is_visible()


def test_an_output_can_be_seen_without_an_answer_and_the_focus_is_not_lost(small):
    page = small()
    page.get_by_role("button", name="Show it").first.press("Enter")
    assert "why" in seen(page) and page.get_by_text("Shown without an answer.").is_visible()
    assert page.evaluate("document.activeElement.textContent").startswith("(A) rank")


def test_what_was_shown_without_an_answer_stays_shown_when_one_of_two_questions_is_answered(small):
    page = small()
    page.get_by_role("button", name="Show it").nth(1).click()
    assert "second" in seen(page)
    page.get_by_role("button", name="(A) an error").click()
    assert "second" in seen(page)
    page.reload()
    assert "second" in seen(page) and pressed(page, "What is heard?") == ["(A) an error"]
    page.get_by_role("button", name="(B) an end").click()
    assert "second" in seen(page) and page.get_by_text("You chose A and B. The page says B and A").is_visible()


def test_the_page_remembers_answers_and_the_switch_until_told_to_forget(small):
    page = small()
    assert page.get_by_text("4 questions on this page").is_visible()
    page.get_by_role("button", name="(C) both").click()
    page.reload()
    assert pressed(page, "Who waits?") == ["(C) both"] and "why" in seen(page)
    page.get_by_label("Show all outputs").check()
    assert "third" in seen(page)
    page.reload()
    assert "third" in seen(page) and page.get_by_label("Show all outputs").is_checked()
    page.get_by_role("button", name="Forget my answers").click()
    assert seen(page) == ["free", "on"] and page.get_by_text("You chose").count() == 0


def test_a_browser_that_keeps_nothing_asks_all_the_same(small):
    page = small(script="Object.defineProperty(window, 'localStorage', { get() { throw new Error('no'); } });")
    page.get_by_role("button", name="(C) both").click()
    assert "why" in seen(page)


def test_without_scripts_and_on_paper_everything_is_shown(small):
    without = small(java_script_enabled=False)
    assert seen(without) == PARTS and without.get_by_role("button").count() == 0
    paper = small()
    paper.emulate_media(media="print")
    assert paper.evaluate(UNSEEN) == 0
    assert paper.locator(".rl-waits:visible, .rl-asking:visible").count() == 0


def test_what_waits_is_found_by_a_link(small):
    page = small()
    page.evaluate("location.hash = 'note'")
    page.wait_for_function("!document.getElementById('note').closest('[hidden]')")
    assert "first" in seen(page)


def test_every_question_asks_and_marks_the_answer_that_the_prose_gives(chromium, site):
    page, every, known, slips = chromium.new_page(), 0, 0, []
    for chapter in chapters(ROOT):
        name = chapter.relative_to(ROOT).with_suffix(".html")
        page.set_content(BULK.sub("", (site / name).read_text(encoding="utf-8")), wait_until="commit")
        page.add_script_tag(path=SCRIPT)
        asked, wanted = page.evaluate(QUESTIONS), told(read(chapter))
        slips += [f"{name}: {each['text']} offers {each['letters']}" for each in asked if len(each["letters"]) < 2]
        if [plain(each["text"]) for each in asked] != [text for text, _ in wanted]:
            slips.append(f"{name}: {len(asked)} of {len(wanted)} questions ask")
            continue
        marked = page.evaluate(MARKED)
        pairs = zip(wanted, marked, strict=True)
        slips += [f"{name}: {text} {right} is not {mark}" for (text, right), mark in pairs if right and mark != right]
        every, known = every + len(marked), known + sum(map(bool, marked))
    page.close()
    assert slips == []
    assert known > FOUND * every > 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_questions_can_be_read_and_fit_a_small_screen(visit, theme):
    page = visit(HANGS, width=375, asking=True, color_scheme=theme).page
    assert page.evaluate(UNSEEN) > 5
    assert page.evaluate(WIDE) == [] and page.evaluate(FAINT)["found"] == []
    page.evaluate(MARKED)
    assert page.evaluate(WIDE) == [] and page.evaluate(FAINT)["found"] == []
