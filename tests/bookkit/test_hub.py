"""The hub's parts, without a hub: what is asked for, copies, limits, the proxy's sentences, the instructor's page."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from bookkit.errors import BookError
from bookkit.hub import __main__, configuration, proxy, supervise, turns
from bookkit.hub.asked import read_arguments, read_names
from bookkit.hub.copies import refresh_original, welcome
from bookkit.hub.left import end_left, learners
from bookkit.hub.page import page
from bookkit.hub.passwords import make, read
from bookkit.hub.ports import free, taken
from bookkit.hub.room import SHARED, Room, held, load
from bookkit.hub.seen import Learner, look, look_at
from bookkit.leash import Brood
from tests.benchmarks.watched import MODELLED, PROCESSORS, model


def write_chapter(root, source):
    cells = [nbformat.v4.new_code_cell(source)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), root / "book" / "part" / "chapter.ipynb")


@pytest.fixture
def room(tmp_path):
    """A room with a book of one chapter."""
    (tmp_path / "top" / "book" / "part").mkdir(parents=True)
    write_chapter(tmp_path / "top", "1 + 1")
    return Room(folder=tmp_path / "room", root=tmp_path / "top", proxy=tmp_path / "proxy", names=("ada", "grace"))


def test_what_was_asked_for_is_what_the_hub_reads(room):
    assert load(str(room.save())) == room


def test_root_is_refused_unless_asked_for(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(BookError, match="every learner would be root"):
        read_arguments([])
    assert read_arguments(["--allow-root"]).as_root


def test_the_loopback_is_the_default(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert read_arguments([]).address == "127.0.0.1"
    assert read_arguments(["--address", "0.0.0.0", "--port", "0"]).port > 0


def test_names_are_read_from_a_file(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("Ada\n\n# the back row\ngrace # sits at the window\n")
    assert read_names(names) == ("ada", "grace")
    names.write_text("../ada\n")
    with pytest.raises(BookError, match="cannot be a name"):
        read_names(names)
    with pytest.raises(BookError, match="cannot be read"):
        read_names(tmp_path / "nobody.txt")
    names.write_text("\ufeffAda\r\n", encoding="utf-8")
    assert read_names(names) == ("ada",), "as Windows' editor writes it"
    names.write_bytes("Zo\xeb".encode("latin-1"))
    with pytest.raises(BookError, match="not in UTF-8"):
        read_names(names)


def test_a_file_without_a_name_lets_nobody_in_by_mistake(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("# ada\n\n")
    with pytest.raises(BookError, match="There is no name in"):
        read_names(names)


WRONG = {
    "--port 99999": "from 0 to 65535",
    "--port -1": "from 0 to 65535",
    "--memory 0.001": "from 1 to 100000, or 0 for no limit",
    "--memory nan": "--memory nan cannot be",
    "--cores -3": "from 1 to 100000, or 0",
    "--processes 3": "from 100",
    "--idle 0": "from 1 to",
    "--idle -5": "from 1 to",
    "--instructor O'Brien": '"o\'brien" in --instructor cannot be a name',
}


@pytest.mark.parametrize("words", WRONG)
def test_a_word_that_cannot_be_is_told(monkeypatch, words):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BookError, match=re.escape(WRONG[words])):
        read_arguments(words.split())


def test_no_limit_is_a_word_that_can_be(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    room = read_arguments(["--memory", "0", "--cores", "0", "--processes", "0", "--instructor", "Grace"])
    assert (room.memory, room.cores, room.processes, room.instructor) == (0, 0, 0, "grace")


def test_a_second_hub_is_refused_in_a_room_that_has_one(room):
    with held(room):
        with pytest.raises(BookError, match=r"Another hub .* --room and another port with --port"), held(room):
            pass
        with held(replace(room, folder=room.folder / "other")):
            pass
    with held(room):
        pass


def test_a_room_that_cannot_be_a_folder_is_told(room, tmp_path):
    (tmp_path / "file").touch()
    wrong = replace(room, folder=tmp_path / "file")
    with pytest.raises(BookError, match=r"The room cannot be .*file .*name a folder .* with --room"), held(wrong):
        pass


def test_a_room_that_cannot_be_written_to_is_told(room, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(__main__, "refresh_original", full)
    with pytest.raises(BookError, match=r"cannot be prepared: .*No space left"):
        __main__.prepare(room)


def test_passwords_are_made_once_and_for_one_reader(tmp_path):
    path = tmp_path / "room" / "passwords.txt"
    made = make(path)
    assert make(path) == read(path) == made
    assert len(made["room"]) >= 8 and len(made["instructor"]) >= 32, "JupyterHub asks for so many"
    assert path.stat().st_mode & 0o077 == 0


def test_a_learner_gets_a_copy_once_and_it_is_never_written_over(room):
    refresh_original(room)
    home = welcome(room, "ada")
    chapter = home / "book" / "part" / "chapter.ipynb"
    chapter.write_text("my own answer")
    write_chapter(room.root, "2 + 2")
    refresh_original(room)
    assert welcome(room, "ada") == home
    assert chapter.read_text() == "my own answer"
    assert "2 + 2" in (home / "original" / "part" / "chapter.ipynb").read_text()
    assert home.stat().st_mode & 0o077 == 0


def test_a_learner_can_write_in_a_fresh_copy_of_a_chapter_that_was_deleted(room):
    (room.root / "book" / "data-parallel").mkdir()
    shutil.copy(room.root / "book" / "part" / "chapter.ipynb", room.root / "book" / "data-parallel" / "ddp.ipynb")
    refresh_original(room)
    home = welcome(room, "ada")
    chapter = home / "book" / "data-parallel" / "ddp.ipynb"
    chapter.unlink()
    text = (Path(configuration.__file__).parents[3] / "book" / "teaching" / "hub.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"A fresh copy of one chapter is one line .*: `([^`]+)`", text)
    subprocess.run(["bash", "-c", line], env={**os.environ, "HOME": str(home)}, check=True)
    assert chapter.stat().st_mode & 0o200


def test_the_original_is_read_only_and_its_notebooks_are_trusted(room):
    refresh_original(room)
    original = room.original / "book" / "part" / "chapter.ipynb"
    assert original.stat().st_mode & 0o222 == original.parent.stat().st_mode & 0o222 == 0
    assert (welcome(room, "ada") / ".local/share/jupyter/nbsignatures.db").exists()


def limited(*words):
    program = """
