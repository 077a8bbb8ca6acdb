"""The files in place of a rank's standard output and error: they survive what cells do to the descriptors."""

import os

import pytest

from ranklab.rank.streams import NativeOutput, redirect


@pytest.fixture
def number(tmp_path):
    """A descriptor that stands for standard output; closed at the end."""
    number = os.open(tmp_path / "before", os.O_RDWR | os.O_CREAT)
    yield number
    os.close(number)


@pytest.fixture
def native(tmp_path, number):
    """What a rank has, for one stream that is not the standard output of this process."""
    redirect(number, tmp_path / "native")
    native = NativeOutput.__new__(NativeOutput)
    native._files = [(number, tmp_path / "native", "stdout")]
    return native


def write(number, text):
    """Write as compiled code in a cell does."""
    os.write(number, text.encode())


def test_what_compiled_code_writes_is_handed_to_the_stream_of_its_cell(native, number, capsys):
    for text in "one", "two":
        native.begin_cell()
        write(number, text)
        native.end_cell()
        assert capsys.readouterr().out == text


def test_a_descriptor_that_a_cell_has_closed_is_opened_again(native, number, capsys):
    native.begin_cell()
    write(number, "first")
    os.close(number)
    native.end_cell()
    native.begin_cell()
    write(number, "second")
    native.end_cell()
    assert capsys.readouterr().out == "firstsecond"
    assert os.get_inheritable(number)


def test_a_file_of_the_readers_under_this_number_is_left_alone(native, number, tmp_path, capsys):
    own = tmp_path / "own"
    redirect(number, own)
    write(number, "mine")
    native.begin_cell()
    native.end_cell()
    assert own.read_text() == "mine" and capsys.readouterr().out == ""
