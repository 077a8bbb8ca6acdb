"""Each rule fires on what it is for, and a clean chapter passes all of them."""

import pytest

from bookkit import leaks, rules
from bookkit.chapter import Chapter
from bookkit.notebook import write
from bookkit.rules import examine

HOME_PATH = "/home/ada/book/data.pt"  # bookkit: planted
TEMPORARY_PATH = "/tmp/x.pt"  # bookkit: planted
MAC_PATH = "/Users/ada/x"  # bookkit: planted
WINDOWS_PATH = "C:\\Users\\ada"  # bookkit: planted
PACKAGE_PATH = "lib/python3.11/site-packages/torch/a.py"  # bookkit: planted
HF_TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"  # bookkit: planted
GITHUB_TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123"  # bookkit: planted
PRIVATE_KEY = "-----BEGIN OPENSSH PRIVATE KEY-----"  # bookkit: planted
GPU_UUID = "GPU-01234567-89ab-cdef-0123-456789abcdef"  # bookkit: planted


@pytest.fixture
def findings(tmp_path, make):
    """Change a clean chapter and get what the rules say of it, as ``{rule: [finding]}``."""

    def examine_changed(change, name="chapter"):
        notebook = make.clean()
        change(notebook)
        path = tmp_path / "part" / f"{name}.ipynb"
        write(path, notebook)
        found = {}
        for finding in examine(Chapter(path, "book/part/chapter.ipynb")):
            found.setdefault(finding.rule, []).append(finding)
        return found

    return examine_changed


@pytest.fixture
def printing(findings, make):
    """What the rules say when the first code cell prints this text."""

    def examine_printed(text):
        return findings(lambda notebook: notebook.cells[1].update(outputs=[make.stream(text)]))

    return examine_printed


def test_a_clean_chapter_passes_every_rule(findings):
    assert findings(lambda notebook: None) == {}


def test_every_rule_says_why_and_how_to_mend():
    assert all(rule.look.__doc__ and rule.fix for rule in rules.RULES)
    assert len({rule.name for rule in rules.RULES}) == len(rules.RULES)


def test_a_finding_names_file_cell_and_mend(findings):
    (finding,) = findings(lambda notebook: notebook.cells[1].update(execution_count=None))["unexecuted"]
    sentence = str(finding)
    assert sentence.startswith("book/part/chapter.ipynb, cell [1]: the cell was never executed: run `make record")


@pytest.mark.parametrize("count", [None, 7])
def test_unexecuted(findings, count):
    assert "unexecuted" in findings(lambda notebook: notebook.cells[2].update(execution_count=count))


def test_a_chapter_that_never_ran_is_one_finding(findings):
    def strip(notebook):
        for cell in notebook.cells[1:]:
            cell.execution_count = None

    assert len(findings(strip)["unexecuted"]) == 1


def test_a_chapter_without_code_has_nothing_to_execute(findings):
    assert "unexecuted" not in findings(lambda notebook: notebook.update(cells=notebook.cells[:1]))


def test_an_empty_cell(findings):
    assert "unexecuted" in findings(lambda notebook: notebook.cells[2].update(source=" "))


def test_stderr_of_the_kernel(findings, make):
    warning = make.stream("UserWarning: x\n", "stderr")
    assert "stderr" in findings(lambda notebook: notebook.cells[1].update(outputs=[warning]))


def test_stderr_of_a_rank(findings, make):
    panel = make.display(html="<pre>UserWarning</pre>")
    panel.metadata = {"ranklab": {"stderr": True}}
    assert "stderr" in findings(lambda notebook: notebook.cells[1].update(outputs=[panel]))


def test_an_error_stands_where_the_tag_says(findings, make):
    error = make.from_dict({"output_type": "error", "ename": "E", "evalue": "", "traceback": []})
    tagged = {"tags": ["raises-exception"]}
    assert "raises-exception" in findings(lambda notebook: notebook.cells[1].update(outputs=[error]))
    assert "raises-exception" in findings(lambda notebook: notebook.cells[1].metadata.update(tagged))

    def expected(notebook):
        notebook.cells[1].outputs = [error]
        notebook.cells[1].metadata.update(tagged)

    assert findings(expected) == {}


def test_a_cell_that_needs_a_gpu_stops_nobody_who_has_none(findings, make):
    error = make.from_dict({"output_type": "error", "ename": "E", "evalue": "", "traceback": []})

    def tagged(*tags, outputs=()):
        def change(notebook):
            notebook.cells[1].outputs = list(outputs)
            notebook.cells[1].metadata["tags"] = ["needs-gpu", *tags]

        return findings(change)

    assert "needs-gpu" in tagged() and "needs-gpu" not in tagged("raises-exception")
    assert "raises-exception" in tagged("raises-exception", outputs=[error])
    assert "raises-exception" not in tagged("raises-exception", "raises-on-gpu", outputs=[error])
    assert "raises-exception" in tagged("raises-exception", "raises-on-gpu")


