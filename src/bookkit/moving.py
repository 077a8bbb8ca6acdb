"""Figures that move: a Sphinx extension puts recorded values below their pictures, and loads the scripts of a page.

A figure of ranklab keeps its values in the metadata of its output (``ranklab.figures.recording``). The page gets them
as JSON below the picture; notebooks, also those that a reader downloads, stay as they were recorded. A computed figure
is a ``<div class="rl-moving" data-figure="…">`` in the text. Scripts are loaded by pages that have such figures, and
no others: ``kit.js``, what several figures share, and one file for each kind.
"""

import json
import re

from nbformat.v4 import new_output

FOLDER = "figures"
SHARED = {"backward": ["film"], "schedules": ["film"], "waiting": ["film"]}
HTML = '<script type="application/json" class="rl-recording">{}</script>'
KINDS = re.compile(r'class="rl-recording">\{"kind":"(\w+)"|class="rl-moving" data-figure="(\w+)"')


def with_recordings(notebook):
    """Put below each picture the values that it was drawn from, in place; ``notebook`` is a notebook's JSON."""
    for cell in notebook.get("cells", []):
        if cell.get("cell_type") != "code":
            continue
        outputs = []
        for output in cell.get("outputs", []):
            outputs.append(output)
            if text := output.get("metadata", {}).get("ranklab", {}).get("recording"):
                # Nothing of a name or a label may end the script.
                data = {"text/html": HTML.format(text.replace("<", "\\u003c")), "text/plain": ""}
                outputs.append(new_output("display_data", data=data))
        cell["outputs"] = outputs
    return notebook


def scripts(body):
    """The files that a page needs for its moving figures, in the order in which they are loaded."""
    kinds = [recorded or computed for recorded, computed in KINDS.findall(body)]
    files = [name for kind in kinds for name in [*SHARED.get(kind, []), kind]]
    return [f"{FOLDER}/{name}.js" for name in dict.fromkeys(["kit", *files])] if kinds else []


def _read(app, name, source):
    if app.env.doc2path(name).endswith(".ipynb"):
        source[0] = json.dumps(with_recordings(json.loads(source[0])))


def _page(app, name, template, context, doctree):
    for file in scripts(context.get("body", "")):
        app.add_js_file(file, loading_method="defer")
        app.add_css_file(f"{FOLDER}/figures.css")


def setup(app):
    """Connect to Sphinx; _config.yml lists this module among the extensions."""
    app.connect("source-read", _read)
    app.connect("html-page-context", _page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
