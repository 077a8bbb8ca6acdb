"""The chapters of the book, in the order of ``_toc.yml``, the only place that knows the order."""

from pathlib import Path

import yaml

from bookkit.errors import BookError

TOC = "_toc.yml"


def chapters(root):
    """The book's notebooks in reading order, as paths below ``root``.

    Pages written in Markdown are not chapters: nothing in them runs.

    Raises:
        BookError: no ``_toc.yml``, one that cannot be read, or a page that does not exist.
    """
    root = Path(root)
    return [page for name in _names(_load(root)) if (page := _page(root, name)).suffix == ".ipynb"]


def strays(root):
    """Notebooks under ``book/`` that ``_toc.yml`` does not name: no reader would ever see them."""
    root = Path(root)
    known = set(chapters(root))
    found = sorted((root / "book").rglob("*.ipynb"))
    return [path for path in found if path not in known and ".ipynb_checkpoints" not in path.parts]


def named(root, paths):
    """The chapters at ``paths``, or all of them where no path is given.

    Raises:
        BookError: a path is no chapter of the book, or the book has none.
    """
    known = chapters(root)
    if not known:
        raise BookError(f"{TOC} names no notebook yet")
    if not paths:
        return known
    by_place = {chapter.resolve(): chapter for chapter in known}
    unknown = [str(path) for path in paths if Path(path).resolve() not in by_place]
    if unknown:
        raise BookError(f"{', '.join(unknown)}: not a chapter of {TOC}. `make record` without CH= takes all")
    return [by_place[Path(path).resolve()] for path in paths]


def _load(root):
    try:
        toc = yaml.safe_load((root / TOC).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BookError(f"There is no {TOC} in {root}; call bookkit from the top of the book") from None
    except yaml.YAMLError as error:
        raise BookError(f"{TOC} is not YAML: {error}") from None
    if not isinstance(toc, dict):
        raise BookError(f"{TOC} is empty")
    return toc


def _names(entry):
    """Every page that an entry and what lies under it name, depth first, as Jupyter Book reads it."""
    for key in ("root", "file"):
        if key in entry:
            yield entry[key]
    for key in ("parts", "subtrees", "chapters", "sections", "entries"):
        for child in entry.get(key) or []:
            yield from _names(child)


def _page(root, name):
    for candidate in (root / name, *(root / f"{name}{suffix}" for suffix in (".ipynb", ".md", ".rst"))):
        if candidate.is_file():
            return candidate
    raise BookError(f"{TOC} names {name}, but no such page exists")
