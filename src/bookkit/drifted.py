"""What became of each cell that was compared: a plugin for nbval that notes it (``pytest -p bookkit.drifted``).

The notes are written to the file that ``BOOKKIT_DRIFT`` names, as JSON: ``{chapter: {"compared": n, "cells": […]}}``.
"""

import difflib
import json
import os
import re
from itertools import zip_longest
from pathlib import Path

import pytest

from bookkit.leaks import ANSI, ONE_RUN, PATH, SECRETS, visible

NOTES = "BOOKKIT_DRIFT"
PROPERTY = "drift"
CHANGED, FELL, RAISED, STOPPED = "changed", "fell", "raised", "stopped"
# The last place inside torch that a traceback names.
PLACE = re.compile(r"\b(torch/[\w/]+\.py)(?:[\"',]* line |:)(\d+)")
ARROW = re.compile(r"^-+> *\d+ +(assert\b.*)$", re.M)
LONGEST = 160

_notes: dict = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Let the report of a cell carry what it printed otherwise; a worker's reports travel with it."""
    report = yield
    if call.when == "call" and hasattr(item, "cell"):
        note = {"chapter": item.path.stem, "cell": item.cell_num + 1, "outcome": report.outcome}
        if report.failed:
            note |= judged(item.cell.outputs, item.test_outputs or [], str(call.excinfo.value))
        report.user_properties.append((PROPERTY, note))
    return report


def pytest_runtest_logreport(report):
    """Collect the notes, here or from the workers."""
    for name, note in report.user_properties if report.when == "call" else ():
        if name == PROPERTY:
            collect(_notes, note)


def pytest_sessionfinish(session):
    """Write them; a worker's are with the one that started it."""
    if os.environ.get(NOTES) and not hasattr(session.config, "workerinput"):
        Path(os.environ[NOTES]).write_text(json.dumps(_notes, indent=1), encoding="utf-8")


def collect(notes, note):
    """Add the note of one cell to those of its chapter."""
    chapter = notes.setdefault(note["chapter"], {"compared": 0, "cells": []})
    chapter["compared"] += note["outcome"] != "skipped"
    if note["outcome"] == "failed":
        chapter["cells"].append({name: note[name] for name in ("cell", "kind", "stored", "printed", "where")})


def judged(stored, printed, failure):
    """What happened to a cell that failed: its kind, the first line that differs, as stored and as printed, and where.

    Args:
        stored: the outputs of the chapter.
        printed: those of this run, in nbval's form.
        failure: nbval's sentence.
    """
    errors = [output for output in printed if output.get("output_type") == "error"]
    where = next((match for error in errors for match in _places(error)), "")
    if "Timeout" in failure:
        return {"kind": STOPPED, "stored": "", "printed": clean(failure), "where": where}
    if errors and "exception" in failure:
        said = f"{errors[-1]['ename']}: {errors[-1]['evalue']}".strip().splitlines()[0]
        # A rank's assertion arrives in the notebook as an error of ranklab that names it.
        claim = _claim(errors[-1]) if "AssertionError" in said else ""
        kind = FELL if "AssertionError" in said else RAISED
        return {"kind": kind, "stored": claim, "printed": clean(said.removesuffix(":")), "where": where}
    old, new = first_difference(lines(stored), lines(printed))
    return {"kind": CHANGED, "stored": clean(old), "printed": clean(new), "where": where}


def _places(error):
    found = PLACE.findall(ANSI.sub("", "\n".join(error.get("traceback", []))))
    return [f"{file}:{line}" for file, line in found[-1:]]


def _claim(error):
    """The assertion at which IPython's arrow points."""
    found = ARROW.findall(ANSI.sub("", "\n".join(error.get("traceback", []))))
    return clean(found[-1]) if found else ""


def lines(outputs):
    """The text of outputs, line by line, in any form of them."""
    text = []
    for output in outputs:
        data = output.get("data", {})
        if "text" in output:
            text.append(output["text"])
        elif output.get("output_type") == "error":
            text.append(f"{output['ename']}: {output['evalue']}")
        elif "text/html" in data:
            text.append(visible(data["text/html"]))
        elif "image/png" not in data:
            text.append(data.get("text/plain", ""))
    return ANSI.sub("", "\n".join(text)).splitlines()


def first_difference(old, new):
    """The first lines in which two texts differ; "" stands for a line that one of them lacks."""
    for mine, yours in zip_longest(old, new, fillvalue=""):
        if mine != yours:
            return _around(mine, yours)
    return "", ""


def _around(old, new):
    """Two long lines from a little before the place where they part."""
    same = difflib.SequenceMatcher(None, old, new, autojunk=False).find_longest_match()
    start = max(0, same.size - 40) if same.a == same.b == 0 else 0
    mark = "… " if start else ""
    return mark + old[start:] if old else old, mark + new[start:] if new else new


def clean(text):
    """A line for the page: short, and without paths and what is another in every run."""
    text = " ".join(ANSI.sub("", text).split())
    for pattern in (PATH, *SECRETS, *ONE_RUN):
        text = pattern.expression.sub("…", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
