import base64

import pytest

from bookkit import png
from bookkit.errors import BookError
from bookkit.normalise import comparable, normalise
from bookkit.notebook import to_bytes


def twice(notebook):
    once = normalise(notebook)
    assert to_bytes(normalise(once)) == to_bytes(once)
    return once


def test_a_clean_notebook_stays_as_it_is(make):
    assert to_bytes(twice(make.clean())) == to_bytes(make.clean())


def test_the_argument_is_left_alone(make):
    notebook = make.clean()
    notebook.metadata.vscode = {"hash": "x"}
    normalise(notebook)
    assert "vscode" in notebook.metadata


def test_counts_run_from_one(make):
    notebook = make.clean()
    for cell in notebook.cells[1:]:
        cell.execution_count += 40
    assert [cell.execution_count for cell in twice(notebook).cells[1:]] == [1, 2, 3]


def test_a_cell_that_never_ran_gets_no_count(make):
    notebook = make.clean()
    notebook.cells[2].execution_count = None
    assert [cell.execution_count for cell in twice(notebook).cells[1:]] == [1, None, 3]


def test_a_result_carries_the_count_of_its_cell(make):
    notebook = make.clean()
    result = make.from_dict(
        {"output_type": "execute_result", "data": {"text/plain": "1"}, "metadata": {}, "execution_count": 9}
    )
    notebook.cells[1].outputs = [result]
    assert twice(notebook).cells[1].outputs[0].execution_count == 1


def test_metadata_of_strangers_are_removed(make):
    notebook = make.clean()
    notebook.metadata |= {"vscode": {"hash": "x"}, "widgets": {}, "mystnb": {"execution_timeout": 200}}
    notebook.metadata.kernelspec = {"name": "my-env", "display_name": "my env"}
    notebook.cells[1].metadata |= {"execution": {"shell.execute_reply": "now"}, "tags": ["nbval-ignore-output"]}
    result = twice(notebook)
    assert sorted(result.metadata) == ["kernelspec", "language_info"]
    assert result.metadata.kernelspec.name == "python3"
    assert "version" not in result.metadata.language_info
    assert result.cells[1].metadata == {"tags": ["nbval-ignore-output"]}


def test_a_hidden_cell_is_folded_everywhere_and_its_first_comment_is_its_title(make):
    notebook = make.clean()
    notebook.cells[1].metadata |= {"tags": ["hide-input"], "mystnb": {"image": {"alt": "A bar."}}}
    notebook.cells[1].source = "%%px\n# What this page checks\nassert True"
    result = twice(notebook)
    title = "What this page checks"
    assert result.cells[1].metadata.jupyter == {"source_hidden": True}
    options = {"image": {"alt": "A bar."}, "code_prompt_show": title, "code_prompt_hide": title}
    assert result.cells[1].metadata.mystnb == options
    notebook.cells[1].source = "assert True"
    assert twice(notebook).cells[1].metadata.mystnb == {"image": {"alt": "A bar."}}


def test_a_solution_is_folded_in_jupyterlab_and_what_stands_around_it_is_not(make):
    start, end = make.text("````{solution-start} one\n````"), make.text("````{solution-end}\n````")
    code = [make.code(str(number)) for number in range(1, 5)]
    cells = [code[0], start, code[1], make.text("So."), code[2], end, code[3]]
    done = twice(make.notebook(cells=cells)).cells
    folded = [cell.source for cell in done if cell.metadata.get("jupyter", {}).get("source_hidden")]
    assert folded == ["2", "3"]


def test_a_cell_that_is_shown_again_is_not_folded(make):
    notebook = make.clean()
    notebook.cells[1].metadata |= {"jupyter": {"source_hidden": True}, "mystnb": {"code_prompt_show": "A title"}}
    assert twice(notebook).cells[1].metadata == {}


