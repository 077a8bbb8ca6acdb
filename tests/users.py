"""An ordinary user for a program, also where the tests run as root."""

import os
import shlex
import sys
from pathlib import Path

NOBODY = 65534


def ordinary_user() -> list[str]:
    """Return the command that runs what follows it as an ordinary user: nothing, where we are one.

    The interpreter may be in a folder that only root may open. In mounts of its own, which end with the program, the
    user finds an open folder there that holds what the program needs.
    """
    if os.geteuid() != 0:
        return []
    needed = {Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[1]}
    script = ["set -e", "aside=$(mktemp -d)"]
    for folder in {closed(path) for path in needed} - {None}:
        inside = [path for path in needed if path.is_relative_to(folder)]
        kept = [f"$aside/{number}" for number in range(len(inside))]
        script.append("mount -t tmpfs -o mode=755 tmpfs $aside")
        for path, copy in zip(inside, kept, strict=True):
            script.append(f"mkdir {copy}; mount --bind {shlex.quote(str(path))} {copy}")
        script.append(f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(folder))}")
        for path, copy in zip(inside, kept, strict=True):
            script.append(f"mkdir -p {shlex.quote(str(path))}; mount --bind {copy} {shlex.quote(str(path))}")
        script.append("umount -l $aside")
    script.append(f'rmdir $aside; exec setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups -- "$@"')
    return ["unshare", "--mount", "sh", "-c", "\n".join(script), "sh"]


def closed(path: Path) -> Path | None:
    """Return the outermost folder on the way to a path that only its owner may open, or None."""
    return next((folder for folder in reversed([path, *path.parents]) if not folder.stat().st_mode & 1), None)
