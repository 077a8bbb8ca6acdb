"""Figures that move, in a real browser: in the place of pictures, without scripts, on paper, by keyboard, on phones."""

import base64
import gzip
from pathlib import Path

import pytest
from IPython.core.formatters import DisplayFormatter

from bookkit.moving import scripts, with_recordings
from ranklab.figures import backward, chart, cost_fit, exchange, schedules, sums, waiting
from ranklab.figures.recording import keep
from tests.site.test_pages import FAINT, WIDE

BOOK = Path(__file__).parents[2] / "book"
STATIC = BOOK / "_static"
MOST = 60_000
OWN, BOTH = {0: [1, 1], 1: [10, 10]}, [11, 11]
COMPUTED = {"zero": "Which step fits?", "places": "Six numbers", "cost": "Bytes to time", "mesh": "A mesh"}
TITLES = ["one backward", "a schedule", "a hang", "a call", "a line", "a cut", "a sum", "stages", *COMPUTED.values()]


def recordings():
    """One figure of each kind, as chapters draw them."""
    sent = [("2 MiB", 0.02, 0.05), ("2 MiB", 0.04, 0.09)]
    rank = {"began": 0.0, "ready": [0.01, 0.02, 0.03, 0.04], "sums": sent, "ended": 0.09}
    whole = rank | {"sums": [("4 MiB", 0.04, 0.12)], "ended": 0.12}
    steps = [[("F", 0, 0.0, 0.1), ("B", 0, 0.3, 0.5)], [("F", 0, 0.1, 0.2), ("B", 0, 0.2, 0.3)]]
    early = [("all_reduce", 0.4, 0.9), ("barrier", 0.9, 5.4)]
    late = [("all_reduce", 0.8, 0.9), ("all_reduce", 1.4, None), ("barrier", 5.45, 5.5)]
    ranks = [{"began": 0, "calls": late, "error": 5.4}, {"began": 0, "calls": early, "error": None}]
    yield backward({"first step": [whole, whole], "later, 2 MiB": [rank, rank]}, TITLES[0])
    yield schedules({"GPipe, 1 micro-batch: 500 ms": (steps, steps), "1F1B, 1 micro-batch": (steps, steps)}, TITLES[1])
    yield waiting(ranks, TITLES[2])
    yield exchange([[1, 2], [5, 6]], {"broadcast": [[5, 6], [5, 6]], "reduce": [[7, 8], None]}, TITLES[3])
    dots = [(1000, 0.00101), (1_000_000, 0.011)]
    yield cost_fit({"cable": dots}, {"cable": (0.001, 1e-8)}, {"cable": [(10_000_000, 0.11)]}, TITLES[4])
    costs = [["activations", [6e6, 3e6, 1e6]], ["step time", [0.01, 0.01, 0.03]]]
    figure, _ = chart(TITLES[5], "x", "y", 1)
    keep(figure, "cut", title=TITLES[5], pieces=["stem", "middle", "head"], costs=costs)
    yield figure
    calls = {rank: [("isend", 1 - rank, 0, own, own), ("recv", 1 - rank, 0, own, own)] for rank, own in OWN.items()}
    back = [[("recv", 1, 0, OWN[0], OWN[0]), ("send", 1, 0, BOTH, BOTH)], [calls[1][0], calls[1][1]]]
    ways = {"everyone": [(calls[0], BOTH), (calls[1], BOTH)], "one_server": [(back[0], BOTH), (back[1], BOTH)]}
    yield sums(ways, TITLES[6])
    each = [(schedule, stages) for stages in (2, 1) for schedule in ("GPipe", "1F1B")]
    yield schedules(
        {f"{name}, {count} stages, 8 micro-batches: 9 ms": (steps[:count],) * 2 for name, count in each}, TITLES[7]
    )


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """A page with one moving figure of each kind, made as the build makes it."""
    outputs = []
    for figure in recordings():
        data, metadata = DisplayFormatter().format(figure)
        outputs.append({"data": data, "metadata": metadata})
    cell = {"cell_type": "code", "outputs": outputs}
    body = ""
    for output in with_recordings({"cells": [cell]})["cells"][0]["outputs"]:
        if png := output["data"].get("image/png"):
            picture = f"data:image/png;base64,{base64.b64encode(png).decode()}"
            body += f'<div class="cell_output"><img alt="what is seen" src="{picture}">'
        else:
            body += f'<div class="output text_html">{output["data"]["text/html"]}</div></div>\n'
    for kind, title in COMPUTED.items():
        body += f'<div class="rl-moving" data-figure="{kind}" data-title="{title}"><p>in words</p></div>\n'
    files = "".join(f'<script defer src="{(STATIC / file).as_uri()}"></script>' for file in scripts(body))
    sheets = "".join(
        f'<link rel="stylesheet" href="{(STATIC / name).as_uri()}">'
        for name in ("rank-by-rank.css", "figures/figures.css")
    )
    theme = (
        "document.documentElement.dataset.theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'"
    )
    frame = "body{margin:0;padding:0 16px;background:var(--rl-page);color:var(--rl-ink)}*{box-sizing:border-box}"
    file = tmp_path_factory.mktemp("moving") / "page.html"
    file.write_text(
        f'<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8"><script>{theme}</script>'
        f"{sheets}<style>{frame}</style>{files}<body>{body}</body></html>",
        encoding="utf-8",
    )
    return file


