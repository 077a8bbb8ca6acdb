"""No test starts a rank, a host, a browser or a build of the site that its markers do not name.

Every Python that a test starts imports this module by its name, and tests/conftest.py imports it into pytest's own.
Before a process is started, its command is looked at. Standard library only, for it loads before all else.
"""

import contextlib
import itertools
import os
import sys

MAY = "TESTS_MAY"  # the markers of the test that runs
CAUGHT = "TESTS_CAUGHT"  # a file: a sentence that a program has swallowed still stands there
# What a command's words give away. Each of ranklab's own helper processes is `python -m ranklab.something`.
RANKS = {"torchrun", "ipcluster", "ipengine", "mpiexec", "srun"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def kind_of(words):
    """What a command starts: "ranks", "hosts", "site", "build", a chapter's "kernel", or None.

    Args:
        words: the program and its arguments.
    """
    program = os.path.basename(words[0])
    if "-c" in words:  # of Python, whose environment may not lead here
        written = words[-1]
        words = [*words, *(["-m", "ranklab.lab."] if "ranklab.hosts(" in written else [])]
        words += ["-m", "ranklab."] if "ranklab.start(" in written or "ranklab.torchrun(" in written else []
    if _module(words, "ranklab.lab."):
        return "hosts"
    if RANKS & {os.path.basename(word) for word in words[:4]} or _module(
        words, "ranklab.", "ipyparallel.", "torch.distributed."
    ):
        return "ranks"
    if program in BROWSERS or "playwright/driver" in words[0]:
        return "site"
    if _module(words, "ipykernel_launcher"):
        return "kernel"
    if any(word.startswith("jupyter_book.") for word in words) or words[1:4] == ["-m", "pip", "wheel"]:
        return "build"
    return None


def _module(words, *beginnings):
    """Whether a command is ``python -m`` with a module that begins so."""
    return any(flag == "-m" and name.startswith(beginnings) for flag, name in itertools.pairwise(words))


def _look(event, details):
    if event not in ("subprocess.Popen", "os.posix_spawn", "os.exec") or MAY not in os.environ:
        return
    command = details[1]
    words = [command] if isinstance(command, str | bytes | os.PathLike) else list(command)
    words = [os.fsdecode(word) for word in words] or [""]
    kind = kind_of(words)
    may = os.environ[MAY].split()
    if kind == "kernel":  # takes a second, so what starts ranks or a browser may start one, too
        kind = None if may else "build"
    if kind is None or kind in may:
        return
    sentence = (
        f"A test without the marker {kind!r} started `{' '.join(words)[:120]}`. Let it ask for a fixture of {kind!r}, "
        "or enter it into the table of tests/starts.py."
    )
    if path := os.environ.get(CAUGHT):
        with contextlib.suppress(OSError), open(path, "a") as file:  # an ordinary user's program may not
            file.write(sentence + "\n")
    raise RuntimeError(sentence)


if not getattr(sys, "_ranklab_guard", False):
    sys._ranklab_guard = True  # imported under two names, it looks once
    sys.addaudithook(_look)
