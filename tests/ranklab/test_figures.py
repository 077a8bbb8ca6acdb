"""Figures: drawn from data, the same bytes for the same data, refused where the data make no sense."""

import pytest

import ranklab
from ranklab.errors import WorldError
from ranklab.figures import charts, launches
from ranklab.palette import rank_color

EVENTS = [[("a", 10.0, 10.5)], [("b", 10.1, 10.4), ("c", 10.4, 10.6)]]


def test_a_timeline_has_a_lane_a_rank_in_its_colour_and_starts_at_zero():
    from matplotlib.colors import to_hex

    axes = ranklab.timeline(EVENTS, "title").axes[0]
    bars = [(patch.get_x(), patch.get_width(), to_hex(patch.get_facecolor())) for patch in axes.patches]
    assert bars[0] == (0, pytest.approx(500), rank_color(0))
    assert [color for *_, color in bars] == [rank_color(0), rank_color(1), rank_color(1)]
    assert axes.get_xlabel() == "time in ms"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["rank 0", "rank 1"]


def test_long_timelines_are_in_seconds():
    assert ranklab.timeline([[("a", 0, 5)]]).axes[0].get_xlabel() == "time in s"


@pytest.mark.parametrize("events", [[], [[]], [[("a", 2.0, 1.0)]], [[("a", 1.0, 1.0)]]])
def test_a_timeline_of_nonsense_is_refused(events):
    with pytest.raises(WorldError):
        ranklab.timeline(events)


@pytest.mark.parametrize("starts", [{}, {"a": []}, {"a": [[("x", 0.0, 0.0)]]}, {"a": [[("x", 2.0, 1.0)]]}])
def test_launches_of_nothing_are_refused(starts):
    with pytest.raises(WorldError):
        launches(starts)


def test_a_timeline_leaves_out_a_label_that_its_event_has_no_room_for():
    lanes = [[("forward", 0, 0.001), ("backward", 0.001, 0.002), ("sum", 0.002, 0.2)], [("forward", 0, 0.1)]]
    assert [text.get_text() for text in ranklab.timeline(lanes).axes[0].texts] == ["sum", "forward"]


@pytest.mark.parametrize("titles", [[], ["a", "b", "c"]])
def test_charts_that_leave_a_place_empty_are_refused(titles):
    with pytest.raises(WorldError, match="titles for rows of 2"):
        charts(titles, "x", "y")


def test_a_label_may_be_a_number():
    """Of a step or a micro-batch."""
    lanes = [[(0, 0.0, 1.0), (1, 1.0, 2.0)]]
    assert [text.get_text() for text in ranklab.timeline(lanes).axes[0].texts] == ["0", "1"]
    assert [text.get_text().strip() for text in launches({"one": lanes}).axes[0].texts] == ["one", "0", "1"]


def test_charts_share_their_axes():
    figure, places = charts(["a", "b", "c"], "x", "y", columns=3)
    assert places == figure.axes and [axes.get_title("left") for axes in places] == ["a", "b", "c"]
    assert places[0].get_shared_x_axes().joined(places[0], places[2])


@pytest.mark.parametrize(
    ("environments", "sentence"),
    [
        ([], "at least one rank"),
        ([{"RANK": 0}], "misses LOCAL_RANK and GROUP_RANK in the environment with index 0"),
        ([{"RANK": "one", "LOCAL_RANK": "0", "GROUP_RANK": "0"}], "whole numbers; .* index 0 has RANK=one"),
    ],
)
def test_a_node_map_says_what_it_misses(environments, sentence):
    with pytest.raises(WorldError, match=sentence):
        ranklab.node_map(environments)


def test_a_node_map_reads_text_and_numbers_and_nothing_else():
    environments = [
        {"RANK": "0", "LOCAL_RANK": "0", "GROUP_RANK": "0", "MASTER_ADDR": "127.0.0.1"},
        {"RANK": 1, "LOCAL_RANK": 0, "GROUP_RANK": 1},
    ]
    texts = {text.get_text() for text in ranklab.node_map(environments).axes[0].texts}
    assert texts == {"node 0", "node 1", "rank 0", "rank 1", "local 0"}


