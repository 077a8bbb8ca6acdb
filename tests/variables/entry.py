"""One variable: what is known of it, and who reads it."""

import re
from dataclasses import dataclass

GAP = "…"  # stands where a number, a name or a path differs from run to run
ALONE = "Each rank decides for itself, and the others do not notice."


@dataclass(frozen=True)
class Reader:
    """A place that reads a variable, or a text that says who does.

    Attributes:
        path: a file below the installed packages (``torch/…``), of this repository (``src/…``), of pytorch's repository
            (``pytorch: …``, which nobody has installed), or a public address.
        symbol: the function or class that reads it, or the name of a guide.
        code: what stands there: an expression of Python, or words of a header; "" where the name alone is looked for,
            in a library or in a text.
        named: whether it writes the name down and leaves the reading to others.
    """

    path: str
    symbol: str = ""
    code: str = ""
    named: bool = False

    @property
    def kind(self) -> str:
        """How the test looks for it: python, header, library, repository or guide."""
        if self.path.startswith("https://"):
            return "guide"
        if self.path.startswith("pytorch: "):
            return "repository"
        if ".so" in self.path:
            return "library"
        return "python" if self.path.endswith(".py") else "header"

    @property
    def sets(self) -> bool:
        """Whether it writes the variable into an environment: a pair of a dictionary, or an assignment to an item."""
        return re.match(r'"\w+": |[\w.]+(\[.*?\])+ = ', self.code) is not None


@dataclass(frozen=True)
class Variable:
    """A variable of the environment.

    Attributes:
        name: as it is exported.
        what: what it does.
        default: what holds where nobody has set it.
        differ: what happens when two ranks have different values.
        readers: who reads it, the one that counts first.
        shows: what the program prints in which two ranks differ; ``…`` for what changes from run to run.
        by: that program, ``module.function`` below programs, or "" where none was run.
        since: the version that brought it, where its documentation says so.
        see: "page#Section" below book, the place in the book that shows or measures it.
    """

    name: str
    what: str
    default: str
    differ: str
    readers: tuple[Reader, ...]
    shows: str = ""
    by: str = ""
    since: str = ""
    see: str = ""

    @property
    def label(self) -> str:
        """The name of its heading as a target of links."""
        return "env-" + self.name.lower().replace("_", "-")

    @property
    def installed(self) -> bool:
        """Whether the installed torch has it."""
        return any(reader.path.startswith("torch/") for reader in self.readers)

    @property
    def ours(self) -> bool:
        """Whether ranklab reads or sets it."""
        return any(reader.path.startswith("src/") for reader in self.readers)


@dataclass(frozen=True)
class Group:
    """Variables that answer one question of a reader.

    Attributes:
        title: the question.
        opening: what holds for all of them.
        variables: the variables.
        shows: what the program of the opening prints.
        by: that program.
    """

    title: str
    opening: str
    variables: tuple[Variable, ...]
    shows: str = ""
    by: str = ""


def printed(shows: str, heard: str) -> bool:
    """Whether all lines of a text stand in what a program has printed, in any order: two ranks print side by side."""
    return all(re.search("[^\n]*".join(map(re.escape, line.split(GAP))), heard) for line in shows.splitlines())


def python(path: str, symbol: str, code: str = "", named: bool = False) -> Reader:
    """A Python file of torch, below its folder; the expression stands in the symbol."""
    return Reader(f"torch/{path}", symbol, code, named)


def ranklab(path: str, symbol: str, code: str) -> Reader:
    """A file of this repository, below src."""
    return Reader(f"src/{path}", symbol, code)


def header(path: str, code: str, named: bool = False) -> Reader:
    """A C++ header that torch installs."""
    return Reader(f"torch/include/{path}", "", code, named)


def library(name: str = "libtorch_cpu.so", symbol: str = "", named: bool = False) -> Reader:
    """A library that torch installs, and the C++ file that its text comes from."""
    return Reader(f"torch/lib/{name}", symbol, "", named)


def repository(path: str, symbol: str) -> Reader:
    """A C++ file of pytorch's repository."""
    return Reader(f"pytorch: {path}", symbol)


def guide(address: str, symbol: str) -> Reader:
    """A page of a documentation."""
    return Reader(address, symbol)
