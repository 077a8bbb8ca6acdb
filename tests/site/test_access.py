"""The pages for those who listen, or use no mouse: axe-core's rules where it is found, and those that we once broke.

axe-core is a tool for development and no part of the book. `npm pack axe-core` and `AXE=path/to/axe.min.js` run it.
"""

import os
from pathlib import Path

import pytest

from bookkit.chapters import pages

ROOT = Path(__file__).parents[2]
PAGES = [str(page.relative_to(ROOT).with_suffix(".html")) for page in pages(ROOT)]
AXE = Path(os.environ.get("AXE", ROOT / "_build" / "axe" / "package" / "axe.min.js"))
# Text that lies in no landmark, names that lack the visible words, buttons in buttons, headings of nothing.
BROKEN = """() => {
  const landmark = "main, nav, aside, footer, header:not([role=none]), dialog, button, [role=banner], [role=search], [role=region], .skip-link";
  const words = element => (element.innerText || "").trim().toLowerCase();
  const within = node => node.nodeType === Node.ELEMENT_NODE && node.matches(landmark + ", script, style, noscript");
  const outside = node => within(node) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT; // with all that it holds
  const found = [], all = NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT;
  const walker = document.createTreeWalker(document.body, all, outside);
  while (walker.nextNode()) {
    const { nodeType, data, parentElement } = walker.currentNode;
    if (nodeType === Node.TEXT_NODE && data.trim() && parentElement.checkVisibility())
      found.push("in no landmark: " + data.trim());
  }
  for (const named of document.querySelectorAll("button[aria-label], a[aria-label], summary[aria-label]"))
    if (words(named) && !named.ariaLabel.toLowerCase().includes(words(named)))
      found.push("its name hides its words: " + named.outerHTML.slice(0, 120));
  for (const nested of document.querySelectorAll("summary a, summary button, a button, button a"))
    found.push("one control in another: " + nested.outerHTML.slice(0, 120));
  for (const head of document.querySelectorAll("th")) if (!head.textContent.trim()) found.push("an empty heading of a table");
  for (const control of document.querySelectorAll("button, input:not([type=hidden]), a[href], summary"))
    if (control.checkVisibility() && !(words(control) || control.ariaLabel || control.title || control.labels?.length
        || control.querySelector("img[alt]:not([alt='']), svg title")))
      found.push("without a name: " + control.outerHTML.slice(0, 120));
  return found;
}"""  # noqa: E501


@pytest.mark.parametrize("name", [*PAGES, "search.html", "genindex.html"])
def test_what_can_be_pressed_has_a_name_and_every_text_a_landmark(look, name):
    assert look(name).page.evaluate(BROKEN) == []


def test_this_notices_what_is_wrong(visit):
    page = visit(PAGES[0]).page
    assert page.evaluate(BROKEN) == []
    page.evaluate("""() => document.body.insertAdjacentHTML("beforeend",
        "<div>loose <b>words</b></div><button></button><nav>fine</nav><nav><table><th></th></table></nav>")""")
    found = page.evaluate(BROKEN)
    assert [said.split(":")[0] for said in found] == [
        *["in no landmark"] * 2,
        "an empty heading of a table",
        "without a name",
    ]


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not here: its rules are not run")
@pytest.mark.parametrize("name", [*PAGES, "search.html", "genindex.html"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(look, name, theme):
    page = look(name, theme=theme).page
    if not page.evaluate("() => Boolean(window.axe)"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    # axe fetches the style sheets again, which a page from a disk may not.
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'], preload: false })")
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found["violations"]] == []
