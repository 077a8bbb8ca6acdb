"""Which programs of a launch may begin as copies of a process that has imported torch.

A program must not notice: see ``quick/copies.py``, which makes the copies. Pure: it only reads the program.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

# Words of a program that may set variables before it imports torch.
SETS = ("environ", "putenv", "dotenv", "import_module")


def may_copy(program: Path) -> bool:
    """Say whether a program does not notice that torch has been imported before its first line.

    One that may set variables for torch before it imports torch does, by itself or in a module beside it, and one that
    has a module of Python's own name beside it.
    """
    program = program.resolve()
    beside = {path.stem for path in program.parent.glob("*.py")} | {path.name for path in program.parent.glob("*/")}
    if (beside - {program.stem}) & sys.stdlib_module_names:
        return False
    try:
        for statement in ast.parse(program.read_bytes()).body:
            names = [name for node in ast.walk(statement) for name in _imports(node)]
            here = isinstance(statement, (ast.Import, ast.ImportFrom)) and "torch" in names
            if beside.intersection(names[: names.index("torch")] if here else names):
                return False
            if here:
                return True
            if any(word in ast.unparse(statement) for word in SETS):
                return False
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # Python's own error is the best one
    return True


def _imports(node: ast.AST) -> list[str]:
    """Return the first part of each name that a statement imports."""
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "").split(".")[0]]
    return [alias.name.split(".")[0] for alias in node.names] if isinstance(node, ast.Import) else []
