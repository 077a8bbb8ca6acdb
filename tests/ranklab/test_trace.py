"""What is told of the stack of a rank, from code that stands in files which do not exist: no rank is started."""

import linecache
import sys
from types import SimpleNamespace

import pytest

from ranklab.rank import trace
from ranklab.rank.engine import forget_file
from ranklab.rank.trace import cut_traceback, lines_of, position

CELL = "tmp/ipykernel_7/1234.py"
MODULE = "reader/mylib.py"
LIBRARY = pytest.__file__  # of a package that is installed


def run(text, file=CELL, **names):
    """Run text as if it stood in a file; return what it has defined."""
    exec(compile(text, file, "exec"), names)
    return names


def error_of(text, **names):
    """Return what is told of the error that a cell raises."""
    with pytest.raises(Exception) as caught:
        run(text, **names)
    return cut_traceback(caught.value)


@pytest.fixture
def torch():
    """Stand for torch.distributed: its recv() tells what a watchdog would see of the rank, in ``seen``."""
    text = "def recv(tensor, src):\n    seen.append(position(sys._getframe()))"
    names = {"__name__": "torch.distributed.distributed_c10d", "seen": [], "position": position, "sys": sys}
    return SimpleNamespace(**run(text, LIBRARY, **names))


def test_a_message_inside_a_library_is_told_with_its_peer(torch):
    text = "def step(x):\n    exchange(x)\ndef exchange(x):\n    dist.recv(x, src=1)"
    lib = run(text, LIBRARY, __name__="lib.part", dist=torch)
    run("step(None)", step=lib["step"])
    (state,) = torch.seen
    assert state.lines == ["line 1"]
    assert state.stack == ["lib.part.step", "lib.part.exchange", "torch.distributed.recv"]
    assert (state.call, state.peers) == ("torch.distributed.recv", {"src": 1})


def test_a_message_in_the_readers_module_is_told_with_its_line(torch):
    mine = run("def exchange():\n    dist.recv(None, src=2)", MODULE, __name__="mylib", dist=torch)
    run("\nexchange()", exchange=mine["exchange"])
    (state,) = torch.seen
    assert state.lines == ["line 2", "mylib.py line 2 in exchange"]
    assert state.stack == ["torch.distributed.recv"] and state.peers == {"src": 2}


def test_an_error_in_the_readers_module_is_told_with_its_file_and_line():
    mine = run("def bad():\n    raise ValueError('no')", MODULE)
    assert error_of("bad()", **mine) == ["line 1", "mylib.py line 2 in bad", "ValueError: no"]


def test_an_error_in_a_library_names_the_call_alone():
    lib = run("def load():\n    raise ValueError('no')", LIBRARY, __name__="lib.part")
    assert error_of("load()", load=lib["load"]) == ["line 1", "in lib.part.load", "ValueError: no"]


def test_of_the_readers_modules_those_below_the_last_cell_are_told():
    mine = run("def call(function):\n    function()", MODULE)
    assert error_of("def f():\n    1 / 0\ncall(f)", **mine)[:2] == ["line 3", "line 2 in f"]


def test_the_recorders_lines_are_those_of_a_traceback():
    files = [(LIBRARY, "recv"), (MODULE, "exchange"), (CELL, "<module>"), ("reader/start.py", "main")]
    frames = [{"filename": file, "name": name, "line": 3} for file, name in files]
    assert lines_of(frames, True) == ["line 3", "mylib.py line 3 in exchange"]


def test_a_module_that_was_edited_and_reloaded_shows_its_new_line(tmp_path):
    module = tmp_path / "mine.py"
    module.write_text("def f():\n    return 1\n")
    assert trace._line(str(module), "f", 2).endswith("return 1")
    module.write_text("def f():\n    return 1000\n")
    assert trace._line(str(module), "f", 2).endswith("return 1000")


def test_a_recursion_is_folded():
    told = error_of("def f(n):\n    return f(n + 1)\nf(0)")
    assert told[:2] == ["line 3", "line 2 in f"]
    assert told[2].startswith("… the same line ") and told[2].endswith(" times more")
    assert told[3] == "line 2 in f" and told[4].startswith("RecursionError") and len(told) == 5


def test_three_equal_lines_are_told_as_they_are():
    told = error_of("def f(n):\n    n and f(n - 1) or g()\ndef g():\n    1 / 0\nf(2)")
    assert told == ["line 5", *["line 2 in f"] * 3, "line 4 in g", "ZeroDivisionError: division by zero"]


def test_a_recursion_through_two_functions_shows_its_ends():
    told = error_of("def f(n):\n    return g(n)\ndef g(n):\n    return f(n)\nf(0)")
    assert told[:3] == ["line 5", "line 2 in f", "line 4 in g"] and len(told) == 22
    assert told[10].startswith("… ") and told[10].endswith(" lines more")


def test_an_await_outside_of_a_function_shows_its_text(monkeypatch):
    text = "def f():\n    pass\nprint(await f())"
    monkeypatch.setitem(linecache.cache, CELL, (len(text), None, text.splitlines(True), CELL))
    assert error_of(text) == ["line 3:  print(await f())", "SyntaxError: 'await' outside function"]


def test_code_that_a_cell_compiles_is_told_with_its_own_file():
    told = error_of("\ncompile('a\\nb c', 'reader/mylib.py', 'exec')")
    assert told == ["line 2", "mylib.py line 2:  b c", "SyntaxError: invalid syntax"]


def test_a_syntax_error_raised_by_hand_is_an_error_like_any_other():
    assert error_of("raise SyntaxError('no')") == ["line 1", "SyntaxError: no"]


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [(CELL, 3, "no"), ("<string>", None, "no"), (MODULE, 3, "no (mylib.py, line 3)")],
)
def test_a_syntax_error_says_nothing_of_a_cells_temporary_file(file, line, said):
    error = SyntaxError("no")
    error.filename, error.lineno = file, line
    forget_file(SimpleNamespace(error_before_exec=error, error_in_exec=None))
    assert str(error) == said
