"""A tensor and who holds which part of it, as a figure."""

import pytest

import ranklab
from ranklab.errors import WorldError
from ranklab.palette import rank_color


def blocks(axes):
    """The coloured blocks of a drawing of owners: rank's colour, width and height in inches."""
    from matplotlib.colors import to_hex

    drawn = [patch for patch in axes.patches if patch.get_linestyle() == "solid"]
    return [
        (to_hex(patch.get_facecolor()), round(patch.get_width(), 2), round(patch.get_height(), 2)) for patch in drawn
    ]


def numbers(axes):
    return [text.get_text() for text in axes.texts if text.get_text().isdigit()]


def test_owners_draws_each_part_in_its_ranks_colour_with_its_number_and_its_size():
    torch = pytest.importorskip("torch")
    whole = torch.zeros(6, 8)
    columns = [{"A": ((0, 4 * rank), whole.chunk(2, dim=1)[rank])} for rank in range(2)]
    axes = ranklab.owners({"A": whole}, columns, "title").axes[0]
    (left, *size), (right, *other) = blocks(axes)
    assert (left, right) == (rank_color(0), rank_color(1)) and size == other
    assert size[0] / size[1] == pytest.approx(4 / 6, rel=0.02)
    assert numbers(axes) == ["0", "1"] and axes.get_title("left") == "title"
    assert "A  6×8" in [text.get_text() for text in axes.texts]


def test_owners_draws_copies_behind_one_another_and_leaves_empty_what_nobody_holds():
    torch = pytest.importorskip("torch")
    copies = ranklab.owners({"A": (4, 4)}, [{"A": (0, torch.zeros(4, 4))}] * 3).axes[0]
    assert sorted(blocks(copies)) == sorted((rank_color(rank), 1.25, 1.25) for rank in range(3))
    assert len({(patch.get_x(), patch.get_y()) for patch in copies.patches}) == 3
    nobody = ranklab.owners({"A": (4, 4)}, [{}, {"A": None}, {"A": (2, torch.zeros(1, 4))}]).axes[0]
    assert blocks(nobody) == [(rank_color(2), 1.25, 0.31)]


def test_owners_puts_groups_of_copies_on_a_sheet_each():
    """Two groups of two ranks, each group with a cut copy of its own: two sheets, not three."""
    torch = pytest.importorskip("torch")
    held = [{"A": (2 * (rank % 2), torch.zeros(2, 4))} for rank in range(4)]
    axes = ranklab.owners({"A": (4, 4)}, held).axes[0]
    assert sorted(numbers(axes)) == ["0", "1", "2", "3"]
    assert sum(patch.get_linestyle() != "solid" for patch in axes.patches) == 2


def test_owners_takes_indices_vectors_and_dimensions_after_the_second():
    torch = pytest.importorskip("torch")
    strided = ranklab.owners({"samples": (10,)}, [{"samples": range(rank, 10, 4)} for rank in range(4)]).axes[0]
    assert numbers(strided) == ["0", "1", "2", "3", "0", "1", "2", "3", "0", "1"]
    heads = [{"heads": ((0, rank, 0), torch.zeros(4, 1, 3))} for rank in range(2)]
    assert numbers(ranklab.owners({"heads": (4, 2, 3)}, heads).axes[0]) == ["0", "1"]


def test_owners_draws_a_picture_a_caption_and_the_same_bytes_twice():
    held = {"rows": [{"A": [0]}, {"A": [1]}], "none": [{}, {}]}
    first, second = (ranklab.owners({"A": (2, 2)}, held) for _ in range(2))
    assert {"rows", "none"} <= {text.get_text() for text in first.axes[0].texts}
    assert first._repr_png_() == second._repr_png_()


@pytest.mark.parametrize("columns", [4096, 24])
def test_the_text_of_owners_stays_on_the_paper(columns):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    torch = pytest.importorskip("torch")
    whole = {"weight": (columns, 2 * columns), "bias": (columns,)}
    held = [{name: (0, torch.empty(shape, device="meta")) for name, shape in whole.items()}] * 4
    figure = ranklab.owners(whole, {"one": held, "two": held}, "title")
    FigureCanvasAgg(figure).draw()
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0 and box.y1 <= figure.bbox.y1, text