def test_metadata_of_outputs_keep_only_what_is_ours(make):
    notebook = make.clean()
    output = make.display(plain="x")
    output.metadata = {"engine_uuid": "u", "completed": "now", "ranklab": {"stderr": True}}
    notebook.cells[1].outputs = [output]
    assert twice(notebook).cells[1].outputs[0].metadata == {"ranklab": {"stderr": True}}


def test_streams_are_joined_where_they_touch(make):
    notebook = make.clean()
    between = make.display(plain="x")
    notebook.cells[1].outputs = [make.stream("a"), make.stream("b\n"), between, make.stream("c")]
    texts = [output.get("text") for output in twice(notebook).cells[1].outputs]
    assert texts == ["ab\n", None, "c"]


def test_text_is_kept_to_the_letter(make):
    notebook = make.clean()
    notebook.cells[1].outputs = [make.stream("trailing  \n\n\ttab\r\n")]
    assert twice(notebook).cells[1].outputs[0].text == "trailing  \n\n\ttab\r\n"


def test_live_widgets_and_display_ids_are_not_stored(make):
    notebook = make.clean()
    widget = make.display(plain="bar")
    widget.data["application/vnd.jupyter.widget-view+json"] = {"model_id": "x"}
    shown = make.display(plain="shown")
    shown.transient = {"display_id": "x"}
    notebook.cells[1].outputs = [widget, shown]
    assert twice(notebook).cells[1].outputs == [make.display(plain="shown")]


def test_pictures_lose_their_texts_and_keep_their_pixels(make):
    notebook = make.clean()
    image = make.png(text=b"matplotlib 3.11.2")
    notebook.cells[1].outputs = [make.display(png=base64.encodebytes(image).decode())]
    stored = base64.b64decode(twice(notebook).cells[1].outputs[0].data["image/png"])
    assert stored == make.png()


@pytest.mark.parametrize("broken", [b"GIF89a", b"\x89PNG\r\n\x1a\n\x00\x00"])
def test_a_broken_picture_is_refused(broken):
    with pytest.raises(ValueError, match="PNG"):
        png.strip(broken)


def test_ids_are_kept_where_valid_and_made_from_content_where_not(make):
    notebook = make.clean()
    notebook.cells[0].id = "mine"
    notebook.cells[1].id = "mine"  # copied in an editor
    notebook.cells[2].id = "not valid!"
    del notebook.cells[3]["id"]
    ids = [cell.id for cell in twice(notebook).cells]
    assert ids[0] == "mine"
    assert len(set(ids)) == 4
    assert ids == [cell.id for cell in normalise(notebook).cells]


def test_cells_of_the_same_source_get_different_ids(make):
    notebook = make.notebook(cells=[make.text("same"), make.text("same")])
    for cell in notebook.cells:
        del cell["id"]
    result = twice(notebook)
    assert result.cells[0].id != result.cells[1].id


def test_what_is_measured_is_not_compared_and_the_rest_is(make):
    first, second = make.clean(), make.clean()
    second.cells[1].outputs = [make.stream("rank 0 took 3.1 ms\n")]
    assert comparable(first) != comparable(second)
    for notebook in (first, second):
        notebook.cells[1].metadata.tags = ["nbval-ignore-output"]
    assert comparable(first) == comparable(second)


def test_an_invalid_notebook_is_refused(make):
    notebook = make.clean()
    notebook.cells[1].outputs = [make.from_dict({"output_type": "stream", "name": 3, "text": ""})]
    with pytest.raises(BookError, match=r"chapter\.ipynb is not valid"):
        normalise(notebook, "chapter.ipynb")


@pytest.mark.parametrize("stored", ["R0lGODlh", "no base64"])
def test_a_broken_picture_is_named_with_its_cell(make, stored):
    notebook = make.clean()
    notebook.cells[2].outputs = [make.display(png=stored)]
    with pytest.raises(BookError, match=r"chapter.ipynb, cell \[2\]: a picture is damaged"):
        normalise(notebook, "chapter.ipynb")
