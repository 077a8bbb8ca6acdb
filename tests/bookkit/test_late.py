"""What somebody who comes late runs: the cells that the box names, found by its words, and all below it."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookkit.errors import BookError
from tests.benchmarks.late import late, needed

BOX = ":::{admonition} Start here if you came late\n"
CELLS = [
    new_markdown_cell("## The one-process answer"),
    new_code_cell("table = 1"),
    new_code_cell("def fastest(ranks):\n    return ranks"),
    new_markdown_cell("### Deeper"),
    new_code_cell("%%px --local\ndeep = 2"),
    new_markdown_cell("## Ranks"),
    new_code_cell("import ranklab\n\nworld = ranklab.start(4)"),
    new_code_cell("%%px\n# How groups are drawn\nshown = 3"),
]


def chapter(words):
    rest = [new_markdown_cell(BOX + words), new_code_cell("here = 4"), new_code_cell("on = 5")]
    return new_notebook(cells=[*CELLS, *rest])


@pytest.mark.parametrize(
    ("words", "places"),
    [
        ("Run the cells of *The one-process answer*, then the next.", [1, 2, 4]),
        ("Run the cells of *The one-process answer* that begin with `%%px`, then the next.", [4]),
        ("Run *The one-process answer* up to the loop.", [1, 2, 4]),
        ("Run the two lines that start the ranks, then the next.", [6]),
        ("Run the cell with `ranklab.start(4)`, then this one.", [6]),
        ("Run the first code cell, and the cell that defines `fastest`.", [1, 2]),
        ("Run the cells that define `table` and `fastest`.", [1, 2]),
        ("Run the folded cells *How …* in *Ranks*.", [7]),
        ("Run all cells from the top to the one with `ranklab.start`.", [1, 2, 4, 6]),
        ("Run all cells above the heading *Ranks*.", [1, 2, 4]),
        ("Run the cell above, then the next.", [7]),
    ],
)
def test_the_box_is_read(words, places):
    assert needed(chapter(words)) == (places, len(CELLS))


def test_everything_below_the_box_follows():
    sources = [cell.source for cell in late(chapter("Run the first cell.")).cells if cell.cell_type == "code"]
    assert sources == ["table = 1", "here = 4", "on = 5"]


@pytest.mark.parametrize("words", ["Good luck.", "Run the cells of *Nowhere*.", "Run the cell that makes `nothing`."])
def test_a_box_that_names_no_cell_is_refused(words):
    with pytest.raises(BookError, match="box names"):
        needed(chapter(words))
