"""Work side by side: what is returned says whose it is, and an error ends the rest."""

import os
import time
from functools import partial

import pytest

from bookkit.beside import beside


def squared(folder, number):
    (folder / str(number)).touch()
    if number == 3:
        raise ValueError("three")
    time.sleep(number / 1000)  # work
    return number * number, os.getpid()


def test_every_thing_gets_its_result_from_another_process(tmp_path):
    with beside(partial(squared, tmp_path), [5, 2, 7]) as ended:
        found = dict(ended)
    assert {number: result for number, (result, _) in found.items()} == {0: 25, 1: 4, 2: 49}
    assert os.getpid() not in {process for _, process in found.values()}


def test_an_error_is_the_callers_and_what_has_not_begun_is_left_out(tmp_path):
    with pytest.raises(ValueError, match="three"), beside(partial(squared, tmp_path), [3, *range(50, 5000)]) as ended:
        for _ in ended:
            pass
    assert len(list(tmp_path.iterdir())) < 4000
