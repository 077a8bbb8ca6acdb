"""What the plugin tells nbval, and what it says of this machine."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import xdist.plugin
from xdist import newhooks

import ranklab
from bookkit import needs
from bookkit.notebook import write
from ranklab import packages


@pytest.fixture
def hosts(monkeypatch):
    """Say whether this machine can make hosts."""
    return lambda can: monkeypatch.setattr(needs, "can_make_hosts", lambda: can)


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Take all programs from this machine but those that are named."""
    folder = tmp_path / "programs" / "bin"
    folder.mkdir(parents=True)

    def only(*names):
        for name in names:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))

    return only


@pytest.mark.parametrize("can", [True, False])
def test_a_cell_that_needs_a_program_is_compared_where_it_is(make, programs, can):
    programs(*["ping"] if can else [])
    items = [SimpleNamespace(cell=make.code("1", metadata={"tags": ["needs-ping"]}), options={"check": True})]
    needs.pytest_collection_modifyitems(items)
    assert items[0].options["check"] is can


@pytest.mark.parametrize("there", [True, False])
def test_a_cell_that_needs_packages_is_compared_where_they_are(book, make, monkeypatch, there):
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: name if there else None)
    items = [SimpleNamespace(cell=make.code("1", metadata={"tags": ["needs-frameworks"]}), options={"check": True})]
    needs.pytest_collection_modifyitems(items)
    assert items[0].options["check"] is there
    needing = book.run("needing", "1", tags=["needs-frameworks"])
    lack = "has no accelerate and lightning and transformers (make environment FRAMEWORKS=1)"
    assert needs.unmet([needing]) == ({} if there else {lack: [needing]})


def test_what_a_machine_lacks_is_told_with_the_chapters_that_want_it(book, hosts, programs):
    hosts(False)
    programs()
    both = book.run("both", "1", "2", tags=["needs-hosts", "needs-ping"])
    one = book.run("one", "1", tags=["needs-ping"])
    assert needs.unmet([book.run("plain", "1"), both, one]) == {
        "makes no hosts (`make doctor` says why)": [both],
        "has no ping (sudo apt install iputils-ping)": [both, one],
    }
    programs("ping")
    hosts(True)
    assert needs.unmet([both, one]) == {}


@pytest.mark.parametrize("can", [True, False])
def test_a_cell_that_needs_hosts_is_compared_where_there_are_hosts(make, hosts, can):
    hosts(can)
    cells = [make.code("1"), make.code("2", metadata={"tags": ["needs-hosts"]})]
    items = [SimpleNamespace(cell=cell, options={"check": True}) for cell in cells]
    needs.pytest_collection_modifyitems([*items, SimpleNamespace()])
    assert [item.options["check"] for item in items] == [True, can]


@pytest.mark.parametrize("can", [True, False])
def test_the_chapters_that_lack_hosts(book, hosts, can):
    hosts(can)
    plain = book.run("plain", "1")
    needing = book.run("needing", "2", tags=["needs-hosts"])
    assert needs.unmet([plain, needing]) == ({} if can else {needs.lack("needs-hosts"): [needing]})
    assert needs.unmet([plain]) == {}


@pytest.mark.parametrize("error", [ranklab.WorldError, ranklab.RanklabError])
def test_a_machine_that_refuses_hosts_in_any_way_makes_none(monkeypatch, error):
    def refuse(count):
        raise error("no")

    monkeypatch.setattr(ranklab, "hosts", refuse)
    assert needs.can_make_hosts.__wrapped__() is False


def test_nbval_executes_in_the_environment_of_record(tmp_path, make):
    seen = "dict(os.environ) | get_connection_info(unpack=True)"
    source = "import json, os\nfrom ipykernel.connect import get_connection_info\n"
    cell = make.code(f"{source}json.dump({seen}, open('seen.json', 'w'), default=str)", execution_count=1)
    write(tmp_path / "chapter.ipynb", make.notebook(cells=[cell]))
    environment = os.environ | {"TZ": "Asia/Tokyo", "COLUMNS": "200", "IPYTHONDIR": str(tmp_path)}
    command = [sys.executable, "-m", "pytest", "-p", "bookkit.needs", "-p", "no:cacheprovider"]
    command += ["--nbval", "--nbval-current-env", "chapter.ipynb"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert needs.REPEATABLE.items() <= seen.items()
    assert seen["IPYTHONDIR"] != str(tmp_path)
    assert not os.path.exists(seen["IPYTHONDIR"])
    assert seen["transport"] == "ipc"  # no port that another program could take
    assert not os.path.exists(os.path.dirname(seen["ip"]))


def test_one_chapter_more_than_places_is_compared_at_once():
    """As pytest itself asks: ``-p bookkit.needs`` is registered before xdist, whose own answer would be taken."""
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(newhooks)
    for module in (needs, xdist.plugin):
        manager.register(module)
    assert manager.hook.pytest_xdist_auto_num_workers(config=None) == needs.places() + 1
