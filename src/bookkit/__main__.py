"""The verbs: ``python -m bookkit record | run | normalise | check | mutate | drift | build | archive | chapters``."""

import argparse
import signal
import sys
from pathlib import Path

from bookkit import leash
from bookkit.archive import REQUIREMENTS, archive
from bookkit.build import build, staged
from bookkit.chapters import longest_first, named, strays
from bookkit.check import check, check_chapters
from bookkit.drift import drift
from bookkit.errors import BookError, ChapterError
from bookkit.execute import Interrupted
from bookkit.lint import formatted
from bookkit.mutate import COUNT, mutate
from bookkit.needs import NEEDS_GPU, lack, unmet
from bookkit.normalise import normalise
from bookkit.notebook import code_cells, read, tags, write
from bookkit.progress import console
from bookkit.record import record
from bookkit.run import notice, run, tell


def record_verb(root, paths, gpu=False):
    """Re-execute chapters and store their outputs; with --gpu those of the cells alone that need a GPU."""
    chosen = _needing_gpu(root, paths) if gpu else named(root, paths)
    if lacking := unmet(chosen):
        # Recorded here, cells that need it would store nothing.
        raise BookError(
            "Not recorded, for "
            + "; ".join(f"this machine {reason}: {_titles(paths, root)}" for reason, paths in lacking.items())
            + ". Record on a machine that has what they need, or name other chapters with CH="
        )
    _tell_kept(chosen, root)
    record(chosen, root, tidy=True, gpu=gpu)
    if gpu:
        console.print("The chapters ran from their top. Of what they printed, cells that need a GPU alone were stored.")
    console.print(f"Recorded in place: {_titles(chosen, root)}")
    return bool(check_chapters(chosen, root))


def _needing_gpu(root, paths):
    """The chapters at ``paths``, or in the whole book, that have a cell to record with GPU=1."""
    chosen = named(root, paths)
    needing = [path for path in chosen if any(NEEDS_GPU in tags(cell) for _, _, cell in code_cells(read(path)))]
    if not needing or (paths and len(needing) < len(chosen)):
        without = _titles([path for path in chosen if path not in needing], root) if paths else "the book"
        raise BookError(f"No cell of {without} is tagged {NEEDS_GPU}, and GPU=1 records those alone")
    if reason := lack(NEEDS_GPU):
        raise BookError(f"Not recorded: this machine {reason}, and GPU=1 records the cells that need one")
    return needing


def _tell_kept(paths, root):
    for reason, chapters in unmet(paths, keeping=True).items():
        console.print(f"This machine {reason}: cells that need one keep what is stored, in {_titles(chapters, root)}")


def run_verb(root, paths):
    """Execute chapters in a copy under _build/run, side by side, and build the site from what they print.

    One that fails does not stop the others: its page says so above what is stored of it, and the status is 1.
    """
    chosen = [path.relative_to(root) for path in named(root, paths)]
    with staged(root, "run") as source:
        copies = [source / path for path in chosen]
        for reason, lacking in unmet(copies).items():
            console.print(f"This machine {reason}: what needs that does nothing in {_titles(lacking, source)}")
        _tell_kept(copies, source)
        failed = run(copies, source)
        for path, error in failed.items():
            notice(path, error)
        console.print(f"The site is at {build(source)}")
        if failed:
            tell(failed, source)
    return bool(failed)


def normalise_verb(root, paths):
    """Format stored chapters and bring them into their one spelling, without executing them."""
    for path in named(root, paths):
        title = str(path.relative_to(root))
        write(path, normalise(formatted(read(path), root, title), title))
        console.print(f"Normalised {title}")


def check_verb(root, paths):
    """Lint, notebook rules and leak scan; of some chapters only where paths are given."""
    return bool(check_chapters(named(root, paths), root) if paths else check(root))


def mutate_verb(root, paths, count=COUNT, seed=0):
    """Change what cells do, one thing at a time, run the chapter and say which changes nobody notices."""
    return any([mutate(path, root, count, seed) for path in named(root, paths)])


def drift_verb(root, paths, torch=""):
    """Compare chapters with another torch, and write which cells print something else: Does it still hold?"""
    root = root.resolve()  # the other interpreter is told whole paths
    console.print(f"Written: {drift(named(root, paths), root, torch, whole=not paths)}")


def build_verb(root, paths):
    """Build the site from the stored outputs into _build/book."""
    with staged(root, "book") as source:
        console.print(f"The site is at {build(source)}")


def archive_verb(root, paths, add=()):
    """Pack site, notebooks and packages for a room without a network into one file in _build/archive."""
    console.print(f"The archive is {archive(root, [REQUIREMENTS, *add])}; its sum lies beside it.")


def chapters_verb(root, paths):
    """List the notebooks of _toc.yml or those at paths, the longest first; complain of one that it does not name."""
    if not paths and (lost := strays(root)):
        raise BookError(f"Not in _toc.yml: {_titles(lost, root)}")
    for path in longest_first(named(root, paths)):
        print(path.relative_to(root))


def _titles(paths, root):
    return ", ".join(str(path.relative_to(root)) for path in paths)


VERBS = {
    "record": record_verb,
    "run": run_verb,
    "normalise": normalise_verb,
    "check": check_verb,
    "mutate": mutate_verb,
    "drift": drift_verb,
    "build": build_verb,
    "archive": archive_verb,
    "chapters": chapters_verb,
}


def main(arguments=None):
    """Run one verb and return the exit status: 0, 1 for findings or a failure, 128 + n for signal n."""
    parser = argparse.ArgumentParser(prog="bookkit", description="What authors of the book need.")
    parser.add_argument("--root", type=Path, default=Path(), help="the top of the book (default: here)")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="verb")
    for name, function in VERBS.items():
        told = function.__doc__ or ""
        verb = verbs.add_parser(name, help=told.partition("\n")[0], description=told)
        if name not in ("build", "archive"):
            verb.add_argument("paths", nargs="*", type=Path, help="chapters; all of them where none is given")
        if name == "record":
            verb.add_argument("--gpu", action="store_true", help="store the cells alone that need a GPU")
        if name == "drift":
            verb.add_argument("--torch", default="", help="its version (default: the newest that pip finds)")
        if name == "archive":
            verb.add_argument("--add", action="append", default=[], help="a further file of requirements")
        if name == "mutate":
            verb.add_argument("--count", type=int, default=COUNT, help=f"changes a chapter (default: {COUNT})")
            verb.add_argument("--seed", type=int, default=0, help="another one chooses other changes")
    options = parser.parse_args(arguments)
    wishes = {name: getattr(options, name) for name in ("gpu", "count", "seed", "torch", "add") if name in options}
    try:
        return int(VERBS[options.verb](options.root, getattr(options, "paths", []), **wishes) or 0)
    except ChapterError as error:
        console.print(error, soft_wrap=False)  # else the frame is cut off at the right edge, not wrapped
    except BookError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        if error.filename is None:
            raise  # no file that the user could see to
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
    except Interrupted as error:
        console.print("Stopped. Kernel and ranks have left.")
        return 128 + error.signum
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 128 + signal.SIGINT
    return 1


if __name__ == "__main__":
    leash.follow_parent()
    sys.exit(main())
