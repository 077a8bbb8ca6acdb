"""``python -m bookkit.teaching [chapters]`` writes a deck and a sheet for each chapter to ``_build/slides``."""

from __future__ import annotations

import errno
import signal
import sys
from html import escape
from pathlib import Path

from bookkit.chapters import chapters, named
from bookkit.errors import BookError, count
from bookkit.progress import console, progress
from bookkit.teaching.choose import slides
from bookkit.teaching.deck import asset, deck
from bookkit.teaching.lessons import Lesson
from bookkit.teaching.notes import notes
from bookkit.teaching.sheet import sheet
from bookkit.teaching.words import plain

FOLDER = Path("_build/slides")


def make(root: Path, paths: list[Path], folder: Path) -> Path:
    """Write the decks and sheets of the chapters at ``paths``, all where none is given, and return their index."""
    chosen = named(root, paths)
    folder.mkdir(parents=True, exist_ok=True)
    with progress("Slides", len(chosen), "chapters") as advance:
        for done, path in enumerate(chosen):
            lesson = Lesson(path)
            advance(done, lesson.title)
            made = slides(lesson, notes(root, path, lesson.title))
            (folder / f"{path.stem}.html").write_text(deck(lesson.title, made), encoding="utf-8")
            (folder / f"{path.stem}-sheet.html").write_text(sheet(lesson, root), encoding="utf-8")
        advance(len(chosen))
    index = folder / "index.html"
    index.write_text(_index(root, folder), encoding="utf-8")
    return index


def _index(root: Path, folder: Path) -> str:
    rows = []
    for path in chapters(root):
        if (folder / f"{path.stem}.html").exists():
            title = escape(plain(Lesson(path).title))
            rows.append(
                f'<li>{title}: <a href="{path.stem}.html">slides</a>, <a href="{path.stem}-sheet.html">sheet</a></li>'
            )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Slides and sheets of Rank by Rank</title><style>{asset("sheet.css")}</style></head>
<body class="index"><h1>Slides and sheets</h1>
<p>Arrow keys or a click go on. n: notes, s: notes in a window, o: all slides, f: whole screen.
Print a page for a PDF.</p>
<ul>{"".join(rows)}</ul></body></html>
"""


def main() -> int:
    """Write them, say where they are and return the exit status: 0, 1 for a failure, 128 + 2 where it was stopped."""
    try:
        index = make(Path(), [Path(name) for name in sys.argv[1:]], FOLDER)
    except BookError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:  # a full disk tells no name
            raise  # no file that the user could see to
        print(f"{error.filename or FOLDER}: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 128 + signal.SIGINT
    console.print(f"{count(len(list(FOLDER.glob('*-sheet.html'))), 'deck')}, each with a sheet: {index}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