@pytest.fixture(scope="module")
def opened(chromium, page_file):
    """Open the page: ``opened(width=375, color_scheme="dark")``; one context for each choice, with its errors."""
    contexts = {}

    def open_once(width=760, **options):
        key = (width, *sorted(options.items()))
        if key not in contexts:
            context = chromium.new_context(viewport={"width": width, "height": 900}, **options)
            context.set_default_timeout(120_000)  # of a machine that is busy with other things
            page = context.new_page()
            page.errors = []
            page.on("pageerror", lambda error: page.errors.append(str(error)))
            page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)
            page.goto(page_file.as_uri())
            contexts[key] = (context, page)
        return contexts[key][1]

    yield open_once
    for context, _ in contexts.values():
        context.close()


def figure(page, title):
    return page.get_by_role("group", name=title, exact=True)


def test_every_figure_stands_in_the_place_of_its_picture_and_on_paper_the_picture_stays(opened):
    page = opened()
    assert page.errors == []
    assert page.locator(".rl-figure").count() == len(TITLES)
    for title in TITLES:
        assert figure(page, title).is_visible()
        assert "ecorded" in figure(page, title).inner_text() or "omputed" in figure(page, title).inner_text()
    assert not any(still.is_visible() for still in page.locator("img, div.rl-moving").all())
    page.emulate_media(media="print")
    assert all(still.is_visible() for still in page.locator("img, div.rl-moving").all())
    assert not any(moving.is_visible() for moving in page.locator(".rl-figure").all())
    page.emulate_media(media="screen")


