"""Hosts without ranks: what runs there, what their link does, and that nothing of them stays."""

import errno
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import uuid

import psutil
import pytest
from hosting import FORBIDDEN, MARK, holders, left, machine, marked, program, spaces
from support import eventually

import ranklab
from ranklab.errors import NoHosts, RanklabError, WorldError
from ranklab.programs import PACKAGES, Program

# A megabyte from computer1 to computer2, in seconds.
TRANSFER = """
import socket, sys, time
server = socket.create_server(("", 0))
print(server.getsockname()[1], flush=True)
connection, peer = server.accept()
began, got = time.monotonic(), 0
while part := connection.recv(1 << 16):
    got += len(part)
print(peer[0], got, time.monotonic() - began)
"""
SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as connection:
    connection.sendall(bytes(int(sys.argv[3])))
"""


@pytest.fixture(scope="module")
def lab():
    with ranklab.hosts(2) as lab:
        yield lab


def transfer(lab, size: int) -> tuple[str, float]:
    """Send bytes from computer1 to computer2; return the sender's address and the rate in bits per second."""
    python = [sys.executable, "-I", "-S", "-c"]
    with lab[1].popen([*python, TRANSFER], stdout=subprocess.PIPE, text=True) as server:
        port = server.stdout.readline().strip()
        lab[0].run([*python, SEND, "computer2", port, str(size)])
        peer, got, seconds = server.stdout.read().split()
    assert int(got) == size
    return peer, size * 8 / float(seconds)


def test_hosts_have_names_and_addresses_and_find_each_other(lab):
    assert [host.run("hostname") for host in lab] == ["computer1", "computer2"]
    assert lab[0].run("getent hosts computer2").split() == [lab[1].address, "computer2"]
    assert transfer(lab, 1000)[0] == lab[0].address
    assert repr(lab).splitlines()[0] == f"computer1   {lab[0].address}   unlimited"


def test_what_runs_there_is_in_this_folder_and_sees_this_machines_files(lab, tmp_path):
    assert lab[0].run("pwd") == os.getcwd()
    (tmp_path / "here.txt").write_text("seen")
    assert lab[0].run(["cat", str(tmp_path / "here.txt")]) == "seen"
    with lab[1].popen(["sh", "-c", "pwd; echo $A"], env={"A": "b"}, cwd=tmp_path, stdout=-1, text=True) as process:
        assert process.stdout.read().split() == [str(tmp_path), "b"]


def test_a_host_sees_only_its_own_processes(lab):
    assert lab[0].run(["ps", "-e", "-o", "comm="]).split() == ["cat", "ps"]


def test_the_rate_of_the_link_can_be_changed(lab):
    lab.rate("20mbit")
    slow = transfer(lab, 1_000_000)[1]
    lab.rate("200mbit")
    fast = transfer(lab, 4_000_000)[1]
    lab.rate("unlimited")
    assert 14e6 < slow < 24e6
    assert fast > 3 * slow


def test_one_cable_can_be_slower_than_the_others(lab):
    lab[1].rate("20mbit")
    assert transfer(lab, 1_000_000)[1] < 24e6
    assert [str(host.link) for host in lab] == ["unlimited", "20 Mbit/s"]
    lab.rate("unlimited")


def test_a_cut_cable_loses_what_is_sent_until_it_is_restored(lab):
    lab[1].cut()
    assert lab[1].caption[2] == "cut"
    with pytest.raises(RanklabError, match="on computer1 was not finished after 1 s"):
        lab[0].run([sys.executable, "-I", "-S", "-c", SEND, lab[1].address, "9", "1"], timeout=1)
    lab[1].restore()
    assert lab[1].caption[2] == "unlimited"
    assert transfer(lab, 1000)[0] == lab[0].address


def test_a_delay_that_the_kernel_cannot_make_is_told_and_left_out(capsys, monkeypatch):
    told = []
    monkeypatch.setattr("ranklab.lab.lab.tell", told.append)
    with ranklab.hosts(2, link="100mbit", delay="5ms") as lab:
        shown = [str(host.link) for host in lab]
        if lab.can_delay():
            assert shown == ["100 Mbit/s, 5 ms"] * 2 and told == []
        else:
            assert shown == ["100 Mbit/s"] * 2
            assert len(told) == 1 and "cannot delay packets" in told[0]


def test_what_fails_there_says_so(lab):
    with pytest.raises(RanklabError, match=r"^`echo no; exit 3` on computer1 failed with exit status 3.\nno$"):
        lab[0].run("echo no; exit 3")
    assert lab[0].run("echo no; exit 3", check=False) == "no"
    with pytest.raises(RanklabError, match=r"`kill -9 ..` on computer2 was ended by signal 9"):
        lab[1].run("kill -9 $$")
    with pytest.raises(RanklabError, match="exit status 127"):
        lab[0].run("no-such-program")


