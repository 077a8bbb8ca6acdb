"""Finds variables in what is installed: expressions in Python source, words in headers, names in libraries."""

import ast
import mmap
import re
import struct
from functools import cache
from pathlib import Path

import torch

from .catalogue import VARIABLES
from .entry import Reader

ROOT = Path(__file__).parents[2]
INSTALLED = Path(torch.__file__).parents[1]
COMPILED = [
    variable.name
    for variable in VARIABLES
    if not variable.installed or any(reader.kind == "library" for reader in variable.readers)
]
PREFIXES = sorted({"".join(name.partition("_")[:2]).encode() for name in COMPILED})
WORD = re.compile(rb"[A-Z0-9_]+")
LETTER = re.compile(rb"[A-Za-z0-9_]")


def file(reader: Reader) -> Path:
    """The file of a reader."""
    return (ROOT if reader.path.startswith("src/") else INSTALLED) / reader.path


@cache
def tree(path: Path) -> ast.Module:
    """A Python file, parsed."""
    return ast.parse(path.read_text(encoding="utf-8"))


def inside(root: ast.AST, symbol: str) -> ast.AST | None:
    """The function or class of that name ("Class.method" too); the file itself where the name is ""."""
    for part in filter(None, symbol.split(".")):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        root = next((node for node in ast.walk(root) if isinstance(node, kinds) and node.name == part), None)
        if root is None:
            return None
    return root


def stands_in(root: ast.AST, code: ast.AST) -> bool:
    """Whether a part of a program has the code; a pair of a dictionary counts as one of its own."""
    sought = ast.dump(code)
    for node in ast.walk(root):
        if type(node) is not type(code):  # to write out all of torch's would take seconds
            continue
        if ast.dump(node) == sought:
            return True
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            if sought in (ast.dump(ast.Dict([key], [value])) for key, value in pairs if key):
                return True
    return False


def texts(root: ast.AST) -> list[str]:
    """All texts of a part of a program."""
    values = [node.value for node in ast.walk(root) if isinstance(node, ast.Constant)]
    return [value for value in values if isinstance(value, str)]


def wanted(code: str) -> ast.expr | ast.stmt:
    """A reader's code as the tree that is looked for; ``"KEY": value`` is a pair of a dictionary."""
    try:
        return ast.parse(code, mode="eval").body
    except SyntaxError:
        pass
    try:
        return ast.parse("{" + code + "}", mode="eval").body
    except SyntaxError:
        return ast.parse(code).body[0]


def default(code: str) -> str | None:
    """The constant that a call falls back to, as Python prints it; None where there is none."""
    node = wanted(code)
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in ("os.environ.get", "os.getenv"):
            last = call.args[1] if len(call.args) > 1 else None
            return str(last.value) if isinstance(last, ast.Constant) and last.value is not None else None
    return None


def python_reads(reader: Reader, name: str) -> bool:
    """Whether the code stands in the symbol and the name in the file; where it is only named, the name in a text."""
    part = inside(tree(file(reader)), reader.symbol)
    if part is None:
        return False
    if reader.named:
        return any(name in text for text in texts(part))
    known = name in texts(tree(file(reader))) or name.startswith("PET_")  # those are put together
    return known and stands_in(part, wanted(reader.code))


def header_has(reader: Reader, name: str) -> bool:
    """Whether the name and the words stand in the header, however its lines are broken."""
    text = file(reader).read_text(encoding="utf-8")
    return f'"{name}"' in text and " ".join(reader.code.split()) in " ".join(text.split())


def constants(library: mmap.mmap) -> tuple[int, int]:
    """Where the texts of a library begin and end: its section ``.rodata``, or all of it where it is not of this kind.

    One of torch has 17 megabytes of them among 414 of code.
    """
    if library[:5] != b"\x7fELF\2":
        return 0, len(library)
    (table,), (size, count, of_names) = (
        struct.unpack_from("<Q", library, 0x28),
        struct.unpack_from("<3H", library, 0x3A),
    )
    sections = [struct.unpack_from("<2I4Q", library, table + number * size) for number in range(count)]
    names = sections[of_names][4]
    for name, _, _, _, begin, length in sections:
        if library[names + name : names + name + 8] == b".rodata\0":
            return begin, begin + length
    return 0, len(library)


@cache
def names_of(path: Path) -> frozenset[str]:
    """All words of a library that begin as a variable of the page does."""
    found = set()
    with path.open("rb") as library, mmap.mmap(library.fileno(), 0, access=mmap.ACCESS_READ) as content:
        begin, end = constants(content)
        for prefix in PREFIXES:
            place = content.find(prefix, begin, end)
            while place >= 0:
                word = WORD.match(content, place)
                if not LETTER.match(content, place - 1):
                    found.add(word[0].decode())
                place = content.find(prefix, word.end(), end)
    return frozenset(found)


def library_has(reader: Reader, name: str) -> bool:
    """Whether a library has the name, as a word of its own."""
    return name in names_of(file(reader))


def libraries() -> list[Path]:
    """The libraries that torch has installed."""
    return sorted(path for path in (INSTALLED / "torch/lib").iterdir() if ".so" in path.name)
