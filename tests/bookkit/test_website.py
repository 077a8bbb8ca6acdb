"""What the built pages get: an index to search, folds, one style sheet of many, pages in order."""

from bs4 import BeautifulSoup
from PIL import Image

from bookkit.website import bundle, finish, frame, lighter, pages, search, stylesheets

ARTICLE = """<article class="bd-article"><section id="hangs"><h1>Hangs<a class="headerlink" href="#hangs">#</a></h1>
<p>It is two in the morning.</p><nav>Menu</nav>
<section id="one"><h2>One<a class="headerlink" href="#one">#</a></h2><p><em>Core · 8 minutes</em></p><p>A rank <b>waits</b>.</p>
<table><tr><td><p>Time</p></td><td>8</td></tr></table>
<div class="cell"><div class="highlight"><pre>dist.barrier()
</pre></div><details class="hide"><summary>What this page checks</summary><pre>assert True</pre></details></div></section>
<dl class="simple glossary"><dt id="term-bucket">bucket<a class="headerlink" href="#t">#</a></dt><dd><p>Gradients. <span lang="zh">梯度桶</span></p></dd></dl>
</section></article>"""  # noqa: E501


def soup(text):
    return BeautifulSoup(text, "html.parser")


def page(text, address="book/a.html"):
    made = pages.Page(None, address)
    made.soup = soup(text)
    return made


def test_an_index_has_sections_terms_and_code_and_neither_menus_minutes_nor_guards():
    article = soup(ARTICLE).article
    found = search.records(article, 3)
    assert found == [
        [3, "hangs", 1, "Hangs", "It is two in the morning.", ""],
        [3, "one", 2, "One", "A rank waits.\nTime · 8", "dist.barrier()"],
        [3, "term-bucket", 0, "bucket", "Gradients. 梯度桶", ""],
    ]
    assert len(article.select("a.headerlink")) == 3, "the page keeps its marks"


def test_an_index_is_a_script_with_what_was_found():
    text = search.script([["Hangs", "book/a.html", "Part 4"]], [[0, "a", 1, "Hangs", "梯度桶", ""]])
    assert text.startswith("window.rankByRankSearch={")
    assert "梯度桶" in text


def test_rules_that_no_page_can_use_are_left_out():
    css = """@font-face{font-family:"Font Awesome 6 Free";src:url(a.woff2)}
@media print{.used{color:red}.lost{color:red}} @media (x){.lost{a:b}} .used>.lost,.used a:not(.lost){content:"}"}
#kept,.lost{a:url(data:image/svg+xml;utf8,<x/>)} @keyframes k{from{a:b}to{a:b}} :root{--x:1}
.fa-lost:before{content:"x"} .dropdown-menu{a:b}"""
    kept = stylesheets.prune(css, {"used", "kept"}).replace("\n", "")
    assert "Awesome" not in kept
    assert ".used{color:red}" in kept
    assert '.used a:not(.lost){content:"}"}' in kept
    assert "#kept{a:url(data:image/svg+xml;utf8,<x/>)}" in kept
    assert "@keyframes k{from{a:b}to{a:b}}" in kept
    assert ":root{--x:1}" in kept
    assert ".dropdown-menu" in kept
    assert "fa-lost" not in kept
    assert ">.lost" not in kept
    assert "(x)" not in kept


def test_addresses_of_a_style_sheet_hold_from_another_folder(tmp_path):
    (tmp_path / "styles").mkdir()
    (tmp_path / "basic.css").write_text("b{c:url(file.png)} /* gone */")
    (tmp_path / "styles" / "theme.css").write_text('@import "../basic.css";\na{c:url("../images/x.png");d:url(data:x)}')
    text = stylesheets.whole(tmp_path / "styles" / "theme.css", tmp_path)
    assert 'url("images/x.png")' in text
    assert "b{c:url(file.png)}" in text
    assert "url(data:x)" in text
    assert "gone" not in text


