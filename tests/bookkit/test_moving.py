"""What the build makes of recordings: data below the pictures, and scripts on the pages that need them."""

import json

from bookkit.moving import scripts, with_recordings

FIGURE = {
    "output_type": "execute_result",
    "execution_count": 1,
    "data": {"image/png": "", "text/plain": "<Drawing>"},
    "metadata": {"ranklab": {"recording": '{"kind":"backward","title":"</script>"}'}},
}
PLAIN = {"output_type": "stream", "name": "stdout", "text": "hello"}


def test_a_recording_stands_below_its_picture_and_cannot_end_its_script():
    notebook = {"cells": [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": [PLAIN, FIGURE, PLAIN]}]}
    outputs = with_recordings(notebook)["cells"][1]["outputs"]
    assert [outputs[place] for place in (0, 1, 3)] == [PLAIN, FIGURE, PLAIN]
    html = outputs[2]["data"]["text/html"]
    assert html.count("</script>") == 1 and html.endswith("</script>")
    values = html.removesuffix("</script>").partition(">")[2]
    assert json.loads(values) == {"kind": "backward", "title": "</script>"}
    assert scripts(html) == ["figures/kit.js", "figures/film.js", "figures/backward.js"]


def test_a_page_loads_the_scripts_of_its_figures_once_and_one_without_figures_none():
    zero = '<div class="rl-moving" data-figure="zero" data-title="x">'
    assert scripts(zero + zero) == ["figures/kit.js", "figures/zero.js"]
    assert scripts("<p>rl-moving</p>") == []
