"""The page of environment variables in a browser: a name, or a line with it, finds its entry."""

import pytest

from tests.variables.catalogue import VARIABLES

NAME = "book/environment-variables.html"
FIELD = "Paste a name, or an export line"
VISIBLE = "section > section > section:not([hidden]) > h3 code"


@pytest.mark.parametrize("name", ["GLOO_SOCKET_IFNAME", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "PYTHONHASHSEED"])
def test_an_export_line_leaves_its_entry_alone(visit, name):
    page = visit(NAME).page
    assert page.locator(VISIBLE).count() == len(VARIABLES)
    page.get_by_label(FIELD).fill(f"export {name}=1")
    assert [code.strip() for code in page.locator(VISIBLE).all_inner_texts()] == [name]
    assert f"1 of {len(VARIABLES)} variables" in page.get_by_role("status").inner_text()


@pytest.mark.parametrize("name", [variable.name for variable in VARIABLES[::25]])
def test_the_search_of_the_site_finds_the_name(visit, name):
    page = visit(f"search.html?q={name}").page
    page.locator('a.rl-hit[href*="environment-variables.html"]').first.wait_for()
