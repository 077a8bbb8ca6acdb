"""A stored figure in the colours of the dark theme: the same picture, with the page's dark ground under it.

A figure is drawn in few pigments on paper: the ranks' colours, that of a failure, ink. So each of its colours is read
as a mixture of one pigment with paper and mixed anew with the dark ground. The ranks' colours stay as they are, for
they reach 3:1 on either page and a rank has one colour in the whole book; ink becomes light ink. What is no such
mixture has its lightness turned in OKLab, and keeps its hue. A label within a bar of a rank's colour stays, too: it was
chosen for that colour.
"""

import io

import numpy as np
from PIL import Image

from ranklab.palette import DARK_PAGE, ERROR_COLOR, INK, MUTED, PAPER, RANK_COLORS

# Ink of the dark theme, as in rank-by-rank.css.
DARK_INK = {"#000000": "#ffffff", INK: "#e4e7eb", MUTED: "#a3abb7"}
FAR = 9  # of 255: a colour as near as this to a mixture is that mixture, and white is paper
BAR, LABEL, STROKE = 5, 31, 8  # pixels: the least width of a bar, the greatest height of its label, half a letter
PALE, GREY = 0.8, 0.02  # in OKLab: the least lightness, the greatest chroma of paper, a grid and a legend's ground
TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def darken(image):
    """The dark twin of a PNG image, as bytes.

    Args:
        image: the bytes of a picture without transparency.
    """
    picture: Image.Image = Image.open(io.BytesIO(image))
    if picture.mode != "P":
        picture = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    colours = np.array(picture.getpalette(), dtype=float).reshape(-1, 3)
    index = np.asarray(picture)
    kept = _labels(index, colours)
    both = np.concatenate([turn(colours), colours]).round().astype(np.uint8)
    return _png(index.astype(np.int64) + len(colours) * kept, both)


def turn(colours):
    """Colours of the light theme, an array of n × 3 from 0 to 255, as colours of the dark one."""
    paper, ground = _rgb(PAPER), _rgb(DARK_PAGE)
    pigments = {colour: colour for colour in (*RANK_COLORS, ERROR_COLOR)} | DARK_INK
    turned, best = _flip(colours), np.full(len(colours), float(FAR))
    for light, dark in pigments.items():
        step = paper - _rgb(light)
        share = np.clip((colours - _rgb(light)) @ step / (step @ step), 0, 1)[:, None]
        off = np.linalg.norm(_rgb(light) + share * step - colours, axis=1)
        nearer = off < best
        turned[nearer] = ((1 - share) * _rgb(dark) + share * ground)[nearer]
        best = np.minimum(best, off)
    return turned


def oklab(colours):
    """Colours, n × 3 from 0 to 255, as lightness, a and b of OKLab."""
    unit = np.asarray(colours, dtype=float) / 255
    linear = np.where(unit <= 0.04045, unit / 12.92, ((unit + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ TO_LMS.T) @ TO_LAB.T


def _flip(colours):
    """Lightness turned so that white falls on the dark ground and black near white; hue and chroma as they were."""
    lab, floor = oklab(colours), oklab(_rgb(DARK_PAGE)[None])[0, 0]
    lab[:, 0] = floor + (1 - lab[:, 0]) * (0.97 - floor)
    for _ in range(12):  # less chroma where the screen has no such colour
        linear = (lab @ np.linalg.inv(TO_LAB).T) ** 3 @ np.linalg.inv(TO_LMS).T
        outside = ((linear < -1e-4) | (linear > 1 + 1e-4)).any(axis=1)
        lab[outside, 1:] *= 0.85
    linear = np.clip(linear, 0, 1)
    return 255 * np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)


def _labels(index, colours):
    """Where a bar of a rank's colour is, with the letters on it and without the gaps between two bars."""
    solids = np.array([_rgb(colour) for colour in (*RANK_COLORS, ERROR_COLOR)])
    solid = (np.linalg.norm(colours[:, None] - solids[None], axis=2) < FAR).any(axis=1)[index]
    paper = (np.linalg.norm(colours - _rgb(PAPER), axis=1) < FAR)[index]
    bars = _grow(_shrink(solid, BAR), BAR)
    if not bars.any():
        return bars
    area = _shrink(_grow(bars, LABEL), LABEL)
    lightness, *hue = oklab(colours).T
    open_ground = ((lightness > PALE) & (np.hypot(*hue) < GREY))[index]  # a grid or a legend's ground parts no gap
    outside = _flood(paper & ~area, open_ground)
    for _ in range(STROKE):  # letters that stand on paper between two bars
        near = outside.copy()
        near[1:] |= outside[:-1]
        near[:-1] |= outside[1:]
        near[:, 1:] |= outside[:, :-1]
        near[:, :-1] |= outside[:, 1:]
        outside = near & ~solid
    return area & ~outside


def _grow(mask, size):
    """Every pixel with one of ``mask`` in the square of ``size`` pixels around it."""
    for axis in (0, 1):
        room = [(0, 0), (0, 0)]
        room[axis] = (size // 2 + 1, size // 2)
        sums = np.cumsum(np.pad(mask, room), axis=axis, dtype=np.int32)
        after, before = [slice(None), slice(None)], [slice(None), slice(None)]
        after[axis], before[axis] = slice(size, None), slice(None, -size)
        mask = sums[tuple(after)] > sums[tuple(before)]
    return mask


def _shrink(mask, size):
    return ~_grow(~mask, size)


def _flood(seed, allowed):
    """What can be reached from ``seed`` within ``allowed``: straight runs in four directions until nothing is new."""
    reached, before = seed.copy(), -1
    while (now := int(np.count_nonzero(reached))) != before:
        before = now
        for view, free in ((reached, allowed), (reached.T, allowed.T)):
            for there, way in ((view, free), (view[:, ::-1], free[:, ::-1])):
                place = np.arange(there.shape[1], dtype=np.int16)
                start = np.maximum.accumulate(np.where(there, place, np.int16(-1)), axis=1)
                blocked = np.maximum.accumulate(np.where(way, np.int16(-1), place), axis=1)
                there |= way & (start > blocked)
    return reached


def _png(index, colours):
    """A picture of at most 256 colours: those that fill most of it, and for another the nearest of them."""
    colours, same = np.unique(colours, axis=0, return_inverse=True)
    index = same.reshape(-1)[index]
    often = np.argsort(-np.bincount(index.ravel(), minlength=len(colours)), kind="stable")[:256]
    nearest = np.linalg.norm(colours[:, None].astype(float) - colours[often][None], axis=2).argmin(axis=1)
    drawn = Image.fromarray(nearest[index].astype(np.uint8), "P")
    drawn.putpalette(colours[often].tobytes())
    stored = io.BytesIO()
    drawn.save(stored, "png", optimize=True)
    return stored.getvalue()


def _rgb(colour):
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=float)
