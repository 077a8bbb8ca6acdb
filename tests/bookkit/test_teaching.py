"""Plans add up and name what is there, chapters have their notes, the test has its answers, and cells make slides."""

import copy
import errno
import functools
import os
import re
from pathlib import Path

import pytest
import yaml

from bookkit.chapters import chapters
from bookkit.errors import BookError
from bookkit.teaching import __main__ as verb
from bookkit.teaching.choose import ROOM, Block, cut, slides
from bookkit.teaching.deck import deck
from bookkit.teaching.lessons import Lesson, anchor
from bookkit.teaching.notes import Notes, notes, page_of
from bookkit.teaching.plans import SOURCE, Part, plans
from bookkit.teaching.sheet import glossary, sheet, terms
from bookkit.teaching.words import bare, sentences
from tests.benchmarks import lesson as timing

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "book" / "teaching"
PLANS = ["ninety-minutes", "half-a-day", "two-days", "ten-weeks"]
PROMISED = {"ninety-minutes": [90], "half-a-day": [240], "two-days": [420, 420], "ten-weeks": [120] * 10}
CHAPTERS = chapters(ROOT)
NOTED = [path for path in CHAPTERS if page_of(ROOT, path).exists()]  # the page of a new part comes after its chapters
LINKED = re.compile(r"\]\((\.\./[\w./-]+\.ipynb)(?:#([\w-]+))?\)")
ROW = re.compile(r"^\| (\d+:\d\d) · \[(.+?)\]\(\.\./([\w/-]+)\.ipynb#([\w-]+)\) \| (\d+) \|", re.M)
ANSWER = re.compile(r"^\| (\d+) \| ([ABC]) \| ((?:(?:, )?\[[^]]+\]\(\.\./[\w/-]+\.ipynb#[\w-]+\))+) \|$", re.M)
# What tests.md says of each plan: the questions whose sections it leaves out.
LEFT_OUT = {"half-a-day": {2, 3, 5, 6, 9, 12}, "two-days": {5, 6}, "ten-weeks": set()}
ALONE = re.compile(r"^\*\*(\d+:\d\d)\*\* · (\d+) minutes? · (.+)$", re.M)


@functools.cache
def lesson(path):
    return Lesson(path)


def minutes(clock):
    hours, rest = clock.split(":")
    return 60 * int(hours) + int(rest)


@pytest.mark.parametrize("plan", PLANS)
def test_a_plan_adds_up_and_teaches_core_sections_in_the_minutes_of_the_pages(plan):
    text = (FOLDER / f"{plan}.md").read_text(encoding="utf-8")
    days = re.split(r"^## .+$", text, flags=re.M)[1:]
    assert len(days) == len(PROMISED[plan])
    for day, promised in zip(days, PROMISED[plan], strict=True):
        steps = [(match.start(), minutes(match[1]), int(match[5])) for match in ROW.finditer(day)]
        steps += [(match.start(), minutes(match[1]), int(match[2])) for match in ALONE.finditer(day)]
        steps.sort()
        now = steps[0][1]
        for _, clock, length in steps:
            assert clock == now
            now += length
        assert now - steps[0][1] == promised
        for _, title, chapter, link, stated in ROW.findall(day):
            section = lesson(ROOT / "book" / f"{chapter}.ipynb").section(title)
            assert (section.kind, section.minutes, anchor(title)) == ("Core", int(stated), link)


def test_the_plans_are_those_that_plans_yml_and_the_chapters_make():
    for name, text in plans(ROOT).items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, "python -m bookkit.teaching.plans writes them"


def a_part(block, promised="rest"):
    rest = {"say": "Break", "minutes": "rest" if promised == "rest" else 10}
    told = {"heading": "A day", "minutes": 90 if promised == "rest" else promised, "blocks": [block, rest]}
    return Part(told, lambda chapter: lesson(ROOT / "book" / f"{chapter}.ipynb"))


def test_a_plan_that_does_not_add_up_is_refused():
    with pytest.raises(BookError, match="56 minutes are promised, and 1 are left"):
        a_part({"chapter": "data-parallel/ddp"}, 56)


def test_a_section_that_is_not_core_or_does_not_exist_is_refused():
    with pytest.raises(BookError, match="not core: The prefix"):
        a_part({"chapter": "data-parallel/ddp", "sections": ["The prefix"]}, 20)