import json, mmap, os, resource
try:
    mmap.mmap(-1, 3 * 2**30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # asked for and not touched
    full = False
except OSError:
    full = True
print(json.dumps([full, resource.getrlimit(resource.RLIMIT_NPROC)[0], sorted(os.sched_getaffinity(0)), os.nice(0)]))
"""
    command = [sys.executable, "-m", "bookkit.hub.limited", *words, "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return json.loads(done.stdout)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="This system pins no processes to processors.")
def test_limits_are_inherited_by_what_is_started():
    here = sorted(os.sched_getaffinity(0))
    full, _, cores, nice = limited("--memory", "1", "--cores", "1", "--place", str(len(here) + 1))
    assert full and nice >= 5
    assert cores == [here[1 % len(here)]], "neighbours get other processors"
    assert limited("--processes", "1000")[1] == 1000


def test_a_limit_of_processes_is_the_rooms_because_all_learners_are_one_user(room):
    assert configuration.processes(replace(room, processes=100, names=tuple("abcdefghijklmnopqrst"))) == 2100
    assert configuration.processes(replace(room, processes=0)) == 0
    assert "--memory" in configuration.command(room, 3)


class Settings:
    """As much of JupyterHub's configuration as is written to: any section, any trait."""

    def __getattr__(self, name):
        setattr(self, name, SimpleNamespace())
        return getattr(self, name)


def test_who_may_log_in_and_what_each_may(room):
    make(room.passwords)
    c = Settings()
    configuration.configure(c, room)
    assert c.Authenticator.allowed_users == {"ada", "grace", "instructor"}
    assert c.Authenticator.allow_existing_users is False  # else JupyterHub adds all that have ever logged in
    assert c.Authenticator.admin_users == {"instructor"}
    assert c.JupyterHub.bind_url == "http://127.0.0.1:8000"
    assert c.JupyterHub.concurrent_spawn_limit == 0  # with a limit JupyterHub answers 429 to the learner after it
    learner = next(role for role in c.JupyterHub.load_roles if role["name"] == "user")
    assert not any("access:services" in scope or scope == "shares" for scope in learner["scopes"])
    c = Settings()
    configuration.configure(c, replace(room, names=()))
    assert c.Authenticator.allow_all is True


def test_any_folder_can_be_a_room(room):
    c, odd = Settings(), replace(room, folder=room.folder / "room {x} ?q=1%20")
    make(odd.passwords)
    configuration.configure(c, odd)
    assert c.SimpleLocalProcessSpawner.home_dir_template.format(username="ada") == str(odd.home("ada"))
    assert c.JupyterHub.db_url == "sqlite:///hub.sqlite"


def test_who_was_logged_in_to_an_earlier_hub_logs_in_anew(room):
    make(room.passwords)
    first, second = Settings(), Settings()
    configuration.configure(first, room)
    configuration.configure(second, room)
    assert first.JupyterHub.cookie_secret != second.JupyterHub.cookie_secret


def test_what_a_learner_started_in_the_background_ends_with_the_server(room):
    make(room.passwords)
    c = Settings()
    configuration.configure(c, room)
    spawners = {name: SimpleNamespace(user=SimpleNamespace(name=name)) for name in ("ada", "grace")}
    started = {}
    for name, spawner in spawners.items():
        room.home(name).mkdir(parents=True)
        mark = {Brood.MARK: c.Spawner.environment[Brood.MARK](spawner)}
        started[name] = subprocess.Popen(["sleep", "1000"], env={**os.environ, **mark}, start_new_session=True)
    try:
        asyncio.run(c.Spawner.post_stop_hook(spawners["ada"]))
        assert started["ada"].poll() is not None and started["grace"].poll() is None
        end_left(room, learners(room))
        assert started["grace"].poll() is not None
    finally:
        for process in started.values():
            process.kill()
            process.wait()


def test_what_all_learners_have_left_ends_with_the_hub(room, monkeypatch):
    told = []

    @contextlib.contextmanager
    def started(command, environment, room):
        yield SimpleNamespace(terminate=lambda: told.append("page and proxy"))

    def run(hub):
        told.append("hub")
        raise KeyboardInterrupt  # a second Ctrl-C

    monkeypatch.setattr(supervise, "_started", started)
    monkeypatch.setattr(supervise, "_await", lambda *_: None)
    monkeypatch.setattr(supervise, "_run", run)
    monkeypatch.setattr(supervise, "end_left", lambda room, names: told.append(names))
    room.home("ada").mkdir(parents=True)
    assert supervise.supervise(room) == 0
    assert told == ["hub", ["ada"], "page and proxy", "page and proxy"]


class Slow:
    """A spawner whose server answers a while after it was started, or never."""

    starting, most = set(), 0

    def __init__(self, ends=False):
        self.ends, self.server = ends, None

    async def start(self):
        self.starting.add(self)
        Slow.most = max(Slow.most, len(self.starting))
        (port,) = free(1)
        self.later = None if self.ends else asyncio.create_task(self.answer(port))
        return "127.0.0.1", port

    async def answer(self, port):
        await asyncio.sleep(0.05)
        self.server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", port)
        self.starting.discard(self)

    async def poll(self):
        self.starting -= {self} if self.ends else set()
        return 1 if self.ends else None


def test_the_fifth_server_waits_its_turn_and_is_not_refused(monkeypatch):
    class InTurn(turns.InTurn, Slow):
        turns = asyncio.Semaphore(2)

    async def together():
        spawners = [InTurn(ends=number == 1) for number in range(5)]
        await asyncio.gather(*(one.start() for one in spawners))
        assert all(one.server for one in spawners if not one.ends)
        for one in spawners:
            if one.server:
                one.server.close()

    monkeypatch.setattr(turns, "AGAIN", 0.01)
    asyncio.run(asyncio.wait_for(together(), 60))
    assert Slow.most == 2


def test_a_server_that_never_answers_gives_its_turn_away():
    assert asyncio.run(turns.up(Slow(), "127.0.0.1", free(1)[0], patience=0.05)) is False


@pytest.mark.parametrize("missing", ["node", "npm"])
def test_a_missing_program_gets_a_sentence(monkeypatch, missing):
    monkeypatch.setattr(proxy.shutil, "which", lambda name: None if name == missing else f"/bin/{name}")
    with pytest.raises(BookError, match=f"There is no {missing}. JupyterHub's proxy needs Node 20 or newer"):
        proxy.check_node()


def test_an_old_node_gets_a_sentence(monkeypatch):
    monkeypatch.setattr(proxy.shutil, "which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(proxy.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout="v18.19.0\n"))
    with pytest.raises(BookError, match=r"Node is v18.19.0. JupyterHub's proxy needs Node 20"):
        proxy.check_node()


def test_the_proxy_is_installed_from_the_lock_and_again_where_it_was_cut_short(tmp_path, monkeypatch):
    calls = []

    def npm(command, cwd):
        calls.append(command[:2])
        (cwd / proxy.PROGRAM).parent.mkdir(parents=True)
        (cwd / proxy.PROGRAM).touch()
        return len(calls) == 1  # the first call fails

    monkeypatch.setattr(proxy, "check_node", lambda: None)
    monkeypatch.setattr(proxy.subprocess, "call", npm)
    with pytest.raises(BookError, match="npm could not install"):
        proxy.install(tmp_path / "hub")
    assert proxy.install(tmp_path / "hub") == proxy.install(tmp_path / "hub") == tmp_path / "hub" / proxy.PROGRAM
    assert calls == [["npm", "ci"]] * 2


def test_the_lock_names_no_registry_and_takes_the_oldest_node():
    lock = json.loads((Path(proxy.__file__).parent / proxy.LOCK).read_text())
    assert not any("resolved" in package for package in lock["packages"].values())
    wishes = {package.get("engines", {}).get("node", "") for package in lock["packages"].values()}
    assert not any(">=22" in wish.replace(" ", "") for wish in wishes), "package.json says that Node 20 will do"


def shown(room, name, **files):
    folder = room.home(name) / SHARED
    folder.mkdir(parents=True)
    for stem, content in files.items():
        (folder / f"{stem.replace('_', '-', 1)}.json").write_text(content)
    return folder


def test_the_page_shows_who_agreed_and_nothing_of_the_others(room):
    ranks = json.dumps({"ranks": 4, "hang": "After 3 s: <rank 0> waits.", "kernel": os.getpid(), "at": 1000})
    verdict = json.dumps({"tries": 3, "solved": True, "words": 'a "word"', "at": 1001})
    shown(room, "ada", ranks=ranks, exercise_total=verdict)
    room.home("grace").mkdir(parents=True)
    html = page(look(room), {"ada": "runs"}, 1061)
    assert "hangs: After 3 s: &lt;rank 0&gt; waits." in html and "solved, 3" in html and "60 s ago" in html
    assert "2 learners, 1 servers, 4 ranks, 1 hang" in html and "shows nothing" in html
    assert "<script" not in html and "http" not in html.replace("http-equiv", "")


def test_a_kernel_that_is_gone_has_no_ranks(room):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    shown(room, "ada", ranks=json.dumps({"ranks": 4, "hang": "x", "kernel": gone.pid, "at": 1}))
    assert (look_at(room, "ada").ranks, look_at(room, "ada").hang) == (0, "")


def test_what_a_learner_puts_there_is_read_with_suspicion(room, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"tries": 1, "words": "a secret"}))
    folder = shown(
        room, "ada", exercise_big="[" * 20_000, exercise_deep="[" * 9_000, exercise_odd='{"tries": "<b>", "at": NaN}',
        exercise_list="[]", ranks='{"ranks": 1e300, "kernel": "x"}',
    )  # fmt: skip
    (folder / "exercise-link.json").symlink_to(secret)
    os.mkfifo(folder / "exercise-pipe.json")
    learner = look_at(room, "ada")
    assert set(learner.exercises.values()) == {(False, 0, "")} and learner.ranks == 0
    assert "<b>" not in page([learner], {}, 0)
    (room.home("grace")).mkdir()
    (room.home("grace") / SHARED).symlink_to(folder)
    assert look_at(room, "grace") == Learner("grace")