def test_without_scripts_the_pictures_are_there(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("img").first.is_visible()
    assert page.get_by_text("in words").first.is_visible()


def test_by_keyboard_a_slider_says_who_waits_for_whom(opened):
    page = opened()
    hang = figure(page, "a hang")
    time = hang.get_by_role("slider")
    time.focus()
    page.keyboard.press("Home")
    assert "is in its own code" in hang.inner_text()
    for _ in range(20):  # an arrow key goes a two-hundredth of 5.8 s
        page.keyboard.press("ArrowRight")
    assert time.get_attribute("aria-valuetext") == "0.58 s"
    assert "waits in all_reduce 1 for rank 0" in hang.inner_text()
    page.keyboard.press("End")
    assert "gets an error" in hang.inner_text()
    for _ in range(5):
        page.keyboard.press("PageDown")
    assert "waits in all_reduce 2 for rank 1" in hang.inner_text()
    assert "waits in barrier 1 for rank 0" in hang.inner_text()
    assert hang.locator("svg line.rl-arrow").count() == 2


def test_by_keyboard_a_size_a_schedule_and_a_call_are_chosen(opened):
    page = opened()
    xray = figure(page, "one backward")
    xray.get_by_role("slider", name="Buckets").focus()
    page.keyboard.press("ArrowRight")
    assert "later, 2 MiB: backward takes 90 ms, and 50 ms of it are waiting" in xray.inner_text()
    page.keyboard.press("ArrowLeft")
    assert "first step: backward takes 120 ms" in xray.inner_text()
    figure(page, "a schedule").get_by_role("radio").first.focus()
    page.keyboard.press("ArrowRight")
    assert "1F1B, 1 micro-batch: recorded 500 ms" in figure(page, "a schedule").inner_text()
    figure(page, "a call").get_by_role("radio").first.focus()
    page.keyboard.press("ArrowRight")
    assert "2 numbers came from another rank, rank 1." in figure(page, "a call").inner_text()
    page.keyboard.press("ArrowRight")
    assert (
        "2 numbers that no rank had before were computed. Nothing is left for rank 1."
        in figure(page, "a call").inner_text()
    )


def test_by_keyboard_stages_are_chosen_beside_the_schedule(opened):
    page = opened()
    pipeline = figure(page, "stages")
    assert pipeline.get_by_role("group").count() == 2  # all runs have eight micro-batches
    assert "GPipe, 2 stages, 8 micro-batches: recorded 500 ms" in pipeline.inner_text()
    pipeline.get_by_role("radio", name="2").focus()
    page.keyboard.press("ArrowLeft")  # numbers stand in their order
    assert "GPipe, 1 stages, 8 micro-batches: recorded 500 ms" in pipeline.inner_text()
    pipeline.get_by_role("radio", name="GPipe").focus()
    page.keyboard.press("ArrowRight")
    assert "1F1B, 1 stages, 8 micro-batches: recorded 500 ms, of which a stage is idle 40" in pipeline.inner_text()


def test_by_keyboard_a_way_to_a_sum_is_gone_through(opened):
    page = opened()
    way = figure(page, "a sum")
    assert "everyone, before the first of 1 step: each rank has its own numbers." in way.inner_text()
    way.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    assert "2 messages at once. So far each rank sent 1\u00a0S. The whole sum is on all ranks." in way.inner_text()
    way.get_by_role("radio").first.focus()
    page.keyboard.press("ArrowRight")
    way.get_by_role("button", name="Next").press("Enter")
    assert "one server, after step 1 of 2: 1 message." in way.inner_text()
    assert "So far rank 1 sent most, 1\u00a0S. The whole sum is on rank 0." in way.inner_text()
    assert way.locator("td.rl-got").all_inner_texts() == ["01\nfrom 1", "01\nfrom 1"]


def test_computed_figures_answer(opened):
    page = opened()
    zero = figure(page, COMPUTED["zero"])
    assert "ZeRO-1 is the first that fits into 80 GB." in zero.inner_text()
    zero.get_by_label("Memory").fill("20")
    assert "ZeRO-2 is the first that fits into 20 GB." in zero.inner_text()
    zero.get_by_label("Memory").fill("-3")
    assert zero.get_by_label("Memory").get_attribute("aria-invalid") == "true"
    nodes = figure(page, COMPUTED["places"])
    assert "gives this process 1, and its rank is 2" in nodes.inner_text()
    nodes.get_by_role("slider", name="On node 1").fill("2")
    assert "which is its rank. It is right for all of them." in nodes.inner_text()
    assert "WORLD_SIZE=4" in nodes.inner_text()
    mesh = figure(page, COMPUTED["mesh"])
    assert (
        "Its data group: ranks 1 and 3, across nodes. Its tensor group: ranks 0 and 1, on one node."
        in mesh.inner_text()
    )
    mesh.get_by_role("slider", name="Per node").fill("4")
    assert "No group crosses nodes." in mesh.inner_text()
    cost = figure(page, COMPUTED["cost"])
    assert "Ring: 1.93 s in 6 steps of 4 MB" in cost.inner_text()


def test_a_line_is_laid_through_the_dots_by_hand(opened):
    line = figure(opened(), "a line")
    assert "misses the filled dots by 0\u00a0%" in line.inner_text()
    rate = line.get_by_role("slider", name="Rate")
    fitted = rate.input_value()
    rate.fill(str(int(fitted) + 20))  # ten times as fast
    assert "misses the filled dots by 450\u00a0%; the fitted line misses them by 0\u00a0%" in line.inner_text()
    line.get_by_role("button", name="The fitted line").click()
    assert rate.input_value() == fitted


def test_a_cut_says_who_waits(opened):
    cut = figure(opened(), "a cut")
    assert "Cut before middle. If both ranks had work all the time, rank 0 would wait 75\u00a0%" in cut.inner_text()
    cut.get_by_role("slider").fill("2")
    assert "Cut before head. If both ranks had work all the time, rank 0 would wait 33\u00a0%" in cut.inner_text()
    assert "Nearest to half: activations after 1, step time after 2." in cut.inner_text()


def test_play_stands_only_where_motion_is_welcome(opened):
    assert (
        opened(width=375, color_scheme="light", reduced_motion="reduce").get_by_role("button", name="Play").count() == 0
    )
    page = opened()
    hang = figure(page, "a hang")
    hang.get_by_role("button", name="Play").click()
    hang.get_by_role("button", name="Pause").click()
    assert float(hang.get_by_role("slider").input_value()) < 5800


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_can_be_read_in_both_themes_and_on_a_phone(opened, theme):
    page = opened(width=375, color_scheme=theme, reduced_motion="reduce")
    assert page.evaluate(WIDE) == []
    result = page.evaluate(FAINT)
    assert result["measured"] > 60 and result["found"] == []
    sizes = page.locator(".rl-figure svg text").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 12


def test_all_figures_together_weigh_at_most_60_kb_compressed():
    files = [file for file in (STATIC / "figures").iterdir() if file.is_file()]
    assert len(files) > 5
    assert sum(len(gzip.compress(file.read_bytes(), mtime=0)) for file in files) <= MOST