@pytest.mark.parametrize("plan", LEFT_OUT)
def test_a_plan_teaches_the_sections_that_the_test_asks_for(plan):
    taught = set()
    for _, title, chapter, _, _ in ROW.findall((FOLDER / f"{plan}.md").read_text(encoding="utf-8")):
        section = lesson(ROOT / "book" / f"{chapter}.ipynb").section(title)
        taught |= {f"../{chapter}.ipynb#{anchor(heading)}" for heading in section.headings}
    answers = ANSWER.findall((FOLDER / "tests.md").read_text(encoding="utf-8"))
    missing = {int(number) for number, _, links in answers if not taught & set(re.findall(r"\((\.\.[^)]+)\)", links))}
    assert missing == LEFT_OUT[plan]


@functools.cache
def held(chapter):
    """What the sections of a chapter take, without the seconds of their cells."""
    return {part.title: part for part in timing.lesson(lesson(ROOT / "book" / f"{chapter}.ipynb").notebook)[1].values()}


@pytest.mark.parametrize(
    "plan", yaml.safe_load((ROOT / SOURCE).read_text(encoding="utf-8")), ids=lambda told: told["page"]
)
def test_the_minutes_of_a_row_hold_what_is_read_voted_on_and_typed(plan):
    for told in plan["parts"]:
        for block in Part(told, lambda chapter: lesson(ROOT / "book" / f"{chapter}.ipynb")).blocks:
            if "chapter" not in block.told:
                continue
            took = 0
            for section in block.rows:
                part = copy.copy(held(block.told["chapter"])[section.title])
                part.questions = len(block.ask[section.title])
                part.lines *= section.title not in block.run
                assert part.minutes <= section.minutes + 1, f"{told['heading']}, {section.title}: run it, or ask less"
                took += part.minutes
            assert took < block.minutes, f"{told['heading']}: {block.told['chapter']}"


DDP = "data-parallel/ddp"
TALKS = "What DDP says, and when"


def test_a_plan_names_the_question_that_it_means():
    named = {TALKS: "In which part do the ranks talk?", "When it breaks": ["What happens?"]}
    taught = a_part({"chapter": DDP, "ask": named}).blocks[0]
    assert taught.ask[TALKS] == ["In which part do the ranks talk?"]
    assert taught.ask["When it breaks"] == ["What happens?"]
    assert len(taught.ask["What DDP leaves to you"]) == 2, "where a plan names none: the first and the last"
    assert "| *In which part do the ranks talk?* |" in taught.text(0)


def test_a_question_that_the_section_does_not_ask_is_refused_with_those_of_the_chapter():
    told = f"{DDP}: '{TALKS}' does not ask 'Who talks?'; asked are .*What DDP says.*In which part do the ranks talk?"
    with pytest.raises(BookError, match=told.replace("?", r"\?")):
        a_part({"chapter": DDP, "ask": {TALKS: "Who talks?"}})


@pytest.mark.parametrize("key", ["ask", "run", "late"])
def test_a_row_that_is_not_taught_has_no_question_and_nothing_to_run_or_drop(key):
    with pytest.raises(BookError, match="is not taught: When it breaks"):
        a_part({"chapter": DDP, "sections": [TALKS], key: {"When it breaks": "What happens?"}})


def test_a_plan_says_where_nobody_types_and_what_else_to_do():
    text = a_part({"chapter": DDP, "run": [TALKS, "When it breaks"], "do": "Draw it."}).blocks[0].text(0)
    assert f"Nobody types in *{TALKS}* and *When it breaks*: everybody" in text
    assert "\n\nDraw it.\n\n| Section" in text


@pytest.mark.parametrize("path", NOTED, ids=lambda path: path.stem)
def test_the_notes_of_a_chapter_name_its_sections_and_all_its_exercises(path):
    taught = lesson(path)
    own = notes(ROOT, path, taught.title)
    assert len(own.believed) == 3 and 2 <= len(own.asked) <= 3
    assert own.time and own.drawing
    for title, _ in own.believed + own.asked:
        assert taught.section(title).kind == "Core"
    assert re.findall(r"<([\w-]+)>`", own.text) == [exercise.label for exercise in taught.exercises]


def test_every_part_that_is_taught_has_notes():
    parts = {path.parent.name for path in NOTED}
    assert {"ranks", "talking", "data-parallel", "breaking", "launching", "model-parallel"} <= parts


def test_every_link_to_a_section_leads_to_a_heading():
    linked = 0
    for page in [*FOLDER.glob("*.md"), *FOLDER.glob("notes/*.md")]:
        text = page.read_text(encoding="utf-8").replace("](../../", "](../")
        for target, name in LINKED.findall(text):
            headings = lesson((FOLDER / target).resolve()).headings
            assert not name or name in map(anchor, headings), f"{page.name}: {target}#{name}"
            linked += bool(name)
    assert linked > 300


