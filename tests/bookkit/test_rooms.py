"""The list of rooms: which imports it objects to, whichever way they are written."""

import pytest

from bookkit.rooms import House, listing


@pytest.fixture
def house(tmp_path):
    """A package of two rooms, and what one of its modules in the lower room says."""

    def build(text, upper="", package="ranklab"):
        for room in ("cells", "rank"):
            (tmp_path / package / room).mkdir(parents=True)
            (tmp_path / package / room / "__init__.py").write_text("")
        (tmp_path / package / "__init__.py").write_text("")
        (tmp_path / package / "errors.py").write_text("")
        (tmp_path / package / "cells" / "cell.py").write_text(upper)
        (tmp_path / package / "rank" / "watchdog.py").write_text(text)
        return House(tmp_path / package)

    return build


UPWARDS = [
    "from ..cells.cell import run",
    "from ..cells import cell",
    "import ranklab.cells.cell",
    "from ranklab.cells import cell as loop",
    "def late():\n    from ..cells import cell",
    "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..cells.cell import Cell",
]


@pytest.mark.parametrize("text", UPWARDS)
def test_an_import_from_above_is_told_wherever_it_stands(house, text):
    told = house(text).upward()
    assert told == ["ranklab.rank.watchdog (rank) imports ranklab.cells.cell (cells) from above"]


@pytest.mark.parametrize("text", ["from ..errors import RankError", "import json", "from . import other", ""])
def test_an_import_from_below_or_outside_is_right(house, text):
    assert house(text).upward() == []


def test_a_module_beside_the_folders_needs_a_room(house, tmp_path):
    house("from .. import stray")
    (tmp_path / "ranklab" / "stray.py").write_text("")
    assert "no room" in House(tmp_path / "ranklab").upward()[0]


def test_a_circle_within_a_room_is_found(house, tmp_path):
    house("from . import recorder")
    (tmp_path / "ranklab" / "rank" / "recorder.py").write_text("def late():\n    from .watchdog import ask")
    (tmp_path / "ranklab" / "rank" / "above.py").write_text("from . import watchdog")
    assert House(tmp_path / "ranklab").circles() == {"ranklab.rank.watchdog", "ranklab.rank.recorder"}


def test_the_listing_names_each_room_and_what_it_imports(house):
    told = listing(house("from ..errors import RankError", upper="from ..rank import watchdog"))
    assert "cells       2 modules" in told
    assert "imports from: rank" in told and "imports from: data" in told
