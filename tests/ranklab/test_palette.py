"""The rank colours: contrast on both pages, distances for the colour-blind, the same in the style sheet."""

import re
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from ranklab import palette
from ranklab.palette import DARK_PAGE, LIGHT_PAGE, RANK_COLORS, contrast, label_color, rank_color

STATIC = Path(__file__).parents[2] / "book" / "_static"

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB.
VISION = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900),
    ),
}  # fmt: skip
TO_LMS = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
TO_OKLAB = (
    (0.2104542553, 0.7936177850, -0.0040720468),
    (1.9779984951, -2.4285922050, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.8086757660),
)


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def seen(color, vision):
    """A colour as someone sees it, in Oklab, scaled so that 2 is about the least difference one notices."""
    srgb = (int(color[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in srgb]
    linear = [min(1, max(0, c)) for c in times(VISION[vision], linear)]
    return [100 * c for c in times(TO_OKLAB, [c ** (1 / 3) for c in times(TO_LMS, linear)])]


def distance(one, other, vision):
    return sum((a - b) ** 2 for a, b in zip(seen(one, vision), seen(other, vision), strict=True)) ** 0.5


@pytest.mark.parametrize("color", RANK_COLORS)
def test_a_rank_colour_stands_out_on_either_page(color):
    assert contrast(color, LIGHT_PAGE) >= 3
    assert contrast(color, DARK_PAGE) >= 3
    assert contrast(color, palette.PAPER) >= 3


@pytest.mark.parametrize("rank", range(len(RANK_COLORS)))
def test_a_number_on_a_rank_colour_is_readable(rank):
    assert contrast(label_color(rank), rank_color(rank)) >= 4.5


@pytest.mark.parametrize(("vision", "any_two", "first_four"), [
    ("usual", 12, 20),
    ("protanopia", 7, 10),
    ("deuteranopia", 7, 10),
    ("tritanopia", 7, 10),
])  # fmt: skip
def test_ranks_stay_apart_for_every_reader(vision, any_two, first_four):
    assert min(distance(a, b, vision) for a, b in combinations(RANK_COLORS, 2)) >= any_two
    assert min(distance(a, b, vision) for a, b in combinations(RANK_COLORS[:4], 2)) >= first_four
    assert min(distance(a, b, vision) for a, b in pairwise(RANK_COLORS)) >= 10


def test_the_measure_sees_that_red_and_green_are_hard_to_tell_apart():
    red, green = "#d55e00", "#7a9a01"
    assert distance(red, green, "deuteranopia") < distance(red, green, "usual") / 3


def test_text_is_readable():
    light, dark = palette.ERROR_TEXT
    assert contrast(light, LIGHT_PAGE) >= 4.5
    assert contrast(dark, DARK_PAGE) >= 4.5
    assert contrast(palette.INK, palette.PAPER) >= 7
    assert contrast(palette.MUTED, palette.PAPER) >= 4.5
    assert min(contrast(palette.ERROR_COLOR, page) for page in (LIGHT_PAGE, DARK_PAGE)) >= 3


def test_colours_begin_again_after_eight_ranks():
    assert rank_color(8) == rank_color(0)
    assert label_color(11) == label_color(3)
    assert len(set(RANK_COLORS)) == 8


def test_contrast_is_that_of_wcag():
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_the_style_sheet_has_the_same_colours():
    css = (STATIC / "rank-by-rank.css").read_text(encoding="utf-8")
    variables = re.findall(r"--rl-([a-z0-9-]+):\s*(#[0-9a-f]{6});", css)
    ranks = [value for name, value in variables if re.fullmatch(r"rank-\d", name)]
    assert ranks == list(RANK_COLORS)
    assert [value for name, value in variables if name == "page"] == [LIGHT_PAGE, DARK_PAGE]
    assert next(value for name, value in variables if name == "ink") == palette.INK
    assert [value for name, value in variables if name == "error"] == [palette.ERROR_COLOR]
    assert [value for name, value in variables if name == "error-text"] == list(palette.ERROR_TEXT)
    assert [value for name, value in variables if name == "paper"] == [palette.PAPER]


def test_the_logo_has_the_colours_of_the_first_four_ranks():
    svg = (STATIC / "logo.svg").read_text(encoding="utf-8")
    assert re.findall(r'fill="(#[0-9a-f]{6})"', svg) == list(RANK_COLORS[:4])
