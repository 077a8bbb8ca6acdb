"""Files that are written without end stay small on disk, and keep their beginning and their end."""

import pytest

from ranklab.launch.ranklogs import LIMIT, Log


def allocated(path):
    return path.stat().st_blocks * 512


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stdout.log"


def test_a_file_that_is_not_there_is_empty(path):
    log = Log(path)
    log.look()
    assert log.text() == "" and log.changed == 0


def test_an_ordinary_file_is_read_as_it_is(path):
    path.write_text("größer\n")
    log = Log(path)
    log.look()
    assert log.text() == "größer\n" and log.changed == path.stat().st_mtime


def test_an_endless_file_stays_small_while_it_is_written(path):
    log = Log(path)
    with path.open("w") as file:
        for number in range(400_000):
            file.write(f"line {number} of many that a rank prints without end\n")
            if number % 20_000 == 0:
                file.flush()
                log.look()
                assert allocated(path) < 6 * LIMIT
    log.look()
    text = log.text()
    assert text.startswith("line 0 of many") and text.endswith("line 399999 of many that a rank prints without end\n")
    assert "bytes left out" in text and len(text) < 1.1 * LIMIT and "\0" not in text


def test_a_long_file_that_nobody_looked_at_is_cut_as_well(path):
    path.write_text("x" * (5 * LIMIT) + "the end")
    text = Log(path).text()
    assert len(text) < 1.1 * LIMIT and text.endswith("the end") and f"{4 * LIMIT + 7 - 10_000} bytes left out" in text


def test_bytes_that_are_no_text_are_shown_as_such(path):
    path.write_bytes(b"ok \xff\n")
    assert Log(path).text() == "ok \ufffd\n"
