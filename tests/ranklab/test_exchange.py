"""What a collective moved, drawn from the tensors before and after."""

import pytest

from ranklab.errors import WorldError
from ranklab.figures import exchange
from ranklab.palette import rank_color


def cells_of(figure):
    """Return the text and the fill of every cell of an exchange, in drawing order."""
    from matplotlib.colors import to_hex

    axes = figure.axes[0]
    centres = {(text.get_position()[0], text.get_position()[1]): text.get_text() for text in axes.texts}
    return [
        (centres[(patch.get_x() + 0.46, patch.get_y() + 0.46)], to_hex(patch.get_facecolor())) for patch in axes.patches
    ]


def test_an_exchange_colours_a_number_by_who_held_it_and_leaves_what_was_computed():
    from ranklab.palette import PAPER

    figure = exchange([[0, 1], [10, 11]], [[10, 12], None], "title")
    blue, orange = rank_color(0), rank_color(1)
    assert cells_of(figure) == [
        ("0", blue),
        ("1", blue),
        ("10", orange),
        ("12", PAPER),
        ("10", orange),
        ("11", orange),
    ]
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts.count("–") == 1 and {"rank 0", "rank 1", "before", "after"} <= set(texts)


def test_an_exchange_gives_no_colour_to_a_number_that_several_ranks_held():
    from ranklab.palette import PAPER

    assert {fill for _, fill in cells_of(exchange([7, 7], [7, 7]))} == {PAPER}


def test_an_exchange_reads_tensors_lists_of_tensors_and_numbers():
    import torch

    figure = exchange([torch.tensor([[1], [2]]), 3], [[torch.tensor([2.5]), torch.tensor([3.0])], torch.empty(0)])
    assert [text for text, _ in cells_of(figure)] == ["1", "2", "2.5", "3", "3"]


@pytest.mark.parametrize("size", range(2, 9))
def test_the_numbers_of_an_exchange_fit_their_cells(size):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    rows = [[10 * rank + place for place in range(size)] for rank in range(size)]
    figure = exchange(rows, [*zip(*rows, strict=True)])
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    texts = [text.get_window_extent() for text in axes.texts if text.get_text().isdigit()]
    assert len(texts) == 2 * size * size
    boxes = [patch.get_window_extent() for patch in axes.patches]
    for text, box in zip(texts, boxes, strict=True):
        assert box.x0 < text.x0 and text.x1 < box.x1
        assert box.y0 < text.y0 and text.y1 < box.y1
    assert min(text.get_fontsize() for text in axes.texts) >= 10


@pytest.mark.parametrize("number", [1234, 1_000_000, -0.333333])
def test_long_numbers_fit_their_cells_too(number):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = exchange([[number, 2, 3], [4, 5, 6]], [[number, 7, 9]] * 2)
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    boxes = [patch.get_window_extent() for patch in axes.patches]
    texts = [text.get_window_extent() for text in axes.texts if text.get_text().lstrip("-")[0].isdigit()]
    for text, box in zip(texts, boxes, strict=True):
        assert box.x0 < text.x0 and text.x1 < box.x1


def test_a_number_that_no_cell_has_room_for_is_refused():
    with pytest.raises(WorldError, match="no room for 123456789012 in a cell: round"):
        exchange([123_456_789_012, 2], [1, 2])


def test_an_exchange_shows_several_results_beside_each_other_and_keeps_the_colours_of_the_ranks():
    import io

    from matplotlib.colors import to_hex
    from PIL import Image

    figure = exchange(range(8), {"broadcast": [3] * 8, "reduced": [28, *[None] * 7]})
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert {"before", "broadcast", "reduced"} <= set(texts) and texts.count("3") == 9
    drawn = Image.open(io.BytesIO(figure._repr_png_())).convert("RGB")
    colours = {to_hex([part / 255 for part in colour]) for _, colour in drawn.getcolors(1 << 20)}
    assert {rank_color(rank) for rank in range(8)} <= colours


def test_an_exchange_takes_one_tensor_with_a_row_a_rank():
    import torch

    figure = exchange(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[5, 6], [7, 8]]))
    assert [text for text, _ in cells_of(figure)] == ["1", "2", "5", "6", "3", "4", "7", "8"]
    with pytest.raises(WorldError, match="0 ranks before"):
        exchange(torch.ones(0, 3), torch.ones(2, 3))


@pytest.mark.parametrize(
    ("before", "after"), [([], []), ([1], [1, 2]), ([[0] * 19], [0]), ([1, 2], {"a": [1, 2], "b": [1]})]
)
def test_an_exchange_of_nonsense_is_refused(before, after):
    with pytest.raises(WorldError):
        exchange(before, after)
