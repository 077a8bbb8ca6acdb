"""Each variable of the page of environment variables is read where the page says; its ranks print what stands there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from launches import left_running, mark, marked
from places import headings
from support import eventually

from tests.variables import page, reads
from tests.variables.catalogue import GROUPS, VARIABLES
from tests.variables.entry import GAP, Reader, printed

ROOT = Path(__file__).parents[2]
READERS = [(variable, reader) for variable in VARIABLES for reader in variable.readers]
LOOK = {"python": reads.python_reads, "header": reads.header_has, "library": reads.library_has}
FOUND = [(variable, reader) for variable, reader in READERS if reader.kind in LOOK]
ABSENT = [variable for variable in VARIABLES if not variable.installed]
SHOWN = [each for each in (*VARIABLES, *GROUPS) if each.shows]
OPTIONS = [variable for variable in VARIABLES if variable.name.startswith("PET_")]


def name(value):
    return getattr(value, "name", None) or getattr(value, "path", None) or value.title


@pytest.fixture(scope="module")
def differed(tmp_path_factory):
    """What each program has printed whose ranks differ; nothing of them is left running."""
    told, ours = tmp_path_factory.mktemp("variables") / "told.json", mark()
    environment = {**os.environ, "VARIABLES_STAGE": ours}
    for left in ("TORCH_DISTRIBUTED_DEBUG", "TORCH_CPP_LOG_LEVEL", "OMP_NUM_THREADS"):
        environment.pop(left, None)
    try:
        command = [sys.executable, "-m", "tests.variables.stage", str(told)]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=540)
        assert eventually(lambda: not marked("VARIABLES_STAGE", ours), 120), left_running("VARIABLES_STAGE", ours)
    finally:
        for process in marked("VARIABLES_STAGE", ours):
            process.kill()
    return json.loads(told.read_text())


# One test for all variables, each time: what is read of torch is read once, and by one of the workers.


@pytest.mark.parametrize("kind", LOOK)
def test_each_is_read_where_the_page_says(kind):
    asked = [(variable.name, reader) for variable, reader in FOUND if reader.kind == kind]
    assert asked
    assert [f"{name}: {reader}" for name, reader in asked if not LOOK[kind](reader, name)] == []


def test_the_default_is_that_of_the_source():
    ours = [(variable, reader) for variable, reader in FOUND if reader.kind == "python"]
    defaults = [(one, reads.default(reader.code)) for one, reader in ours if reader.path.startswith("torch/")]
    assert sum(default is not None for _, default in defaults) > 10
    assert [(one.name, default) for one, default in defaults if default and f"`{default}`" not in one.default] == []


def test_what_is_said_to_be_missing_is_in_no_library():
    there = set().union(*map(reads.names_of, reads.libraries()))
    assert "TORCH_DISTRIBUTED_DEBUG" in there and ABSENT
    assert there & {variable.name for variable in ABSENT} == set()


@pytest.mark.parametrize("variable", OPTIONS, ids=name)
def test_torchrun_takes_the_option_and_has_the_default(variable, monkeypatch):
    from torch.distributed.run import get_args_parser

    option = variable.name.removeprefix("PET_").lower()
    default = getattr(get_args_parser().parse_args(["program.py"]), option)
    assert f"`{int(default) if isinstance(default, bool) else default}`" in variable.default or not default
    monkeypatch.setenv(variable.name, "1")
    assert getattr(get_args_parser().parse_args(["program.py"]), option) in ("1", 1, True)


@pytest.mark.parametrize("each", SHOWN, ids=name)
def test_the_ranks_print_what_stands_there(differed, each):
    assert printed(each.shows, differed[each.by]), differed[each.by][-3000:]


def test_the_program_that_compares_ranks_prints_what_stands_there(differed):
    assert differed["amounts.compared"].split("\n")[0] == page.COMPARED


def test_the_recorder_is_on_and_nothing_is_compared_by_default(differed):
    assert differed["logs.default_buffer"].count("recorded 9 of 9 calls") == 2
    assert "debug level: DebugLevel.OFF and DebugLevel.INFO" in differed["amounts.fresh"]


def test_a_group_waits_as_long_as_the_page_says():
    ours = ("torch/include/torch/csrc/distributed/c10d/Backend.hpp", "30 * 60 * 1000")
    nccls = ("torch/include/torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp", "10 * 60 * 1000")
    for path, time in (ours, nccls):
        assert re.search(
            rf"DefaultTimeout =\s+std::chrono::milliseconds\({re.escape(time)}\)", (reads.INSTALLED / path).read_text()
        )


SOURCE = """
NAME = "TORCH_A"
def read():
    return os.environ.get(NAME, "1"), {"TORCH_B": str(2)}