def test_files_that_all_pages_share_become_one_and_a_page_keeps_its_own(tmp_path):
    static = tmp_path / "_static"
    static.mkdir()
    (static / "a.css").write_text(".here{a:b} .nowhere{a:b}")
    (static / "late.js").write_text("late()")
    (static / "soon.js").write_text("soon()\n//# sourceMappingURL=soon.js.map")
    (static / "own.js").write_text("own()")
    (static / "searchtools.js").write_text("gone()")
    shared = """<link rel="stylesheet" href="{up}_static/a.css?v=1"/><script defer src="{up}_static/late.js"></script>
<script src="{up}_static/soon.js"></script><script src="{up}_static/searchtools.js"></script>
<script>DOCUMENTATION_OPTIONS.pagename = "x";</script><p class="here">"""
    one = pages.Page(tmp_path / "one.html", "book/a.html")
    one.path.write_text(shared.format(up="../") + '<script src="../_static/own.js"></script>')
    two = pages.Page(tmp_path / "two.html", "search.html")
    two.path.write_text(shared.format(up=""))
    needed = [bundle.needs(each) for each in (one, two)]
    one.write()
    two.write()
    made = bundle.bundle(tmp_path, needed)
    for each, needs in zip((one, two), needed, strict=True):
        bundle.link(each, needs, made)
        del each.soup  # what is read now is what was written
    files = [tag["src"].split("?")[0] for tag in one.soup.select("script")]
    assert files == ["../_static/book.js", "../_static/own.js"]
    assert [tag["src"].split("?")[0] for tag in two.soup.select("script")] == ["_static/book.js"]
    assert [tag["href"].split("?")[0] for tag in two.soup.select("link")] == ["_static/book.css"]
    assert (static / "book.js").read_text().index("soon()") < (static / "book.js").read_text().index("late()")
    assert "sourceMapping" not in (static / "book.js").read_text()
    assert ".nowhere" not in (static / "book.css").read_text()
    assert sorted(path.name for path in static.iterdir()) == ["book.css", "book.js", "own.js"]


def test_what_the_buttons_for_copying_wait_for_comes_last(tmp_path):
    for name in ("clipboard.min.js", "copybutton.js", "own.js"):
        (tmp_path / name).write_text(f"// {name}")
    scripts = [bundle.Loaded(name, False, "") for name in ("clipboard.min.js", "copybutton.js", "own.js")]
    (tmp_path / "_static").mkdir()
    bundle.bundle(tmp_path, [bundle.Needs([], scripts, set())])
    joined = (tmp_path / "_static" / bundle.SCRIPT).read_text()
    assert joined.index("// copybutton") < joined.index("// own") < joined.index("// clipboard")


def test_a_page_has_names_folds_and_a_theme_without_scripts():
    text = """<html data-theme="auto"><head><script data-cfasync="false">old</script></head><body>
<header id="pst-header"></header><div><a class="navbar-brand"><p>Rank by Rank</p></a></div>
<button class="search-button-field" aria-label="Search">Search Ctrl+K</button>
<button data-bs-toggle="tooltip" data-bs-title="Color mode"></button>
<details><summary aria-label="Toggle hidden content">What this page checks</summary></details>
<dl><dt class="sig"><dl><dd>size</dd></dl></dt></dl>
<nav><li class="has-children"><a>Teaching</a><details><summary><i></i></summary></details></li></nav>
<div class="admonition solution dropdown toggle"><p class="admonition-title">Solution to <a href="#x">Exercise 1</a></p><p>x</p></div>
<table><thead><tr><th></th><th>Time</th></tr></thead></table></body></html>"""  # noqa: E501
    mended = page(text)
    frame.mend(mended)
    found = mended.soup
    assert found.html["data-theme"] == "light"
    assert "prefers-color-scheme" in found.script.string
    assert [tag["aria-label"] for tag in found.select("[aria-label]")] == ["Pages of Teaching"]
    assert found.select_one("dt > div.rl-parameters > div").get_text() == "size"
    assert found.select_one("details.solution > summary").get_text() == "Solution to Exercise 1"
    assert found.select("summary a, .dropdown, .toggle") == []
    assert [tag.name for tag in found.tr.find_all(True)] == ["td", "th"]
    assert found.select_one("button[title]").attrs == {"title": "Color mode"}
    assert found.select_one("[role=banner] > a.navbar-brand")


def test_pages_come_in_the_order_of_the_book_with_their_part(tmp_path):
    (tmp_path / "_toc.yml").write_text(
        "root: book/index\nparts:\n- chapters:\n  - file: book/setup\n"
        "- caption: Part 1\n  chapters:\n  - file: book/a/b\n"
    )
    for name in ("index", "search", "book/index", "book/setup", "book/a/b", "_static/macros"):
        path = tmp_path / "html" / f"{name}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("<article class='bd-article'><h1>T<a>#</a></h1></article>")
    found = pages.find(tmp_path / "html", tmp_path)
    assert [(page.address, page.part) for page in found] == [
        ("book/index.html", ""),
        ("book/setup.html", ""),
        ("book/a/b.html", "Part 1"),
        ("search.html", ""),
    ]
    assert found[2].title == "T"
    assert found[2].up("_static/x.css") == "../../_static/x.css"