@pytest.mark.parametrize("count", [60, 2000])
def test_blocks_too_small_for_a_number_keep_their_colour_and_are_named_below(count):
    dealt = [{"samples": range(rank, count, 4)} for rank in range(4)]
    axes = ranklab.owners({"samples": (count,)}, dealt).axes[0]
    *narrow, _, _, _, _ = (patch for patch in axes.patches if patch.get_linestyle() == "solid")
    assert len(narrow) == count
    assert all(patch.get_linewidth() <= 72 * patch.get_width() / 4 for patch in narrow)
    assert numbers(axes) == ["0", "1", "2", "3"]


def test_a_number_that_is_left_out_of_one_block_is_told_below():
    torch = pytest.importorskip("torch")
    flat = {"A": (0, torch.zeros(5, 1024))}
    assert numbers(ranklab.owners({"A": (10, 1024)}, [flat]).axes[0]) == ["0"]
    many = numbers(ranklab.owners({"A": (64, 8)}, [{"A": [rank]} for rank in range(64)]).axes[0])
    assert many == [str(rank) for rank in range(64)]


def test_tensors_without_room_beside_each_other_stand_in_rows():
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    shapes = {"layers.0.weight": (1024, 1024), "layers.0.bias": (1024,), "head.weight": (10, 1024), "head.bias": (10,)}
    figure = ranklab.owners(shapes, {caption: [{name: [0] for name in shapes}] for caption in ("a", "b")})
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    drawn = [*axes.patches, *(text for text in axes.texts if text.get_text())]
    for one in drawn:
        box = one.get_window_extent()
        assert box.x0 >= 0 and box.x1 <= figure.bbox.x1 and box.y0 >= 0 and box.y1 <= figure.bbox.y1, one
    texts = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert not any(one.overlaps(other) for one in texts for other in texts if one is not other)
    assert [text.get_text() for text in axes.texts].count("head.bias  10") == 2


@pytest.mark.parametrize("whole", [{"name" * 20: (2, 2)}, {"A": (64, 64)}])
def test_what_no_row_has_room_for_is_refused(whole):
    held = [{name: [0] for name in whole}] * 40
    with pytest.raises(WorldError, match="owners\\(\\) has no room for"):
        ranklab.owners(whole, held)


def test_two_pictures_without_room_beside_each_other_stand_below_each_other():
    name = "a name of thirty-five letters and so"
    axes = ranklab.owners({name: (2, 2)}, {"a": [{name: [0]}], "b": [{name: [1]}]}).axes[0]
    assert len({text.get_position()[0] for text in axes.texts if text.get_text() in ("a", "b")}) == 1


@pytest.mark.parametrize("nothing", [({}, [{}]), ({"A": (3,)}, []), ({"A": (3,)}, {}), ({"A": (3,)}, {"a": []})])
def test_owners_refuses_to_draw_nothing(nothing):
    with pytest.raises(WorldError, match="at least one tensor and one rank"):
        ranklab.owners(*nothing)


@pytest.mark.parametrize("whole", [12, None, ("a", 2)])
def test_owners_refuses_what_is_no_tensor(whole):
    with pytest.raises(WorldError, match="'A' is neither a tensor nor a shape"):
        ranklab.owners({"A": whole}, [{"A": [0]}])


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ({"B": [0]}, "a part of 'B', which is not among"),
        ({"A": [7]}, "'A' of rank 0 has index 7; there are 6 in the first dimension."),
        ({"A": 3}, "neither"),
        ({"A": ("late", (4, 3))}, "neither"),
        ({"A": "01"}, "neither"),
        ({"A": [0, 1.5]}, "neither"),
        ({"A": [True, False]}, "neither"),
    ],
)
def test_owners_refuses_parts_of_nothing(part, sentence):
    with pytest.raises(WorldError, match=sentence):
        ranklab.owners({"A": (6, 8)}, [part])


