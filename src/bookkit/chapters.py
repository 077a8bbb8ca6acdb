"""The chapters of the book, in the order of ``_toc.yml``, the only place that knows the order."""

from difflib import get_close_matches
from pathlib import Path

import yaml

from bookkit.errors import BookError

TOC = "_toc.yml"
NOTEBOOK = ".ipynb"


def pages(root):
    """All pages of the book in reading order, as paths below ``root``.

    Raises:
        BookError: no ``_toc.yml``, one that cannot be read, a page that does not exist, or one named twice.
    """
    root, found = Path(root), []
    for name in _names(_load(root)):
        page = _page(root, name)
        if page in found:
            raise BookError(f"{TOC} names {name} twice; a page has one place in the book")
        found.append(page)
    return found


def chapters(root):
    """The pages that are notebooks; those written in Markdown are no chapters: nothing in them runs."""
    return [page for page in pages(root) if page.suffix == NOTEBOOK]


def strays(root):
    """Notebooks under ``book/`` that ``_toc.yml`` does not name: no reader would ever see them.

    ``Untitled.ipynb`` and its like are what a reader tries out in JupyterLab, and nobody's chapter.
    """
    known = set(chapters(root))
    found = sorted((Path(root) / "book").rglob(f"*{NOTEBOOK}"))
    return [
        path
        for path in found
        if path not in known and ".ipynb_checkpoints" not in path.parts and not path.name.startswith("Untitled")
    ]


def longest_first(paths):
    """Chapters in the order in which they end soonest side by side: those that launch most programs come first.

    Every launched program imports torch anew, and a job waits for its scheduler: that is where long ones spend theirs.
    """
    return sorted(paths, key=lambda path: -sum(map(path.read_bytes().count, (b"torchrun(", b"sbatch("))))


def named(root, paths):
    """The chapters at ``paths``, or all of them where no path is given.

    Args:
        root: the top of the book.
        paths: each a file, with or without its suffix, or the end of one: ``meeting-up``, ``ranks/meeting-up``.

    Raises:
        BookError: a path is no chapter of the book, or more than one, or the book has none.
    """
    known = chapters(root)
    if not known:
        raise BookError(f"{TOC} names no notebook yet")
    return [_choose(known, Path(path), Path(root)) for path in paths] or known


def _choose(known, path, root):
    """The chapter that a path means."""
    bare = Path(str(path).removesuffix(NOTEBOOK))
    ends = {chapter: chapter.resolve().with_suffix("").parts for chapter in known}
    meant = [chapter for chapter in known if ends[chapter] == bare.resolve().parts]
    meant = meant or [chapter for chapter in known if ends[chapter][-len(bare.parts) :] == bare.parts]
    if len(meant) == 1:
        return meant[0]
    alike = get_close_matches(bare.name, [chapter.stem for chapter in known])
    near = meant or [chapter for chapter in known if chapter.stem in alike]
    if bare.name and bare.with_name(bare.name + NOTEBOOK).is_file():  # "." and "/" have no name
        hint = "name it there"
    elif near:
        hint = f"did you mean {' or '.join(str(chapter.relative_to(root)) for chapter in near)}?"
    else:
        hint = f"a chapter is named like {known[0].relative_to(root)}"
    raise BookError(f"{path}: not a chapter of {TOC}; {hint}")


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
    if not isinstance(entry, dict):
        raise BookError(f"{TOC}: {entry} needs 'file:' before it")
    for key in ("root", "file"):
        if key in entry:
            if not isinstance(entry[key], str):
                raise BookError(f"{TOC}: '{key}: {entry[key]}' names no page")
            yield entry[key]
    for key in ("parts", "subtrees", "chapters", "sections", "entries"):
        children = entry.get(key) or []
        if not isinstance(children, list):
            raise BookError(f"{TOC}: what stands under '{key}:' begins with '- '")
        for child in children:
            yield from _names(child)


def _page(root, name):
    for candidate in (root / name, *(root / f"{name}{suffix}" for suffix in (".ipynb", ".md", ".rst"))):
        if candidate.is_file():
            return candidate
    raise BookError(f"{TOC} names {name}, but no such page exists")
