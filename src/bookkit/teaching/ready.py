"""``python -m bookkit.teaching.ready answers`` says which learners' machines are ready, and what the others need.

Each learner runs ``python -m ranklab doctor --json > ada.json`` at home and sends the file. All lie in one folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.table import Table

from bookkit.errors import BookError, count
from bookkit.progress import console
from ranklab.finding import PROBLEM, WARNING, Finding

LEFT_OUT = "what needs this says so, and shows its stored output"


def answers(folder: Path) -> dict[str, list[Finding]]:
    """What each learner's doctor has found, by the name of the file.

    Args:
        folder: with a file for each learner, ``ada.json``.

    Raises:
        BookError: there is no file, or one is not what the doctor prints.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        raise BookError(f"There is no answer in {folder}: a file for each learner, such as ada.json")
    return {file.stem: _read(file) for file in files}


def _read(file: Path) -> list[Finding]:
    try:
        # What a mail program has saved may begin with a mark of its encoding.
        found = [Finding(**entry) for entry in json.loads(file.read_text(encoding="utf-8-sig"))]
        if not found:
            raise ValueError
    except (ValueError, TypeError) as error:
        raise BookError(f"{file.name} is not what `ranklab doctor --json` prints: ask for it again") from error
    return found


def room(told: dict[str, list[Finding]]) -> Table:
    """A table with a row for each learner, those first whose machine is not ready.

    Args:
        told: the findings of each, see :func:`answers`.
    """
    table = Table("learner", "ready", "what is missing", "fix", box=None, pad_edge=False)
    for name, found in sorted(told.items(), key=lambda entry: (-len(_of(entry[1], PROBLEM)), entry[0])):
        problems, warnings = _of(found, PROBLEM), _of(found, WARNING)
        verdict = "no" if problems else "partly" if warnings else "yes"
        for number, finding in enumerate([*problems, *warnings] or [Finding("", "", "")]):
            said = f"{finding.check}: {finding.said}" if finding.check else ""
            fix = finding.fix or (LEFT_OUT if finding.check else "")
            table.add_row("" if number else name, "" if number else verdict, said, fix)
    return table


def _of(found: list[Finding], state: str) -> list[Finding]:
    return [finding for finding in found if finding.state == state]


def main() -> int:
    """Print the table, and how many are ready for every chapter."""
    if len(sys.argv) != 2:
        print("Name the folder with the answers: python -m bookkit.teaching.ready answers", file=sys.stderr)
        return 2
    try:
        told = answers(Path(sys.argv[1]))
    except BookError as error:
        print(error, file=sys.stderr)
        return 1
    console.print(room(told))
    fit = sum(not _of(found, PROBLEM) for found in told.values())
    console.print(f"{fit} of {count(len(told), 'machine')} can run every chapter, but for what the warnings name.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
