"""The pictures of the pages: a dark twin for each, and a way to see one at its full size."""

import hashlib
import inspect
import os

from PIL import Image

from bookkit.website import darken

# Figures are stored with two pixels for one of the page.
DENSITY = 2


def twin(html, page, store):
    """Give every stored picture of a page a twin for the dark theme, and both a link to their full size.

    A browser loads a picture that is not shown only when it comes into view, so it fetches one of the two.

    Args:
        html: the folder of the built pages.
        page: one of them.
        store: a folder that keeps the twins for the next build.
    """
    store.mkdir(parents=True, exist_ok=True)
    for picture in page.soup.select("article img[src$='.png']"):
        file = (page.path.parent / picture["src"]).resolve()
        if html.resolve() in file.parents and picture.find_parent("a") is None and (made := _twin(file, store)):
            _both(page.soup, picture, *made)


def _twin(file, store):
    """The name of the dark picture and the size of both, or None for a picture that has no ground to turn."""
    with Image.open(file) as picture:
        if picture.mode == "RGBA" or "transparency" in picture.info:
            return None
        width, height = picture.size
    dark = file.with_name(f"{file.stem}-dark.png")
    light = file.read_bytes()
    kept = store / hashlib.sha256(light + inspect.getsource(darken).encode()).hexdigest()
    if not kept.is_file():
        half = kept.with_suffix(f".{os.getpid()}")  # two pages may have one picture, and be at work at once
        half.write_bytes(darken.darken(light))
        half.replace(kept)
    dark.write_bytes(kept.read_bytes())
    return dark.name, width, height


def _both(soup, picture, dark, width, height):
    """Put the picture and its twin into one element; the style sheet shows the one of the theme."""
    light, box = picture["src"], soup.new_tag("span", attrs={"class": "rl-themes"})
    picture["width"], picture["height"], picture["loading"] = width // DENSITY, height // DENSITY, "lazy"
    for theme, address in (("only-light", light), ("only-dark", f"{light.rsplit('/', 1)[0]}/{dark}")):
        shown = soup.new_tag("img", attrs={**picture.attrs, "src": address})
        link = soup.new_tag("a", attrs={"href": address, "class": f"rl-full {theme}"})
        link.append(shown)
        box.append(link)
    picture.replace_with(box)