@pytest.mark.parametrize(
    "leak",
    [
        HOME_PATH, TEMPORARY_PATH, MAC_PATH, WINDOWS_PATH, PACKAGE_PATH,
        HF_TOKEN, GITHUB_TOKEN, PRIVATE_KEY, GPU_UUID,
    ],
)  # fmt: skip
def test_a_leak_is_found_wherever_it_is(findings, make, leak):
    for change in (
        lambda notebook: notebook.cells[0].update(source=f"Look at {leak}."),
        lambda notebook: notebook.cells[2].update(source=f"assert {leak!r}"),
        lambda notebook: notebook.cells[1].update(outputs=[make.stream(f"see '{leak}'\n")]),
        lambda notebook: notebook.cells[1].update(outputs=[make.display(html=f"<a title='{leak}'>x</a>")]),
        lambda notebook: notebook.cells[1].update(outputs=[make.stream(f"\x1b[0;32m{leak}\x1b[0m")]),
    ):
        assert "leak" in findings(change), leak


@pytest.mark.parametrize(
    "harmless",
    [
        "book/part/scripts/hello.py",
        "https://docs.pytorch.org/docs/stable/home/x.html",
        "/dev/shm",
        "<img src='data:image/png;base64,AA/tmp/AA=='>",  # bookkit: planted
        "the work/rest ratio",
    ],
)
def test_what_only_looks_like_a_path(printing, harmless):
    assert "leak" not in printing(harmless)


def test_names_of_this_machine(printing, monkeypatch):
    monkeypatch.setattr(leaks.socket, "gethostname", lambda: "gpu-box-7.example.org")
    monkeypatch.setattr(leaks.getpass, "getuser", lambda: "ada")
    assert "names" in printing("node gpu-box-7 is up\n")
    assert "names" in printing("hello ada\n")
    assert "names" not in printing("adapted to gpu-box-70\n")


def test_names_that_give_nobody_away(monkeypatch):
    monkeypatch.setattr(leaks.socket, "gethostname", lambda: "vm")
    monkeypatch.setattr(leaks.getpass, "getuser", lambda: "root")
    assert leaks.names_of_this_machine() == []


@pytest.mark.parametrize("address", ["134.99.3.4", "8.8.8.8", "fe80::1ff:fe23:4567:890a", "2a00:1:2:3:4:5:6:7"])
def test_addresses_of_somebody(printing, address):
    assert "names" in printing(f"store at {address}\n")


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "192.168.1.101", "192.0.2.7", "1.2.3.4.5", "x[1::2]", "0:30:00"]
)
def test_addresses_of_nobody(printing, address):
    assert "names" not in printing(f"store at {address}\n")


@pytest.mark.parametrize(
    "text",
    [
        "pid 1234", "'pid': 77", "PID=9", "process id 12",
        "127.0.0.1:40123", "localhost:8888", "port 40123", "port=1234",
        "<Work object at 0x7f3a2c41d0>",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "2026-11-21", "21 Nov 2026", "Sat Nov 21", "12:34:56",
    ],
)  # fmt: skip
def test_what_differs_in_the_next_run(printing, text):
    assert "one-run" in printing(f"rank 0: {text}\n")


@pytest.mark.parametrize("text", ["rapid 4", "portion 12", "shape 2:30", "0x1f", "stopped after 0:30:00"])
def test_what_is_the_same_in_the_next_run(printing, text):
    assert "one-run" not in printing(f"{text}\n")


@pytest.mark.parametrize("text", ["12.3 ms", "1.2 s", "5 ms", "3 µs", "1.5 GB/s", "480.2 Mbit/s", "12 it/s"])
def test_timings(printing, findings, make, text):
    assert "timing" in printing(f"took {text}\n")

    def tagged(notebook):
        notebook.cells[1].outputs = [make.stream(f"took {text}\n")]
        notebook.cells[1].metadata.tags = ["nbval-ignore-output"]

    assert findings(tagged) == {}


@pytest.mark.parametrize("text", ["the deadline was 10 s", "500 Mbit/s", "2.5 shards", "4 messages"])
def test_what_is_no_timing(printing, text):
    assert "timing" not in printing(f"{text}\n")


def test_styles_of_a_panel_are_not_read_as_text(findings, make):
    panel = make.display(html="<style>a {transition: 0.2s}</style><pre style='animation: 1.5s'>rank 0</pre>")
    assert findings(lambda notebook: notebook.cells[1].update(outputs=[panel])) == {}


def test_size(findings, make):
    assert "size" in findings(lambda notebook: notebook.cells[1].update(outputs=[make.stream("x" * 300_001)]))


