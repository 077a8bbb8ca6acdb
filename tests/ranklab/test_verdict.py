"""What makes a grader: its verdict is printed, whatever the answer does, and readers find it in ranklab.check."""

import inspect
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import ranklab
from ranklab.check.verdict import NotYet, Verdict, correct, find_offered, grader, not_yet, offered
from ranklab.errors import WorldError


class Strange:
    """What an answer may return: it cannot be compared."""

    def __eq__(self, other):
        raise RuntimeError("ask me something else")

    __hash__ = None


@grader
def seven(answer) -> Verdict:
    """Grade a seven."""
    given = answer()
    if given is None:
        raise NotYet("nobody is there.")
    return correct("it is 7.") if given == 7 else not_yet(f"it is 7, not {given}.")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (7, "Correct: it is 7."),
        (8, "Not yet. it is 7, not 8."),
        (None, "Not yet. nobody is there."),
        (Strange(), "Not yet. What your answer returned cannot be judged: RuntimeError: ask me something else"),
    ],
)
def test_the_verdict_is_printed_in_one_line(capsys, given, said):
    assert seven(lambda: given) is None
    assert capsys.readouterr().out == f"{said}\n"


def test_what_ranklab_says_itself_is_no_verdict(capsys):
    def stopped():
        raise WorldError("No ranks are running.")

    with pytest.raises(WorldError):
        seven(stopped)
    assert capsys.readouterr().out == ""


def test_a_name_that_only_the_notebook_has_is_told_where_an_answer_is_no_function_of_its_own(capsys):
    """An answer may be wrapped, or an object with a method: what it is looked up in is not always known."""

    @grader
    def says(answer):
        raise NotYet("rank 1 raised NameError: name 'helper' is not defined, line 3 in answer")

    says(exec)
    assert (
        capsys.readouterr().out == "Not yet. rank 1 raised NameError: name 'helper' is not defined, line 3 in answer\n"
    )


def test_a_grader_keeps_its_name_signature_and_docstring():
    assert (seven.__name__, seven.__doc__) == ("seven", "Grade a seven.")
    assert str(inspect.signature(seven)) == "(answer) -> None"


def test_the_words_of_a_verdict_stand_once():
    written = []
    for path in sorted(Path(ranklab.check.__file__).parent.rglob("*.py")):
        written += re.findall(r"[\"'](Not yet\.|Correct)", path.read_text(encoding="utf8"))
    assert sorted(written) == ["Correct", "Not yet."]


def test_all_graders_are_listed_and_nothing_else():
    listed = dir(ranklab.check)
    assert listed == sorted(set(listed)) == ranklab.check.__all__
    assert {"ring_sum", "my_share", "draw_cluster", "best_cut"} < set(listed)
    for name in listed:
        function = getattr(ranklab.check, name)
        assert function.__name__ == name and function.__doc__


def test_the_package_offers_its_public_names_and_nothing_else():
    assert sorted(dir(ranklab)) == sorted(ranklab.__all__)
    assert "check" in dir(ranklab)


@pytest.fixture
def chapter(tmp_path, monkeypatch):
    """Add a chapter's graders to the folder of a part, as an author does; forget them afterwards."""
    import ranklab.check.talking as part

    monkeypatch.setattr(part, "__path__", [*part.__path__, str(tmp_path)])
    before = set(sys.modules)
    yield lambda text: (tmp_path / "new_chapter.py").write_text(text)
    for name in set(sys.modules) - before:
        del sys.modules[name]


NEW = """
from {package}.verdict import correct, grader


@grader
def {name}(answer):
    return correct("it is new.")
"""


def load_again() -> ModuleType:
    """Run ranklab.check as its first import does, beside the one that is there."""
    here = Path(ranklab.check.__file__)
    module = ModuleType("ranklab.check")
    module.__file__, module.__path__, module.__package__ = str(here), [str(here.parent)], "ranklab.check"
    exec(compile(here.read_text(encoding="utf8"), str(here), "exec"), vars(module))
    return module


def test_a_new_grader_is_found_without_another_edit(chapter, capsys):
    chapter(NEW.format(package="ranklab.check", name="brand_new"))
    found = load_again()
    assert "brand_new" in dir(found) and set(dir(ranklab.check)) < set(dir(found))
    found.brand_new(None)
    assert capsys.readouterr().out == "Correct: it is new.\n"


def test_two_graders_of_one_name_are_told(chapter):
    chapter(NEW.format(package="ranklab.check", name="ring_sum"))
    with pytest.raises(ImportError) as raised:
        load_again()
    assert str(raised.value) == (
        "Two chapters offer ranklab.check.ring_sum: ranklab.check.talking.all_reduce and "
        "ranklab.check.talking.new_chapter. Give one of them another name."
    )


def test_what_a_module_has_imported_is_not_offered_twice():
    first, second = ModuleType("first"), ModuleType("second")

    @offered
    def helper():
        """Help."""

    helper.__module__ = "first"
    first.helper = second.helper = helper
    assert find_offered([first, second]) == {"helper": helper}