def test_pages_are_finished_side_by_side_as_in_turn(tmp_path):
    html, store = tmp_path / "html", tmp_path / "kept"
    (html / "_static").mkdir(parents=True)
    (html / "_static" / "a.css").write_text(".one,.two,.lost{a:b}")
    (html / "_static" / "a.js").write_text("a()")
    Image.new("RGB", (40, 20), "#fbfbf9").save(html / "picture.png")
    (tmp_path / "_toc.yml").write_text("root: book/one\nparts:\n- caption: Part 1\n  chapters:\n  - file: book/two\n")
    (html / "book").mkdir()
    for name in ("one", "two"):
        text = f"""<html><head><link rel="stylesheet" href="../_static/a.css"/><script src="../_static/a.js"></script>
</head><body><article class="bd-article"><section id="{name}"><h1>{name.title()}<a class="headerlink">#</a></h1>
<p class="{name}">Words of {name}.</p><img src="../picture.png"/></section></article></body></html>"""
        (html / "book" / f"{name}.html").write_text(text)
    finish.finish(html, tmp_path, store)
    for name in ("one", "two"):
        done = soup((html / "book" / f"{name}.html").read_text())
        assert [tag["src"] for tag in done.select("article img")] == ["../picture.png", "../picture-dark.png"]
        assert done.select_one("link")["href"].startswith("../_static/book.css?v=")
    assert ".one,.two{a:b}" in (html / "_static" / "book.css").read_text()
    found = (html / "_static" / search.NAME).read_text()
    assert '"pages":[["One","book/one.html",""],["Two","book/two.html","Part 1"]]' in found
    assert '[0,"one",1,"One","Words of one.",""],[1,"two",1,"Two","Words of two.",""]' in found
    assert len(list(store.rglob("*"))) == 2, "one folder with one twin, and no half of one"


def test_minutes_ranks_and_needs_become_slim_lines_and_other_tables_stay():
    row = (
        "<thead><tr><th>{}</th><th><p>You need</p></th></tr></thead><tbody><tr>"
        "<td><p>5 minutes</p></td><td><p>a <a>tree</a></p></td></tr>"
    )
    text = f"""<html><head></head><article><section><h1>A sum</h1><p>A third of each step.</p>
<div class="pst-scrollable-table-container"><table>{row.format("Time")}</tbody></table></div>
<p>To read the page, eyes.</p>
<table>{row.format("Way")}</tbody></table></section></article></html>"""
    mended = page(text)
    frame.mend(mended)
    (facts,) = mended.soup.select("h1 ~ dl.rl-facts")
    assert [(fact.dt.get_text(), fact.dd.decode_contents()) for fact in facts.select("div")] == [
        ("Time", "5 minutes"),
        ("You need", "a <a>tree</a>"),
    ]
    assert mended.soup.select_one("dl.rl-facts + p.rl-how")
    assert mended.soup.select_one("meta[name=description]")["content"] == "A third of each step."
    assert len(mended.soup.select("table")) == 1


def test_elements_that_change_nothing_are_taken_out_and_those_that_do_stay():
    def lightened(text):
        soup = BeautifulSoup(text, "html.parser")
        lighter.lighten(soup)
        return str(soup)

    def code(*words):
        return f'<code class="docutils literal">{" ".join(words)}</code>'

    def kept(word):
        return f'<span class="pre">{word}</span>'

    words = ["dist.all_reduce(x,", "op=SUM)", "--nproc-per-node=2", "logs/rank0.txt", "a|b", "cat…"]
    assert lightened(code(*map(kept, words))) == code(*words[:2], *map(kept, words[2:]))
    assert lightened("<pre><span></span>x = 1\n</pre>") == "<pre>x = 1\n</pre>"
    assert lightened('<pre><span class="k">for</span></pre>') == '<pre><span class="k">for</span></pre>'
    assert lightened('<ul class="simple">\n<li><p>one</p></li>\n</ul>') == '<ul class="simple">\n<li>one</li>\n</ul>'
    for whole in ('<ul class="simple"><li><p>two</p><p>three</p></li></ul>', "<ol><li><p>four</p></li></ol>"):
        assert lightened(whole) == whole
    contents = '<nav class="page-toc"><ul><li><a>group</a>{}</li></ul></nav>'
    entries = "<ul><li><a>entry</a></li></ul>"
    assert lightened(contents.format(entries)) == contents.format(entries)
    assert lightened('<p class="rl-find"></p>' + contents.format(entries)).endswith(contents.format(""))
