"""``python -m ranklab doctor [--json]``: is this machine ready? ``python -m ranklab demo``: what is a hang like?"""

from __future__ import annotations

import argparse
import dataclasses
import json
import signal
import sys

from .demo import demo
from .doctor import examine
from .finding import OK, PROBLEM, Finding

MARKS = {"ok": "ok", "warning": "--", "problem": "!!"}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: without the program's name; ``sys.argv`` where nothing is given.

    Returns:
        Exit status: 1 where a chapter would fail on this machine, 128 + 2 where the reader has stopped the doctor.
    """
    parser = argparse.ArgumentParser(prog="python -m ranklab", description="Ranks of PyTorch in a notebook.")
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = commands.add_parser("doctor", help="look at this machine; exit status 1 where a chapter would fail")
    doctor.add_argument("--json", action="store_true", help="print the findings as JSON")
    commands.add_parser("demo", help="half a minute in this terminal: four ranks, a sum, a hang and its report")
    options = parser.parse_args(arguments)
    if options.command == "demo":
        return demo()
    if not options.json and sys.stderr.isatty():
        print("Looking at this machine, half a minute, longer where others take its processors …", file=sys.stderr)
    try:
        findings = examine()
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)  # what is asked for as JSON stays empty
        return 128 + signal.SIGINT
    if options.json:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], indent=2))
    else:
        print(told(findings))
    return int(any(finding.state == PROBLEM for finding in findings))


def told(findings: list[Finding]) -> str:
    """Return findings as text, a line each, with the fix below.

    Args:
        findings: of :func:`ranklab.doctor.examine`.
    """
    width = max(len(finding.check) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{MARKS[finding.state]}  {finding.check:<{width}}  {finding.said}")
        if finding.fix:
            lines.append(f"{'':{width + 4}}  → {finding.fix}")
    problems = sum(finding.state == PROBLEM for finding in findings)
    warnings = sum(finding.state not in (OK, PROBLEM) for finding in findings)
    verdict = "Ready for every chapter." if not problems else "Some chapters would fail."
    lines.append(f"{verdict} Problems: {problems}, warnings: {warnings}.")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