def test_the_test_has_twelve_questions_each_with_an_answer_and_the_section_that_shows_it():
    asked, answers = (FOLDER / "tests.md").read_text(encoding="utf-8").split("## The answers")
    questions = dict(re.findall(r"^(\d+)\. (.+)$", asked.split("## The questions")[1], re.M))
    right = [(number, letter) for number, letter, _ in ANSWER.findall(answers)]
    assert [number for number, _ in right] == list(questions) == [str(number) for number in range(1, 13)]
    for number, letter in right:
        assert re.findall(r"\(([A-C])\)", questions[number]) == ["A", "B", "C"]
        assert f"({letter})" in questions[number]
    letters = [letter for _, letter in right]
    assert max(map(letters.count, "ABC")) <= 6  # a guesser gains nothing


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_makes_a_deck_with_all_that_its_core_asks_and_shows(path):
    taught = lesson(path)
    made = slides(taught, notes(ROOT, path, taught.title))
    blocks = [block for slide in made for block in slide.blocks]
    asked = [question.text for section in taught.core for question in section.questions]
    assert [block.text for block in blocks if block.kind == "question"] == asked
    assert made[0].kind == "title" and made[-1].heading == "Summary"
    assert any(block.kind == "picture" for block in blocks)
    assert all(sum(block.height for block in slide.blocks) <= ROOM or len(slide.blocks) == 1 for slide in made)
    page = deck(taught.title, made)
    assert "{term}" not in page and not re.search(r'(src|href)="(?!data:)|url\(|@import', page)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_makes_a_sheet_with_terms_picture_summary_and_code(path):
    page = sheet(lesson(path), ROOT)
    assert page.count("<dt>") == len(terms(lesson(path), glossary(ROOT)))
    assert page.count("<img ") == 1 and page.count("<li>") >= 3
    assert len(re.search(r"<pre>(.*?)</pre>", page, re.S)[1].split("\n")) >= 3


def test_a_note_comes_with_the_first_slide_of_its_section():
    path = next(path for path in CHAPTERS if path.stem == "your-first-ranks")
    made = slides(lesson(path), Notes(believed=[("What ranks share", "a belief")]))
    (told,) = [slide for slide in made if "People believe: a belief" in slide.notes]
    assert told is next(slide for slide in made if slide.heading == "What ranks share")


def test_an_output_that_is_too_long_is_cut_at_a_line():
    assert cut("\n".join("abc"), most=2) == "a\nb\n…"
    assert cut("one\ntwo\n", most=2) == "one\ntwo"


def test_a_long_code_takes_more_room_than_a_short_one():
    assert Block("code", "x\n" * 9 + "x").height > Block("code", "x").height


def test_words_lose_what_only_a_page_can_show():
    page = "A {term}`rank`, a {term}`link <network>`.[^why] [Here](x.ipynb).\n\n[^why]: A source."
    assert bare(page) == "A rank, a link. Here."
    assert sentences("One word. Two more words. And these three:", 40) == "One word. Two more words."


def test_terms_come_in_the_order_of_the_page():
    path = next(path for path in CHAPTERS if path.stem == "your-first-ranks")
    known = {"torchrun": ("torchrun", "A launcher"), "rank": ("rank", "A number")}
    assert terms(lesson(path), known) == [("rank", "A number"), ("torchrun", "A launcher")]


def raising(error):
    def make(*_):
        raise error

    return make


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError(errno.EROFS, os.strerror(errno.EROFS), "_build"), "_build: Read-only file system\n"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "_build/slides: No space left on device\n"),
        (BookError("no such chapter"), "no such chapter\n"),
    ],
)
def test_what_stops_the_slides_is_told_in_a_sentence(monkeypatch, capsys, error, sentence):
    monkeypatch.setattr(verb, "make", raising(error))
    assert verb.main() == 1
    assert capsys.readouterr().err == sentence


def test_an_error_of_the_system_about_no_file_of_the_slides_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(verb, "make", raising(OSError("something else")))
    with pytest.raises(OSError, match="something else"):
        verb.main()


def test_slides_that_the_author_stops_say_so(monkeypatch, capsys):
    monkeypatch.setattr(verb, "make", raising(KeyboardInterrupt()))
    assert verb.main() == 130
    assert capsys.readouterr().out == "Stopped.\n"