@pytest.mark.parametrize("name", ["my_chapter", "01-ranks", "Ranks"])
def test_file_name(findings, name):
    assert "file-name" in findings(lambda notebook: None, name)


def test_tag(findings):
    assert "tag" in findings(lambda notebook: notebook.cells[1].metadata.update(tags=["remove-cell"]))


def test_measured(findings):
    def tag(number, *more):
        def change(notebook):
            for cell in notebook.cells[1 : 1 + number]:
                cell.metadata.tags = ["nbval-ignore-output", *more]

        return change

    assert "measured" not in findings(tag(2))
    assert "measured" in findings(tag(3))
    assert "measured" not in findings(tag(3, "needs-gpu"))


@pytest.mark.parametrize(
    ("need", "unasked", "asked"),
    [
        ("hosts", "x = 1", ["lab = world.hosts"]),
        ("slurm", "slurm.run('sinfo')", ["slurm = Slurm(lab)", "lab = slurm = None"]),
        ("frameworks", "import accelerate", ['frameworks = not without("needs-frameworks")']),
    ],
)
def test_a_cell_that_needs_something_stands_below_one_that_asks_for_it(findings, need, unasked, asked):
    def tag(source):
        def change(notebook):
            notebook.cells[1].source = source
            notebook.cells[2].metadata.tags = [f"needs-{need}"]

        return change

    (finding,) = findings(tag(unasked))[f"needs-{need}"]
    assert "cell [2]" in finding.place
    assert all(findings(tag(source)) == {} for source in asked)


def test_program(findings):
    def write(source, tags, above="x = 1"):
        def change(notebook):
            notebook.cells[1].source = above
            notebook.cells[2].source = f"{source}\nassert x"
            notebook.cells[2].metadata.tags = tags

        return change

    runs = 'lab[0].run("ping -c 3 computer2")  # noqa: F821'
    (untagged,) = findings(write(runs, []))["program"]
    assert untagged.found == "it runs ping and is not tagged needs-ping"
    (unasked,) = findings(write(runs, ["needs-ping"]))["program"]
    assert unasked.found.endswith("no cell so far has asked whether ping is there")
    assert findings(write(runs, ["needs-ping"], 'x = missing("ping")')) == {}
    assert findings(write("assert 'ping pong' != '# ping'", [])).get("program") is None


def test_exercise(findings):
    (none,) = findings(lambda notebook: notebook.cells[0].update(source="# A chapter"))["exercise"]
    assert none.found == "there is no exercise"

    def unsolve(notebook):
        notebook.cells[0].source = notebook.cells[0].source.replace("{solution-start} part-sum", "{note}")

    (unsolved,) = findings(unsolve)["exercise"]
    assert unsolved.found == "the exercise part-sum has no solution"


def test_long_cell(findings):
    assert "long-cell" in findings(lambda notebook: notebook.cells[2].update(source="assert 1\n" * 21))
    assert findings(lambda notebook: notebook.cells[2].update(source="assert 1\n" * 20)) == {}


def test_wide_fold(findings):
    def wide(columns, start="```{solution-start} e", tag="raises-exception"):
        def change(notebook):
            notebook.cells[0].source = f"# A chapter\n\n{start}\n```"
            notebook.cells[2].source = f"assert {'1' * (columns - len('assert '))}"
            notebook.cells[2].metadata.tags = [tag]

        return change

    solved = "```{solution-end}"
    assert "wide-fold" in findings(wide(81))
    assert "wide-fold" in findings(wide(81, solved, "hide-input"))
    assert "wide-fold" not in findings(wide(80)) | findings(wide(80, solved, "hide-input"))
    assert "wide-fold" not in findings(wide(81, solved))


@pytest.mark.parametrize("source", ["x = 1\n%%px\nassert x", "%autopx\nassert 1"])
def test_magic(findings, source):
    assert "magic" in findings(lambda notebook: notebook.cells[2].update(source=source))


@pytest.mark.parametrize("source", ["port = 29500\nassert port", 'assert 1\nos.environ["MASTER_PORT"] = "1234"'])
def test_fixed_port(findings, source):
    assert "fixed-port" in findings(lambda notebook: notebook.cells[2].update(source=source))


def test_assertion(findings):
    assert "assertion" in findings(lambda notebook: notebook.cells[2].update(source="x = 1"))
    checked = "ranklab.check.first_ranks(answer)"
    assert findings(lambda notebook: notebook.cells[2].update(source=checked)) == {}


def test_figure(findings):
    assert "figure" in findings(lambda notebook: notebook.cells[3].update(outputs=[]))


@pytest.mark.parametrize("metadata", [{}, {"mystnb": {"image": {"alt": " "}}}])
def test_alt_text(findings, metadata):
    assert "alt-text" in findings(lambda notebook: notebook.cells[3].update(metadata=metadata))