"""


@pytest.mark.parametrize(
    ("variable", "code", "change", "found"),
    [
        ("TORCH_A", 'os.environ.get(NAME, "1")', ("", ""), True),
        ("TORCH_A", 'os.environ.get(NAME, "1")', ('NAME, "1"', 'NAME, "2"'), False),
        ("TORCH_A", 'os.environ.get(NAME, "1")', ("TORCH_A", "TORCH_C"), False),
        ("TORCH_A", 'os.environ.get(NAME, "1")', ("def read", "def look"), False),
        ("TORCH_B", '"TORCH_B": str(2)', ("", ""), True),
        ("TORCH_B", '"TORCH_B": str(2)', ("str(2)", "str(3)"), False),
    ],
)
def test_a_change_of_torchs_python_is_noticed(tmp_path, monkeypatch, variable, code, change, found):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/a.py").write_text(SOURCE.replace(*change) if change[0] else SOURCE)
    monkeypatch.setattr(reads, "INSTALLED", tmp_path)
    assert reads.python_reads(Reader("torch/a.py", "read", code), variable) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [('getInt({"A_B"},\n  2000)', True), ('getInt({"A_B"}, 0)', False), ('getInt({"A_C"}, 2000)', False)],
)
def test_a_change_of_a_header_is_noticed(tmp_path, monkeypatch, text, found):
    (tmp_path / "a.hpp").write_text(text)
    monkeypatch.setattr(reads, "INSTALLED", tmp_path)
    assert reads.header_has(Reader("a.hpp", "", "}, 2000)"), "A_B") is found


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"..\0GLOO_SOCKET_IFNAME\0..", True),
        (b"..\0GLOO_SOCKET_IFNAMES\0..", False),
        (b"..\0MY_GLOO_SOCKET_IFNAME\0..", False),
        (b"..\0NCCL_SOCKET_IFNAME\0..", False),
    ],
)
def test_a_name_that_goes_from_a_library_is_noticed(tmp_path, monkeypatch, content, found):
    (tmp_path / "a.so").write_bytes(content)
    monkeypatch.setattr(reads, "INSTALLED", tmp_path)
    assert reads.library_has(Reader("a.so"), "GLOO_SOCKET_IFNAME") is found


def test_gloo_takes_several_interfaces_and_equally_many_on_all_ranks(differed):
    assert differed["networks.two_interfaces"].count("all_reduce counts 2 ranks") == 2
    assert "all_reduce counts" not in differed["networks.other_number"]


def test_every_program_is_shown(differed):
    beside = {"amounts.compared", "logs.default_buffer", "networks.two_interfaces", "networks.other_number"}
    assert set(differed) == {each.by for each in SHOWN} | beside


def test_the_page_is_what_the_catalogue_says():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run: python -m tests.variables"


def test_the_page_has_eighty_variables_that_are_found():
    assert len({variable.name for variable in VARIABLES}) == len(VARIABLES)
    assert sum(variable.installed for variable in VARIABLES) >= 80


def test_an_entry_is_whole():
    for variable in VARIABLES:
        assert variable.readers and bool(variable.shows) == bool(variable.by), variable.name
        assert GAP not in variable.name
        for text in (variable.what, variable.default, variable.differ):
            assert text.endswith((".", ":")), variable.name
            assert all(len(sentence.split()) <= 32 for sentence in re.split(r"(?<=[.:]) ", text)), variable.name


def test_each_place_in_the_book_exists():
    places = sorted({variable.see for variable in VARIABLES if variable.see})
    assert [see for see in places if see.partition("#")[2] not in headings(see.partition("#")[0])] == []


def test_the_needs_name_variables_of_the_page():
    known = {variable.name for variable in VARIABLES}
    assert not [each for _, names in page.NEEDS for each in names.split() if each not in known]
