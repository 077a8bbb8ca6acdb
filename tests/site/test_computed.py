"""Computed figures say what the chapters' own Python says: 200 random inputs each, in a real browser."""

import ast
import json
import math
import random
from pathlib import Path

import pytest
import torch

from ranklab.layout import places
from ranklab.palette import RANK_COLORS, label_color

BOOK = Path(__file__).parents[2] / "book"
FILES = ["kit", "zero", "places", "cost", "mesh"]


@pytest.fixture(scope="module")
def page(chromium, tmp_path_factory):
    """A page without text that has loaded the scripts."""
    scripts = [(BOOK / "_static" / "figures" / f"{name}.js").as_uri() for name in FILES]
    file = tmp_path_factory.mktemp("computed") / "page.html"
    file.write_text("<!doctype html>" + "".join(f'<script src="{script}"></script>' for script in scripts))
    context = chromium.new_context()
    context.set_default_timeout(120_000)  # of a machine that is busy with other things
    page = context.new_page()
    page.goto(file.as_uri())
    yield page
    context.close()


def function(chapter, name, **known):
    """A function as a chapter defines it; the first where a chapter defines it twice."""
    for cell in json.loads((BOOK / chapter).read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "code" and not text.startswith("%%") and f"def {name}(" in text:
            tree = ast.parse(text)
            tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
            exec(compile(tree, chapter, "exec"), known)
            return known[name]
    raise AssertionError(f"{chapter} has no {name}")


def told(page, name, inputs):
    """What the figure's own function says to each of the inputs."""
    return page.evaluate("([name, all]) => all.map((each) => rankFigures.computes[name](...each))", [name, inputs])


def test_zero_is_computed_as_the_chapter_computes_it(page):
    formula, chance = function("model-parallel/sharded.ipynb", "formula"), random.Random(0)
    inputs = [
        [chance.uniform(1, 8), chance.uniform(1, 8), chance.uniform(1, 16), chance.randint(1, 4096)] for _ in range(200)
    ]
    for found, given in zip(told(page, "zero", inputs), inputs, strict=True):
        assert found == pytest.approx(list(formula(*given)))


@pytest.mark.parametrize(("name", "theirs"), [("ring", "ring_seconds"), ("tree", "tree_seconds")])
def test_costs_are_computed_as_the_chapter_computes_them(page, name, theirs):
    numpy = pytest.importorskip("numpy")
    seconds, chance = function("talking/cost-of-talking.ipynb", theirs, np=numpy), random.Random(0)
    inputs = [
        [
            chance.randint(2, 512),
            10 ** chance.uniform(0, 10),
            10 ** chance.uniform(-7, -2),
            10 ** chance.uniform(-12, -6),
        ]
        for _ in range(200)
    ]
    for found, given in zip(told(page, name, inputs), inputs, strict=True):
        assert found == pytest.approx(float(seconds(*given)))


def test_the_six_numbers_are_those_of_ranklab(page):
    chance = random.Random(0)
    inputs = [[[chance.randint(1, 8) for _ in range(chance.randint(1, 6))]] for _ in range(200)]
    for found, (nodes,) in zip(told(page, "places", inputs), inputs, strict=True):
        environments = [place.environment("localhost", 1) for place in places(nodes)]
        assert [{name: str(value) for name, value in each.items()} for each in found] == [
            {name: environment[name] for name in found[0]} for environment in environments
        ]


def test_groups_of_a_mesh_are_the_rows_of_torchs_table(page):
    chance = random.Random(0)
    shapes = [[chance.randint(1, 6) for _ in range(chance.randint(1, 3))] for _ in range(200)]
    inputs = [[shape, chance.randrange(math.prod(shape))] for shape in shapes]
    for found, (shape, rank) in zip(told(page, "mesh", inputs), inputs, strict=True):
        table = torch.arange(math.prod(shape)).view(shape)  # as init_device_mesh fills it
        place = (table == rank).nonzero()[0].tolist()
        groups = [
            table.movedim(dim, -1)[tuple(at for d, at in enumerate(place) if d != dim)] for dim in range(len(shape))
        ]
        assert found == {"place": place, "groups": [group.tolist() for group in groups]}


def test_ranks_have_the_colours_of_the_palette(page):
    inks = page.evaluate("ranks => ranks.map(rankFigures.ink)", list(range(len(RANK_COLORS))))
    assert inks == [label_color(rank) for rank in range(len(RANK_COLORS))]
