"""The README's picture: ``python -m tests.picture`` runs the cells below on four ranks and takes it from their page.

The page is built as the book's pages are, from what the ranks have just printed, so the picture shows today's code.
"""

import os
import shutil
import tempfile
from pathlib import Path

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from playwright.sync_api import sync_playwright

from bookkit.build import build, staged
from bookkit.execute import execute
from bookkit.normalise import normalise
from bookkit.notebook import write

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "book/_static/readme.png"
WIDTH, HEIGHT, MARGIN = 760, 1200, 12
START = "import ranklab\n\nworld = ranklab.start(4)"
GROUP = """\
%%px
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()"""
HANG = """\
%%px --timeout 5
for batch in range(10 if rank != 2 else 9):
    gradient = torch.ones(1)
    dist.all_reduce(gradient)"""
AFTER = """\
%%px
print("batch", batch, "and still here")"""
TOC = "format: jb-book\nroot: book/index\nchapters:\n  - file: book/picture\n"


def notebook():
    """The cells; the one that hangs says so, and the one after it shows that the ranks are there."""
    sources = START, GROUP, HANG, AFTER, "world.stop()"
    cells = [new_markdown_cell("# A picture"), *map(new_code_cell, sources)]
    cells[3].metadata.tags = ["raises-exception"]
    return normalise(new_notebook(cells=cells))


def page(folder):
    """A book of one page that the cells have just been run for; returns its HTML."""
    shutil.copytree(ROOT / "book/_static", folder / "book/_static")
    shutil.copy(ROOT / "_config.yml", folder)
    (folder / "_toc.yml").write_text(TOC, encoding="utf-8")
    (folder / "book/index.md").write_text("# A book\n", encoding="utf-8")
    (folder / "book/does-it-still-hold.md").touch()
    path = folder / "book/picture.ipynb"
    write(path, notebook())
    write(path, normalise(execute(path)))
    with staged(folder, "book") as source:
        return build(source).parent / "book/picture.html"


def take(html, picture):
    """Photograph the cell that hangs with its report, and the one below it."""
    as_root = ["--no-sandbox"] if os.geteuid() == 0 else []
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=as_root)
        shown = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=2, color_scheme="light"
        )
        shown.set_default_timeout(0)  # a busy machine has its time
        shown.goto(html.as_uri())
        # The error below the panel says the first line of the panel again.
        shown.add_style_tag(content=".output.traceback, details { display: none } header, .bd-header { display: none }")
        cells = [shown.locator("div.cell").nth(number) for number in (2, 3)]
        cells[0].scroll_into_view_if_needed()
        boxes = [cell.bounding_box() for cell in cells]
        top, left = boxes[0]["y"] - MARGIN, boxes[0]["x"] - MARGIN
        size = {"width": boxes[0]["width"] + 2 * MARGIN, "height": boxes[1]["y"] + boxes[1]["height"] + MARGIN - top}
        shown.screenshot(path=picture, clip={"x": left, "y": top, **size})
        browser.close()


def main():
    """Run the cells, build their page and store its picture."""
    with tempfile.TemporaryDirectory(prefix="bookkit-") as folder:
        take(page(Path(folder)), PICTURE)
    print(f"Taken: {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
