"""Which names of torch a cell uses, and where an installed torch defines them.

``python -m bookkit.torch_names`` reads names from its standard input, one JSON list, and prints for each of them the
file, the first line and the source of its definition; null where this environment's torch lacks it.
"""

import ast
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = "torch"


def used(sources):
    """The names of torch that the last of some cells uses, in full: ``torch.distributed.all_reduce``.

    Args:
        sources: the code of a chapter's cells up to that one; the imports of all of them count.
    """
    imported: dict = {}
    found: list = []
    for source in sources:
        tree = _tree(source)
        found = [name for name in _imports(tree, imported) if name]
        found += filter(None, (_full(node, imported) for node in ast.walk(tree)))
    whole = dict.fromkeys(name for name in found if name.partition(".")[0] == ROOT)
    # dist.all_reduce also holds dist, which says nothing.
    return [name for name in whole if not any(other.startswith(f"{name}.") for other in whole)]


def _tree(source):
    """The syntax of a cell without its magics; of none that is not Python, such as a shell's."""
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source.splitlines()]
    try:
        return ast.parse("\n".join(lines))
    except SyntaxError:
        return ast.parse("")


def _imports(tree, imported):
    """Note what each name stands for that a cell imports; yield what it takes out of modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                imported[each.asname or top] = each.name if each.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                imported[each.asname or each.name] = f"{node.module}.{each.name}"
                yield imported[each.asname or each.name]


def _full(node, imported):
    """The full name that an expression such as ``dist.ReduceOp.SUM`` stands for; "" where it is another expression."""
    if isinstance(node, ast.Name):
        return imported.get(node.id, "")
    if isinstance(node, ast.Attribute):
        holder = _full(node.value, imported)
        return holder and f"{holder}.{node.attr}"
    return ""


def definitions(names):
    """Where this environment's torch defines names: the file, the first line and the source, or None for each."""
    return {name: _definition(name) for name in names}


def _definition(name):
    found = _found(name)
    if found is None:
        return None
    if not inspect.isroutine(found) and not inspect.isclass(found):
        found = type(found)  # of a value, such as an option of an enumeration, what kind it is
    found = inspect.unwrap(found)
    above = Path(str(importlib.import_module(ROOT).__file__)).parents[1]
    try:
        source, line = inspect.getsourcelines(found)
        file = Path(inspect.getsourcefile(found) or "")
    except (OSError, TypeError):  # written in C++
        source, line, file = [], 0, Path()
    if not file.is_relative_to(above / ROOT):
        return {"file": "", "line": 0, "source": ""}
    return {"file": file.relative_to(above).as_posix(), "line": line, "source": "".join(source)}


def _found(name):
    """What a name stands for, or None where there is no such thing."""
    root, *parts = name.split(".")
    found: Any = importlib.import_module(root)
    for number, part in enumerate(parts, start=1):
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(".".join([root, *parts[:number]]))
            except ImportError:
                return None
    return found


def ask(python, names):
    """The definitions of names in the environment of an interpreter."""
    command = [python, "-m", "bookkit.torch_names"]
    asked = subprocess.run(command, input=json.dumps(names), capture_output=True, text=True, check=True)
    return json.loads(asked.stdout.splitlines()[-1])  # above it may stand what an import printed


if __name__ == "__main__":
    print(json.dumps(definitions(json.load(sys.stdin))))