def of_torch(name):
    """Return a part that is a tensor, and the sentence that refuses it."""
    torch = pytest.importorskip("torch")
    values = torch.arange(8.0) / 8
    return {
        "values": (
            values[:4],
            r"'v' of rank 0 is neither \(offset, tensor\) nor .* before a tensor, .* as in \(4, part\)",
        ),
        "a mask": (values < 0.5, "neither .* of a mask, give the indices where it is True"),
        "an array's mask": ((values < 0.5).numpy(), "neither .* of a mask"),
        "elements of a mask": (list(values < 0.5), "neither"),
        "rows": (torch.zeros(3, 8), "neither .* before a tensor"),
        "rows of one index": (torch.zeros(3, 1, dtype=torch.int64), "neither .* before a tensor"),
        "no numbers": (torch.empty(4, device="meta"), "neither .* before a tensor"),
        "a word before it": (("late", values[:4]), "the offset of 'v' of rank 0 is 'late'; give a whole number"),
        "half a place": ((0.5, values[:4]), "the offset of 'v' of rank 0 is 0.5"),
        "half a place in a tuple": (((0.5,), values[:4]), "the offset .* or a tuple with one a dimension"),
        "no place": ((None, values[:4]), "the offset .* is None"),
        "a mask's place": ((True, values[:4]), "the offset .* is True"),
    }[name]


PARTS = ["values", "a mask", "an array's mask", "elements of a mask", "rows", "rows of one index", "no numbers"]


@pytest.mark.parametrize(
    "name", [*PARTS, "a word before it", "half a place", "half a place in a tuple", "no place", "a mask's place"]
)
def test_owners_refuses_a_tensor_without_its_offset_and_what_is_no_place(name):
    """int() would make indices of values and of a mask, and owners would draw them."""
    part, sentence = of_torch(name)
    with pytest.raises(WorldError, match=sentence):
        ranklab.owners({"v": (8,)}, [{"v": part}])


def test_owners_takes_places_as_torch_and_numpy_have_them():
    torch = pytest.importorskip("torch")
    indices = torch.tensor([0, 2])
    part = torch.zeros(2)
    for places in (indices, indices.numpy(), list(indices), list(indices.numpy()), (0, 2)):
        assert numbers(ranklab.owners({"v": (3,)}, [{"v": places}, {"v": [1]}]).axes[0]) == ["0", "1", "0"]
    for offset in (indices[1], indices.numpy()[1], indices[1:], (indices[1],), [2]):
        (block,) = blocks(ranklab.owners({"v": (4,)}, [{"v": (offset, part)}]).axes[0])
        assert block[0] == rank_color(0)


def test_owners_says_where_it_needs_a_mapping():
    torch = pytest.importorskip("torch")
    whole = torch.zeros(6, 8)
    with pytest.raises(WorldError, match="a name for each tensor"):
        ranklab.owners(whole, [{"A": (0, whole[:3])}])
    for held in (
        {"A": (0, whole[:3])},
        {0: {"A": (0, whole[:3])}, 1: {"A": (3, whole[3:])}},
        [(0, whole[:3])],
        [None, {}],
        whole,
        3,
        "A",
    ):
        with pytest.raises(WorldError, match="a list with one mapping a rank"):
            ranklab.owners({"A": whole}, held)


def test_a_caption_may_be_a_number():
    axes = ranklab.owners({"A": (4,)}, {3: [{"A": [0]}], 7: [{"A": [1]}]}).axes[0]
    assert {"3", "7"} <= {text.get_text() for text in axes.texts}


@pytest.mark.parametrize("offset", [4, (0, 6), (-1, 0), (0, 0, 0)])
def test_owners_refuses_a_part_outside_its_tensor(offset):
    torch = pytest.importorskip("torch")
    with pytest.raises(WorldError, match="outside"):
        ranklab.owners({"A": (6, 8)}, [{"A": (offset, torch.zeros(3, 4))}])
    with pytest.raises(WorldError, match="an element to own"):
        ranklab.owners({"A": (0, 3)}, [{}])
