"""What the operating system has run out of, or will not let us write, in one sentence."""

from __future__ import annotations

import os


def no_more(error: OSError) -> str:
    """Say in one sentence what the operating system has run out of, or will not let us write."""
    import errno

    if error.errno in (errno.EMFILE, errno.ENFILE):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return (
            f"Ranks need open files, and this notebook has none left (its limit is {limit}). Close what it has open "
            "or restart its kernel; `ulimit -n` shows and sets the limit."
        )
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return f"The system refused another process ({error.strerror}). Stop other notebooks, or start fewer ranks."
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.ENOENT):
        return (
            f"Ranks need a folder they can write to, and {error.filename or 'the temporary folder'} is not one "
            f"({error.strerror}). Set TMPDIR to a folder of yours, before Python starts."
        )
    where = f" ({os.fspath(error.filename)})" if error.filename else ""
    return f"The system refused: {error.strerror or error}{where}."