def test_a_node_map_has_a_third_line_and_outlines_what_is_marked():
    environments = [{"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0} for rank in range(2)]
    axes = ranklab.node_map(environments, notes=["guess 0", "guess 7"], marked=[1]).axes[0]
    assert [text.get_text() for text in axes.texts][-3:] == ["rank 1", "local 1", "guess 7"]
    _, first, second = axes.patches
    assert first.get_edgecolor()[3] == 0 and second.get_edgecolor()[3] == 1
    with pytest.raises(WorldError, match="2 ranks and 1 notes"):
        ranklab.node_map(environments, notes=["guess 0"])


@pytest.mark.parametrize("nodes", [[2, 1], [3, 3], [8, 8]])
def test_the_text_of_a_node_map_fits_its_tiles(nodes):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from ranklab.layout import places

    environments = [
        {"RANK": place.rank, "LOCAL_RANK": place.local_rank, "GROUP_RANK": place.node_rank} for place in places(nodes)
    ]
    figure = ranklab.node_map(environments, notes=["guess 0"] * sum(nodes))
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    tiles = [patch.get_window_extent() for patch in axes.patches[len(nodes) :]]
    texts = [text.get_window_extent() for text in axes.texts[len(nodes) :]]
    for number, text in enumerate(texts):
        tile = tiles[number // 3]
        assert tile.x0 < text.x0 and text.x1 < tile.x1
        assert tile.y0 < text.y0 and text.y1 < tile.y1


def tiles_of(environments):
    """Return the box of each node, and of each rank its text and where its tile lies, in the order of the ranks."""
    axes = ranklab.node_map(environments).axes[0]
    count = len({environment["GROUP_RANK"] for environment in environments})
    spans = [(round(patch.get_x(), 6), round(patch.get_x() + patch.get_width(), 6)) for patch in axes.patches]
    names = [text.get_text() for text in axes.texts if text.get_text().startswith(("rank", "local"))]
    return spans[:count], list(zip(names[::2], names[1::2], spans[count:], strict=True))


def test_the_tiles_of_a_part_of_the_ranks_stay_on_their_nodes():
    environments = [{"RANK": rank, "LOCAL_RANK": rank % 4, "GROUP_RANK": rank // 4} for rank in range(8)]
    (left, right), tiles = tiles_of(environments[2:6])
    assert [tile[:2] for tile in tiles] == [
        ("rank 2", "local 2"),
        ("rank 3", "local 3"),
        ("rank 4", "local 0"),
        ("rank 5", "local 1"),
    ]
    starts, ends = zip(*(span for *_, span in tiles), strict=True)
    assert left[0] < starts[0] < ends[0] < starts[1] < ends[1] < left[1]
    assert right[0] < starts[2] < ends[2] < starts[3] < ends[3] < right[1]


def test_the_tiles_of_all_ranks_lie_at_their_local_ranks():
    environments = [{"RANK": rank, "LOCAL_RANK": local, "GROUP_RANK": 0} for rank, local in enumerate([2, 0, 1])]
    _, tiles = tiles_of(environments)
    assert [span[0] for *_, span in tiles] == [2.15, 0.15, 1.15]


def test_a_palette_keeps_the_colours_of_the_ranks_and_makes_a_figure_small():
    import io

    from matplotlib.colors import to_hex
    from PIL import Image

    png = ranklab.timeline([[("", 0.0, 1.0)] for _ in range(8)])._repr_png_()
    drawn = Image.open(io.BytesIO(png)).convert("RGB")
    colours = {to_hex([part / 255 for part in colour]) for _, colour in drawn.getcolors(1 << 20)}
    assert {rank_color(rank) for rank in range(8)} <= colours
    assert len(png) < 30_000


def test_the_same_data_gives_the_same_png():
    png = ranklab.timeline(EVENTS)._repr_png_()
    assert png == ranklab.timeline(EVENTS)._repr_png_()
    assert png.startswith(b"\x89PNG") and b"Software" not in png


def test_launches_are_drawn_below_one_another_and_a_label_without_room_is_left_out():
    lane = [("launcher", 0.0, 2.0), ("import", 2.0, 3.9), ("sum", 3.9, 4.0)]
    axes = launches({"one": [lane, lane], "two": [lane]}, "A title").axes[0]
    texts = [text.get_text().strip() for text in axes.texts]
    assert texts == ["one", "launcher", "import", "launcher", "import", "two", "launcher", "import"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["rank 0", "rank 1", "rank 0"]
    assert axes.get_xlabel() == "time since the command in s" and axes.get_xlim() == (0, 4.0)
