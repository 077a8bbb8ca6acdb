"""The page, written from the catalogue."""

import re
import textwrap
from pathlib import Path

from .catalogue import GROUPS, MESSAGES
from .entry import Group, Message

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "book/error-index.md"
OPENING = """\
<!-- Written by `python -m tests.messages` from tests/messages/catalogue: change it there. -->
# Index of errors

The job has stopped, and the terminal shows a line that says nothing to you. Look that line up here. Each entry has the
text as a terminal shows it, what it means, why it happens, and what to do. The order of the causes is a judgement:
nobody has counted them.

{{.rl-find}}
On the site you can paste the whole line into the field above: numbers, paths and addresses do no harm there. In an
entry `…` stands for what differs from job to job. The search of the site and of your browser find the words as well, if
you leave out what is yours alone.

## Before you look up a line

1. **Find the first one.** When one rank fails, the others lose their partner and fail as well. Sort the
   lines by time, and begin with the rank that stopped first.
2. **Read the last line of a traceback**, the one that begins with the name of the exception. A line with `[rank2]:` in
   front is of rank 2.
3. **No line at all is a message, too.** The job hangs: some ranks wait for others. {{doc}}`/book/breaking/hangs` has
   the tools that find out which.

**Where the texts come from.** This page has {all} messages. Small programs print {made} of them, and the tests of this
book run these programs with torch {torch} on a CPU. The page is written from the same list, so a message that a new
release of torch changes fails a test. The tests look for {found} others in the files of the installed torch. The last
{read} need a GPU, NCCL or Slurm. Their entries say *not produced here*, and name the source file that has the text, or
the card on which it was seen.
"""


def code(text: str) -> str:
    """Return a text as Markdown's code, whatever back quotes it has."""
    longest = max((len(quotes) for quotes in re.findall(r"`+", text)), default=0)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{'`' * (longest + 1)}{space}{text}{space}{'`' * (longest + 1)}"


def installed(message: Message) -> bool:
    """Whether the text is searched for in the installed torch."""
    return not message.by and message.source.startswith("torch/")


def torch_version() -> str:
    """The version that the book is made with."""
    return re.search(r"^torch==(\S+)", (ROOT / "requirements.txt").read_text(), re.M)[1]


def place(see: str) -> str:
    """A place in the book as a link to its page and the name of its section."""
    page, _, section = see.partition("#")
    return f"{{doc}}`/book/{page}`, section *{section}*"


def thread(address: str) -> str:
    """A public thread as a link with a short name."""
    owner, name, _, number = address.removeprefix("https://github.com/").split("/")
    return f"[{owner}/{name}#{number}]({address})"


def origin(message: Message) -> str:
    """Where the text comes from, a sentence."""
    if message.by.startswith("notebook."):
        return f"Produced by `tests/ranklab/test_messages.py`, `{message.by.partition('.')[2]}`."
    if message.by:
        module, _, name = message.by.partition(".")
        return f"Produced by `tests/messages/programs/{module}.py`, `{name}`."
    if installed(message):
        path, _, symbol = message.source.partition(": ")
        return f"Not produced here; the text stands in `{path}` (`{symbol}`)."
    seen = f"Not produced here; seen on {message.seen}." if message.seen else "Not produced here."
    return f"{seen} The text stands in {message.source}." if message.source else seen


def entry(message: Message) -> str:
    """One message as Markdown."""
    parts = [f"### {code(message.core)}"]
    if message.shown != message.core:
        parts.append(f"```text\n{message.shown}\n```")
    parts.append(message.means)
    if len(message.causes) == 1:
        parts.append(f"**Cause.** {message.causes[0]}")
    else:
        parts.append("**Causes**, the likeliest first:")
        parts.append("\n".join(f"{number}. {cause}" for number, cause in enumerate(message.causes, 1)))
    parts.append(f"**Fix.** {message.fix}")
    last = [f"In this book: {place(message.see)}."] if message.see else []
    last.append(origin(message))
    if message.threads:
        last.append(f"People met it in {', '.join(map(thread, message.threads))}.")
    parts.append("{.rl-origin}\n" + " ".join(last))
    return "\n\n".join(parts)


def group(group: Group) -> str:
    """One group as Markdown."""
    return "\n\n".join([f"## {group.title}", group.opening, *map(entry, group.messages)])


def page() -> str:
    """The whole page."""
    made = sum(bool(message.by) for message in MESSAGES)
    found = sum(map(installed, MESSAGES))
    opening = OPENING.format(
        all=len(MESSAGES), made=made, found=found, read=len(MESSAGES) - made - found, torch=torch_version()
    )
    return "\n".join([opening, *("\n" + group(each) + "\n" for each in GROUPS)]).rstrip("\n") + "\n"


def write() -> None:
    """Write the page and say where it is."""
    PAGE.write_text(page(), encoding="utf-8")
    print(textwrap.dedent(f"""Wrote {PAGE.relative_to(ROOT)}: {len(MESSAGES)} messages."""))
