"""What the theme leaves to be mended on every page: names for readers who listen, folds and colours without scripts."""

from bs4 import BeautifulSoup

# Before anything is drawn, so that a page does not flash. Without scripts a page has the light theme.
THEME = """(() => {
  const page = document.documentElement.dataset;
  page.mode = "auto";
  try { page.mode = localStorage.getItem("mode") || "auto"; } catch {}
  const dark = page.mode === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : page.mode === "dark";
  page.theme = dark ? "dark" : "light";
})();"""
DESCRIBED = 160  # letters; a list of pages shows no more
WITHOUT_SCRIPTS = """<noscript><p>Search needs scripts. Without them, the <a href="book/glossary.html">glossary</a> says
what a word means, and the contents beside this text lead to the chapters.</p></noscript>"""


def mend(page):
    """Change the elements of one page."""
    _theme(page.soup)
    _described(page.soup)
    _names(page.soup)
    _facts(page.soup)
    _folds(page.soup)
    _search(page.soup)


def _theme(soup):
    soup.html["data-theme"] = "light"
    for script in soup.select("script[data-cfasync]"):
        script.string = THEME


def _described(soup):
    """A page's first sentences, for those who find it in a list of pages."""
    first = soup.select_one("article h1 ~ p")
    if first and not soup.select_one("meta[name=description]"):
        words = " ".join(first.get_text().split())
        told = words if len(words) <= DESCRIBED else f"{words[:DESCRIBED].rsplit(' ', 1)[0]} …"
        soup.head.append(soup.new_tag("meta", attrs={"name": "description", "content": told}))


def _names(soup):
    """What axe-core objects to: names that are missing or hide the visible words, a logo outside all landmarks, …"""
    for element in soup.select("button.search-button-field[aria-label], details > summary[aria-label]"):
        del element["aria-label"]  # its words are its name
    for entry in soup.select("li.has-children:has(> a) > details > summary"):
        entry["aria-label"] = f"Pages of {entry.find_parent('li').a.get_text(strip=True)}"  # it shows an arrow alone
    for button in soup.select("button.sidebar-toggle[title]"):
        button["aria-label"] = button["title"]
    for button in soup.select("button.sidebar-toggle, button.dropdown-toggle"):
        button["class"] = [*button["class"], "pst-js-only"]  # without a script they would do nothing
    for hinted in soup.select("[data-bs-toggle=tooltip]"):  # the browser's own hint needs no script
        hinted["title"] = hinted.get("title") or hinted.get("data-bs-title", "")
        for name in [name for name in hinted.attrs if name.startswith("data-bs-")]:
            del hinted[name]
    for header in soup.select("header#pst-header"):
        header["role"] = "none"  # it is empty; the logo is the banner
    for logo in soup.select("a.navbar-brand"):
        logo.parent["role"] = "banner"
        for picture in logo.select("img"):
            picture["width"] = picture["height"] = 34  # its room is kept before it comes
    for heading in soup.select("table th"):
        if not heading.get_text(strip=True) and not heading.find(["img", "svg"]):
            heading.name = "td"
    for parameters in soup.select("dt.sig dl"):  # one a line, and no list of terms
        parameters.name, parameters["class"] = "div", "rl-parameters"
        for parameter in parameters.select("dd"):
            parameter.name = "div"
    for hint in soup.select("i.fa-magnifying-glass, .article-header-buttons i, .prev-next-area i"):
        hint["aria-hidden"] = "true"
    seen = soup.select("meta[name=viewport]")
    for again in seen[1:]:
        again.decompose()
    for contents in soup.select("#jb-print-docs-body"):
        contents.decompose()  # on paper the text comes first, not a list of its headings


def _facts(soup):
    """The table of minutes, ranks and needs as slim lines: a chapter opens with its first sentences."""
    for table in soup.select("article section > h1 ~ .pst-scrollable-table-container > table, h1 ~ table"):
        heads, rows = table.select("thead th"), table.select("tbody tr")
        if not heads or heads[0].get_text(strip=True) != "Time" or len(rows) != 1:
            continue
        facts = soup.new_tag("dl", attrs={"class": "rl-facts simple"})
        for head, told in zip(heads, rows[0].find_all("td", recursive=False), strict=True):
            fact, name, words = soup.new_tag("div"), soup.new_tag("dt"), soup.new_tag("dd")
            name.string = head.get_text(strip=True)
            words.extend(list((told.p or told).contents))
            fact.extend([name, words])
            facts.append(fact)
        box = table.parent if "pst-scrollable-table-container" in table.parent.get("class", ()) else table
        how = box.find_next_sibling("p")
        if how and how.get_text().startswith(("To read the page", "To run the page")):
            how["class"] = "rl-how"
        box.replace_with(facts)


def _folds(soup):
    """Solutions, and other boxes that open, as `details`: they are closed without a script, too."""
    for box in soup.select("div.admonition.dropdown"):
        title = box.select_one(":scope > p.admonition-title")
        if title is None:
            continue
        box.name, title.name = "details", "summary"
        for link in title.select("a"):
            link.unwrap()  # to the exercise above it; a click on a title opens the box
        box["class"] = [name for name in box["class"] if name not in ("dropdown", "toggle")]


def _search(soup):
    """The page of the search: a field and a place for what is found, both filled by search.js."""
    place = soup.select_one(".bd-search-container")
    if place is None:
        return
    for element in place.select("noscript, script, #search-results"):
        element.decompose()
    form = place.select_one("form")
    area = soup.new_tag("div", attrs={"id": "rl-search", "role": "search"})
    form.insert_before(area)
    area.append(form.extract())
    area.append(BeautifulSoup(WITHOUT_SCRIPTS, "html.parser"))
