"""What the tests stand on: a notebook that takes no verdict of pytest for an error of its cell."""

import pytest
from support import Notebook


def test_the_end_of_a_tests_time_is_no_error_of_the_cell_it_ends():
    """pytest-timeout raises in whatever runs; a cell that swallowed it would leave its ranks at work for the next."""
    with pytest.raises(pytest.fail.Exception, match="ten minutes"):
        Notebook().run("import pytest\npytest.fail('ten minutes')")
    assert isinstance(Notebook().run("1 / 0").error, ZeroDivisionError)