def test_a_program_that_is_not_installed_is_told_with_its_package(lab, monkeypatch):
    monkeypatch.setitem(PACKAGES, "no-such-program", "no-such-package")
    monkeypatch.setattr("ranklab.programs.PROGRAMS", (Program("no-such-program", "no-such-package"),))
    with pytest.raises(RanklabError, match=r"^no-such-program is not installed here: sudo apt install no-such-package"):
        lab[0].run("no-such-program -c 3 computer2")


def test_a_program_that_is_installed_is_not_blamed_for_what_stands_behind_it(lab):
    with pytest.raises(
        RanklabError, match=r"^`ip link \| no-such-filter` on computer1 failed with exit status 127\.\n"
    ):
        lab[0].run("ip link | no-such-filter")


def test_signals_reach_the_program_and_its_own_end_is_told(lab):
    script = "trap 'sleep 0.1; exit 5' TERM; echo up; while :; do sleep 0.01; done"
    with lab[0].popen(["sh", "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"up\n"
        process.terminate()
        assert process.wait(300) == 5
    with lab[0].popen(["sleep", "600"]) as process:
        process.kill()
        assert process.wait(300) == -signal.SIGKILL


def test_a_command_that_is_ended_takes_along_what_it_has_started(lab):
    with pytest.raises(RanklabError, match="was not finished after"):
        lab[0].run("setsid sleep 601 & sleep 602", timeout=0.5)
    processes = ["ps", "-e", "-o", "args"]
    assert eventually(lambda: lab[0].run(processes).splitlines()[1:] == ["cat", " ".join(processes)])


def test_what_a_command_leaves_in_the_background_runs_on(lab):
    number = lab[0].run("sleep 300 & echo $!", timeout=60)
    assert "sleep 300" in lab[0].run("ps -eo args")
    lab[0].run(f"kill {number}")


@pytest.mark.parametrize(
    ("names", "own", "other"),
    [("known", "address", "address"), ("unknown", "", ""), ("127.0.1.1", "127.0.1.1", "address")],
)
def test_what_hosts_know_of_names(names, own, other):
    look = "import socket, sys\ntry: print(socket.gethostbyname(sys.argv[1]))\nexcept socket.gaierror: print()"
    with ranklab.hosts(2, names=names) as lab:
        for name, host, expected in (("computer1", lab[0], own), ("computer2", lab[1], other)):
            found = lab[0].run([sys.executable, "-I", "-S", "-c", look, name])
            assert found == (host.address if expected == "address" else expected)


def test_names_can_be_written(lab):
    before = lab[0].names
    lab[0].names = before + "192.0.2.9 elsewhere\n"
    assert lab[0].run("getent hosts elsewhere").split() == ["192.0.2.9", "elsewhere"]
    with pytest.raises(RanklabError):
        lab[1].run("getent hosts elsewhere")
    lab[0].names = before


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ({"count": 0}, "A lab has 1 to 100 hosts"),
        ({"count": "two"}, "A lab has 1 to 100 hosts"),
        ({"count": 2, "link": "fast"}, 'A link has a rate such as "1gbit"'),
        ({"count": 2, "names": "some"}, 'names is "known"'),
        ({"count": 2, "subnet": "127.0.0.0/24"}, "This machine uses 127.0.0.0/8 itself"),
    ],
)
def test_a_bad_lab_is_refused_in_one_sentence(call, part):
    with pytest.raises(WorldError) as refused:
        ranklab.hosts(**call)
    assert part in str(refused.value) and "\n" not in str(refused.value)


def test_hosts_that_were_stopped_say_so():
    lab = ranklab.hosts(1)
    lab.stop()
    lab.stop()
    with pytest.raises(RanklabError, match="These hosts have gone"):
        lab[0].run("hostname")
    with pytest.raises(RanklabError, match="These hosts have gone"):
        lab.rate("1gbit")


def test_two_labs_do_not_meet(lab):
    with ranklab.hosts(2) as other:
        assert other[0].address == lab[0].address
        other[0].cut()
        assert transfer(lab, 1000)[0] == lab[0].address


def test_a_notebook_with_many_open_files_can_have_hosts(lab):
    pipes = [os.pipe() for _ in range(600)]
    try:
        with ranklab.hosts(1) as other:
            assert other[0].run("hostname") == "computer1"
    finally:
        for descriptor in itertools.chain(*pipes):
            os.close(descriptor)


