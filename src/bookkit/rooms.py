"""The rooms of ranklab: which process a module runs in, and what it may import. ``python -m bookkit.rooms`` lists them.

A folder of ``src/ranklab`` is a room. From what a notebook calls down to plain data, a module imports from its own room
or from one below it, wherever in the module the import stands and whatever it is for.
"""

import ast
import sys
from pathlib import Path

ROOMS = {
    "ranklab": "the public names and the command line",
    "check": "graders, a module a chapter",
    "notebook": "what a notebook calls",
    "drills": "a job with a fault, what it leaves, and the verdict",
    "launch": "torchrun from a notebook",
    "figures": "drawings",
    "cells": "the notebook's loop around a cell: send, wait, free, show",
    "engines": "the processes of a world: start, replace, end",
    "hangs": "words only: from what ranks told to the report",
    "rank": "everything that runs inside a rank",
    "lab": "hosts with a link",
    "system": "what the machine is and has",
    "data": "plain data",
}
# Modules beside the folders, by room.
FILES = {
    "ranklab": {"__init__", "__main__"},
    "notebook": {"world", "sending", "starting", "magics", "doctor", "doctor_gpus", "demo", "measured"},
    "data": {"layout", "errors", "palette", "live", "outcome", "state", "programs", "packages", "finding", "classroom"},
}


class House:
    """The modules of a package and what they import.

    Args:
        source: the folder of the package, ``src/ranklab``.

    Attributes:
        paths: the file of each module, by its full name: ``ranklab.check.ranks.meeting_up``.
    """

    def __init__(self, source: Path) -> None:
        self._above = source.parent
        self.paths = {self.name(path): path for path in sorted(source.rglob("*.py"))}
        self._trees: dict[Path, ast.Module] = {}

    def name(self, path: Path) -> str:
        """Return a module's name as Python knows it."""
        parts = path.relative_to(self._above).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def tree(self, path: Path) -> ast.Module:
        """Return a module's source, parsed once."""
        if path not in self._trees:
            self._trees[path] = ast.parse(path.read_text(encoding="utf8"))
        return self._trees[path]

    def room(self, name: str) -> str:
        """Return the room of a module: its folder, or at the top what it is for; "" where it has none."""
        parts = name.split(".")[1:]
        if parts and parts[0] in ROOMS:
            return parts[0]
        stem = parts[0] if len(parts) == 1 else "__init__" if not parts else ""
        return next((room for room, stems in FILES.items() if stem in stems), "")

    def imports(self, path: Path, late: bool = True) -> set[str]:
        """Return the full names of the modules that a module imports.

        Args:
            path: the module.
            late: also what it imports inside functions and for type checkers alone.
        """
        tree = self.tree(path)
        package = self.name(path) if path.name == "__init__.py" else self.name(path).rpartition(".")[0]
        found = set()
        for node in ast.walk(tree) if late else tree.body:
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                module = ".".join([*above, *([node.module] if node.module else [])])
                inner = (f"{module}.{alias.name}" for alias in node.names)
                found |= {name if name in self.paths else module for name in inner}
        return found

    def ours(self, name: str) -> set[str]:
        """Return the modules of the package that one of its modules imports, itself aside."""
        return (self.imports(self.paths[name]) & self.paths.keys()) - {name}

    def upward(self) -> list[str]:
        """Return a sentence for each import that leads from a room to one above it, or to a module without a room."""
        order = list(ROOMS)
        return [
            f"{name} ({self.room(name) or 'no room'}) imports {other} ({self.room(other) or 'no room'}) from above"
            for name in self.paths
            for other in sorted(self.ours(name))
            if not self.room(name)
            or not self.room(other)
            or order.index(self.room(other)) < order.index(self.room(name))
        ]

    def circles(self) -> set[str]:
        """Return the modules that import each other in a circle, and those between two circles."""
        left = {name: self.ours(name) for name in self.paths}
        while True:
            wanted = set().union(*left.values())
            free = [name for name in left if name not in wanted or not left[name] & left.keys()]
            if not free:
                return set(left)
            for name in free:
                del left[name]


def listing(house: House) -> str:
    """Return the rooms from the top down, with their modules counted and the rooms that they import from."""
    lines = []
    for room, what in ROOMS.items():
        names = [name for name in house.paths if house.room(name) == room]
        below = {house.room(other) for name in names for other in house.ours(name)} - {room}
        wanted = ", ".join(other for other in ROOMS if other in below) or "nothing"
        lines.append(f"{room:<9} {len(names):>3} modules   {what}\n{'':<22} imports from: {wanted}")
    return "\n".join(lines)


def main() -> int:
    """Print the rooms; return 1 where an import leads upwards or in a circle."""
    house = House(Path(__file__).parents[1] / "ranklab")
    print(listing(house))
    wrong = [*house.upward(), *(f"{name} is in a circle of imports" for name in sorted(house.circles()))]
    print("\n".join(wrong) if wrong else "Every import leads down, and no modules import each other in a circle.")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
