"""A figure's dark twin: the ranks keep their colours, paper becomes the page, ink becomes light, labels can be read."""

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw

from bookkit.website.darken import darken, oklab, turn
from ranklab.palette import DARK_PAGE, ERROR_COLOR, INK, MUTED, PAPER, RANK_COLORS, RULE, contrast, label_color

WHITE = "#ffffff"


def turned(*colours):
    rgb = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in colours], dtype=float)
    return ["#{:02x}{:02x}{:02x}".format(*row) for row in turn(rgb).round().astype(int)]


def hue(colour):
    _, a, b = oklab([[int(colour[i : i + 2], 16) for i in (1, 3, 5)]])[0]
    return np.degrees(np.arctan2(b, a))


def png(*boxes, size=(200, 80)):
    """A picture on paper with boxes, each left, top, right, bottom and colour."""
    picture = Image.new("RGB", size, PAPER)
    for *corners, colour in boxes:
        ImageDraw.Draw(picture).rectangle(corners, fill=colour)
    stored = io.BytesIO()
    picture.quantize(256).save(stored, "png")
    return stored.getvalue()


def dark(image):
    return Image.open(io.BytesIO(darken(image))).convert("RGB")


def at(picture, x, y):
    return "#{:02x}{:02x}{:02x}".format(*picture.getpixel((x, y)))


def test_white_and_paper_become_the_dark_page_itself():
    assert turned(WHITE, PAPER) == [DARK_PAGE, DARK_PAGE]


@pytest.mark.parametrize("colour", [*RANK_COLORS, ERROR_COLOR])
def test_a_rank_keeps_its_colour_and_its_contrast(colour):
    (found,) = turned(colour)
    assert abs((hue(found) - hue(colour) + 180) % 360 - 180) < 1
    assert contrast(found, DARK_PAGE) >= 3
    assert found == colour


@pytest.mark.parametrize(("colour", "least"), [(INK, 12), (MUTED, 6), ("#000000", 15)])
def test_ink_can_be_read(colour, least):
    assert contrast(turned(colour)[0], DARK_PAGE) >= least


@pytest.mark.parametrize("colour", RANK_COLORS)
def test_a_tint_keeps_its_hue_and_becomes_a_shade(colour):
    paper = np.array([int(PAPER[i : i + 2], 16) for i in (1, 3, 5)])
    full = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    tint = "#{:02x}{:02x}{:02x}".format(*(0.5 * paper + 0.5 * full).round().astype(int))
    (shade,) = turned(tint)
    assert contrast(shade, DARK_PAGE) < contrast(colour, DARK_PAGE)


@pytest.mark.parametrize("colour", ["#fde725", "#440154", "#b8e186"])
def test_another_colour_is_turned_and_keeps_its_hue(colour):
    (found,) = turned(colour)
    lightness = oklab([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in (colour, found)])[:, 0]
    assert (lightness[0] - 0.6) * (lightness[1] - 0.6) < 0
    assert abs((hue(found) - hue(colour) + 180) % 360 - 180) < 8


@pytest.mark.parametrize("rank", [0, 2])
def test_a_label_in_a_bar_stays_what_it_was(rank):
    bar = RANK_COLORS[rank]
    picture = dark(png((20, 20, 120, 60, bar), (60, 30, 63, 50, label_color(rank))))
    assert at(picture, 61, 40) == label_color(rank)
    assert at(picture, 40, 40) == bar
    assert at(picture, 5, 5) == DARK_PAGE


def test_a_gap_between_bars_and_an_open_box_have_the_dark_ground():
    bar = RANK_COLORS[1]
    gap = dark(png((20, 20, 80, 60, bar), (84, 20, 150, 60, bar)))
    assert at(gap, 82, 40) == DARK_PAGE
    box = dark(png((20, 20, 40, 60, bar), (22, 22, 38, 58, PAPER)))
    assert at(box, 30, 40) == DARK_PAGE
    assert at(box, 21, 40) == bar
    ink = dark(png((20, 20, 60, 60, bar), (70, 20, 120, 60, bar), (64, 30, 66, 50, INK)))
    assert contrast(at(ink, 65, 40), DARK_PAGE) > 12


def test_lines_of_a_grid_do_not_keep_a_gap_light():
    bar, grid = RANK_COLORS[0], [(x, 0, x + 1, 80, RULE) for x in (30, 70, 110, 150)]
    picture = dark(png(*grid, (10, 10, 180, 30, bar), (10, 47, 160, 67, bar)))
    assert {at(picture, x, 38) for x in (20, 50, 90, 130)} == {DARK_PAGE}
    assert contrast(at(picture, 70, 38), DARK_PAGE) < 3


def test_a_twin_has_the_size_and_at_most_the_colours_of_a_palette():
    picture = Image.effect_mandelbrot((90, 60), (-2, -1, 1, 1), 30).convert("RGB")
    stored = io.BytesIO()
    picture.save(stored, "png")
    made = Image.open(io.BytesIO(darken(stored.getvalue())))
    assert made.size == (90, 60)
    assert made.mode == "P"
