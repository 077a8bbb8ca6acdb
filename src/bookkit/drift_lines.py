"""The lines of torch behind a cell that printed something else: what the two versions have otherwise."""

import ast
import re
import sys
import textwrap

from bookkit import torch_names


def blame(chapters, python):
    """Add to each cell that differs the lines of this environment's torch that the other one lacks or has otherwise.

    Only functions and classes are compared that the cell itself names, and of these only what is executed: no comment,
    no docstring. A cell that differs for another reason gets no line.

    Args:
        chapters: pairs of a chapter's sources, one for each of its code cells, and the notes of its cells that differ;
            each note gets ``lines``, a list of strings such as ``torch/distributed/device_mesh.py:345 (size, new)``.
        python: the interpreter of the environment with the other torch.
    """
    cells = [(note, torch_names.used(sources[: note["cell"]])) for sources, notes in chapters for note in notes]
    names = sorted({name for _, used in cells for name in used})
    if not names:
        ours = theirs = {}
    else:
        ours, theirs = torch_names.ask(sys.executable, names), torch_names.ask(python, names)
    for note, used in cells:
        told = (line_of(name, ours[name], theirs[name], note["printed"]) for name in used)
        note["lines"] = [*filter(None, told)]


def line_of(name, here, there, said):
    """The line at which a name of torch differs between two versions; "" where it does not.

    Args:
        name: the full name.
        here: its definition in the torch of the book.
        there: its definition in the other torch.
        said: what the cell printed; a line that has one of its words goes before an earlier one.
    """
    last = name.rpartition(".")[2]
    if here is None or here == there or not here["file"]:
        return ""
    if there is None:
        return f"{here['file']}:{here['line']} ({last}, new)"
    old = {text for _, text in _executed(there["source"])}
    new = [(number, text) for number, text in _executed(here["source"]) if text not in old]
    words = set(re.findall(r"[a-z]+_\w+", said))
    new.sort(key=lambda each: (words.isdisjoint(re.findall(r"\w+", each[1])), each[0]))
    return f"{here['file']}:{here['line'] + new[0][0] - 1} ({last})" if new else ""


def _executed(source):
    """What is executed of a definition, piece by piece, each with its line."""
    pieces = []
    for node in ast.walk(ast.parse(textwrap.dedent(source))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pieces.append((node.lineno, f"{node.name}({ast.unparse(node.args)})"))
        elif isinstance(node, ast.If | ast.While):
            pieces.append((node.lineno, ast.unparse(node.test)))
        elif isinstance(node, ast.For):
            pieces.append((node.lineno, ast.unparse(node.iter)))
        elif isinstance(node, ast.With):
            pieces.append((node.lineno, ", ".join(map(ast.unparse, node.items))))
        elif isinstance(node, ast.stmt) and not hasattr(node, "body") and not _is_words(node):
            pieces.append((node.lineno, ast.unparse(node)))
    return pieces


def _is_words(node):
    """Whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
