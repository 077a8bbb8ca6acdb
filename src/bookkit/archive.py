"""The whole book as one file for a room without a network: notebooks, site, packages, and a sum for each file."""

import hashlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from pathlib import Path

from bookkit.build import BUILD, build, staged
from bookkit.errors import BookError
from bookkit.progress import console, progress

TOP = "rank-by-rank"
REQUIREMENTS = "requirements.txt"
WHEELS = "wheels"  # where environment.py looks for packages before it asks a network
SUMS = "SHA256SUMS"
START = """# Rank by Rank, without a network

Made on {made}. The packages in `wheels/` are for that kind of machine and that Python; learners with another kind need
an archive that was made on one of theirs.

1. Check that the copy is whole: `sha256sum --check --quiet SHA256SUMS` (macOS: `shasum -a 256 --check SHA256SUMS`).
   It prints nothing where everything is right.
2. Read: open `site/index.html`.
3. Run: `make doctor`, then `make lab`. As long as the folder `wheels` is here, every make verb installs from it
   and asks no network.
"""


def archive(root, files=(REQUIREMENTS,)):
    """Write ``_build/archive/rank-by-rank-<system>-<Python>.tar`` and return its path.

    Args:
        root: the top of a clone of the book.
        files: files of requirements whose packages go in, with all that these need.

    Raises:
        BookError: ``root`` is no clone, the site cannot be built, or pip cannot have a package.
    """
    paths = tracked(root)
    place = root / BUILD / "archive"
    place.mkdir(parents=True, exist_ok=True)
    wheels = place / WHEELS
    collect(root, files, wheels)
    with staged(root, "book") as source:
        site = build(source).parent
    made = f"{platform.system()} {platform.machine()} with Python {sys.version_info.major}.{sys.version_info.minor}"
    name = f"{TOP}-{sysconfig.get_platform()}-py{sys.version_info.major}.{sys.version_info.minor}.tar"
    (place / "OFFLINE.md").write_text(START.format(made=made), encoding="utf-8")
    contents = {path.as_posix(): root / path for path in paths}
    contents |= {f"{WHEELS}/{wheel.name}": wheel for wheel in wheels.iterdir()}
    contents |= {f"site/{page.relative_to(site).as_posix()}": page for page in site.rglob("*") if page.is_file()}
    contents["OFFLINE.md"] = place / "OFFLINE.md"
    return pack(contents, place / name)


def tracked(root):
    """The files of the book as git knows them, by their paths below ``root``: nothing else is given away."""
    told = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True)
    if told.returncode:
        raise BookError("An archive is made in a clone, where git knows which files are the book's")
    return [path for path in map(Path, told.stdout.split("\0")[:-1]) if (root / path).is_file()]


def collect(root, files, wheels):
    """Let pip put every package that ``files`` ask for into a folder, and what an installation builds with."""
    shutil.rmtree(wheels, ignore_errors=True)
    with open(root / "pyproject.toml", "rb") as file:
        builders = tomllib.load(file)["build-system"]["requires"]
    command = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--quiet", "--wheel-dir", wheels]
    console.print("Collecting packages (this takes minutes) …")
    if subprocess.call([*command, *builders, *(word for file in files for word in ("-r", root / file))]):
        raise BookError("pip could not have every package; its last lines say why")


def pack(contents, target):
    """Write files into a tar archive, with a list of their sums, and return its path.

    Args:
        contents: the file for each path below the archive's one folder.
        target: the archive; beside it lies its own sum afterwards, ``<target>.sha256``.
    """
    sums = target.with_name(SUMS)
    with open(sums, "w", encoding="utf-8") as listed:
        listed.writelines(f"{_sum(file)}  {path}\n" for path, file in sorted(contents.items()))
    unfinished = target.with_suffix(".part")
    with tarfile.open(unfinished, "w") as tar, progress("Packing", len(contents), "files") as advance:
        for done, (path, file) in enumerate(sorted({**contents, SUMS: sums}.items())):
            tar.add(file, f"{TOP}/{path}", recursive=False, filter=_nobodys)
            advance(done, path)
        advance(len(contents))
    unfinished.rename(target)
    target.with_name(f"{target.name}.sha256").write_text(f"{_sum(target)}  {target.name}\n", encoding="utf-8")
    return target


def _nobodys(entry):
    """Leave out who made the archive."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def _sum(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