def test_a_system_that_refuses_another_process_is_told(lab, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("ranklab.lab.lab.subprocess.Popen", refuse)
    with pytest.raises(RanklabError, match="The system refused another process"):
        ranklab.hosts(1)


def test_thirty_labs_leave_nothing(user, folder):
    before, mark = machine(), uuid.uuid4().hex
    text = """
        import os, ranklab
        print(os.getuid())
        for _ in range(30):
            with ranklab.hosts(2, link="1gbit") as lab:
                lab[1].popen(["sh", "-c", "setsid sleep 600 & sleep 600"])
                assert lab[0].run("hostname") == "computer1"
            try:
                os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                continue
            raise SystemExit("a process of the lab is left")
    """
    with program(text, mark, folder, user) as child:
        said = child.stdout.read().split()
        assert child.wait(300) == 0
    assert said == [str(65534 if user else os.getuid())]
    assert left(mark, set(), folder) == []
    assert machine() == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_the_owner_is_killed(user, folder, number):
    before, mark = machine(), uuid.uuid4().hex
    text = """
        import ranklab, sys, time
        lab = ranklab.hosts(2, link="1gbit")
        lab[0].popen(["sh", "-c", "echo up; setsid sleep 600"])
        time.sleep(600)
    """
    with program(text, mark, folder, user) as child:
        assert child.stdout.readline() == "up\n"
        with spaces(marked(mark)) as ours:
            assert len(ours) >= 5  # the switch, and a network and mounts of each host
            assert len(holders(ours)) >= 6
            child.send_signal(number)
            child.wait(300)
            assert left(mark, ours, folder) == []
    assert machine() == before


def test_nothing_is_left_when_the_holder_is_killed(lab):
    with ranklab.hosts(2) as other, spaces(psutil.Process(other._holder.pid).children(recursive=True)) as ours:
        assert len(ours) == 4
        process = other[1].popen(["sh", "-c", "echo up; setsid sleep 600"], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"up\n"
        other._holder.kill()
        assert process.wait(300) == -signal.SIGKILL
        process.stdout.close()
        assert eventually(lambda: not holders(ours))
        with pytest.raises(RanklabError, match="These hosts have gone"):
            other[0].run("hostname")


CRASH = """
    import os, signal, subprocess, sys
    import ranklab

    step, start, end = int(sys.argv[1]), subprocess.Popen.__init__, subprocess.Popen.wait
    count = 0

    def crash(*args, **options):
        global count
        start(*args, **options)  # the process runs, and nothing was heard of it
        count += 1
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)

    subprocess.Popen.__init__ = crash
    lab = ranklab.hosts(2, link="1gbit")
    print(count, flush=True)
"""


def test_a_crash_between_any_two_steps_of_the_set_up_leaves_nothing(user, folder):
    before = machine()
    for step in range(1, 100):
        mark = uuid.uuid4().hex
        folder.chmod(0o1777)
        environment = {**os.environ, MARK: mark, "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [*user, sys.executable, "-c", textwrap.dedent(CRASH), str(step)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert left(mark, set(), folder) == []
        if done.stdout:
            break
        assert done.returncode == -signal.SIGKILL
    assert int(done.stdout) == step - 1 >= 12  # steps, each of which was the last one once
    assert machine() == before


def test_a_machine_that_forbids_namespaces_is_told_in_one_sentence(folder):
    text = """
        import ranklab
        try:
            ranklab.hosts(2)
        except ranklab.WorldError as error:
            print(error)
    """
    with program(text, "", folder, FORBIDDEN) as child:
        said = child.stdout.read()
    assert said.startswith("This machine allows no network namespaces (unshare failed: No space left on device). To al")
    assert said.count("\n") == 1
    assert list(folder.iterdir()) == []


def test_what_the_system_ignores_and_says_so_forbids_no_hosts(lab, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "/no/such/library.so")
    monkeypatch.setenv("PYTHONWARNINGS", "nonsense")
    with ranklab.hosts(2) as other:
        assert other[1].run("hostname").splitlines()[-1] == "computer2"


def test_a_machine_that_is_too_busy_forbids_nothing(lab, monkeypatch):
    monkeypatch.setattr("ranklab.lab.hosttools.PATIENCE", 0.0)
    with pytest.raises(NoHosts, match=r"^The hosts were not ready within 0 s: this machine is too busy\. Try again\.$"):
        ranklab.hosts(2)


def test_a_holder_that_fails_by_itself_forbids_nothing(lab, monkeypatch, tmp_path):
    (tmp_path / "python").write_text("#!/bin/sh\necho out of luck >&2\nexit 1\n")
    (tmp_path / "python").chmod(0o700)
    monkeypatch.setattr("ranklab.lab.lab.sys.executable", str(tmp_path / "python"))
    with pytest.raises(NoHosts, match=r"ended before they were ready: .*out of luck\.$") as caught:
        ranklab.hosts(2)
    assert "namespaces" not in str(caught.value)


def test_missing_tools_are_told_with_their_packages(monkeypatch):
    monkeypatch.setattr("ranklab.programs.shutil.which", lambda tool, path: None if tool in ("ip", "tc") else tool)
    with pytest.raises(NoHosts, match=r"^Hosts need ip, tc\. To allow them: sudo apt install iproute2\.$"):
        ranklab.hosts(2)


def test_another_system_is_told(monkeypatch):
    monkeypatch.setattr("ranklab.lab.hosttools.sys.platform", "darwin")
    with pytest.raises(NoHosts, match="Hosts of their own need Linux, and this is darwin"):
        ranklab.hosts(2)