def test_no_learner_takes_the_page_from_the_others(room, monkeypatch):
    shown(room, "ada", exercise_total=json.dumps({"tries": 1, "words": "\ud83d"}))
    (room.home("ada") / SHARED / "exercise-\udcff.json").write_text('{"tries": 1}')
    (room.home("ada") / SHARED / "a.json").mkdir()
    shown(room, "grace", exercise_total=json.dumps({"tries": 2, "words": [[]]}))
    assert page(look(room), {}, 0).encode().count(b"not yet, ") == 3

    def closed(self):
        if self.is_relative_to(room.home("ada") / SHARED):
            raise PermissionError(13, "Permission denied")  # to root, who may be who runs this, nothing is closed
        return False

    monkeypatch.setattr(Path, "is_symlink", closed)
    assert [learner.shows for learner in look(room)] == [False, True]


def test_a_folder_or_a_pipe_among_the_files_leaves_nothing_open(room):
    folder = shown(room, "ada")
    (folder / "exercise-folder.json").mkdir()
    os.mkfifo(folder / "exercise-pipe.json")
    before = set(os.listdir("/dev/fd"))
    assert set(look_at(room, "ada").exercises.values()) == {(False, 0, "")}
    assert set(os.listdir("/dev/fd")) == before


def test_a_port_is_taken_where_somebody_listens_and_else_the_address_is_wrong():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert taken("127.0.0.1", server.getsockname()[1])
    for address in ("::1", "192.0.2.7", "x" * 70 + ".invalid"):
        with pytest.raises(BookError, match=f"--address {address} is no IPv4 address of this machine"):
            taken(address, free(1)[0])


def test_free_ports_are_different():
    assert len(set(free(5))) == 5


def test_what_more_learners_need_grows_with_them_alone():
    memory = {"learners": 1800, "hub": 264, "browser": 999}
    spent = {
        "log in": {"learners": 25, "hub": 5, "browser": 99},
        "the lesson": {"learners": 60, "hub": 6, "browser": 9},
    }
    rows = dict(model(3, memory, spent, largest=3))
    assert rows["modelled: learners"].split() == [str(count) for count in MODELLED]
    gigabytes = rows["GB of memory, one process at its limit included"].split()
    assert gigabytes[-1] == str(round((1000 + 264 + 30 * 600) / 1024 + 3))  # browsers are elsewhere
    assert rows["seconds of log in, all at once, on 2"].split()[-1] == str(30 * 10 // 2)
    assert len(rows) == 3 + len(spent) * len(PROCESSORS)
