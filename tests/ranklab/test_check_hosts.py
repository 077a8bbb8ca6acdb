"""The graders of two-computers: right answers pass, each classic mistake is told in its own sentence."""

import ipaddress

import pytest

from ranklab import check
from ranklab.check.launching import two_computers as hosts


def said(capsys, grader, answer) -> str:
    grader(answer)
    return capsys.readouterr().out.strip()


def right(megabytes, nodes, mbit):
    ranks = sum(nodes)
    return 2 * (ranks - 1) / ranks * megabytes * 8 / mbit if len(nodes) > 1 else 0


def every_rank_sends(megabytes, nodes, mbit):
    return max(nodes) * right(megabytes, nodes, mbit)


def test_the_cables_of_a_ring(capsys):
    assert said(capsys, check.wire_seconds, right).startswith("Correct: 5 rings were counted")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda megabytes, nodes, mbit: megabytes / mbit, "a byte has 8 bits"),
        (lambda megabytes, nodes, mbit: right(megabytes, nodes, mbit) / 8, "a byte has 8 bits"),
        (lambda megabytes, nodes, mbit: megabytes * 8 / mbit, "2 (n − 1) / n of the data"),
        (lambda megabytes, nodes, mbit: 16 * megabytes / mbit, "your answer is 1.2 times"),
        (lambda megabytes, nodes, mbit: 3 * right(megabytes, nodes, mbit) / 2, "your answer is 1.5 times"),
        (lambda megabytes, nodes, mbit: right(megabytes, [1, *nodes][1:], mbit) * 2, "both directions at once"),
        (lambda megabytes, nodes, mbit: right(megabytes, nodes, mbit) * sum(nodes), "only one rank of a computer"),
        (
            every_rank_sends,
            "is 4 times what the busiest cable needs: only one rank",
        ),
        (lambda megabytes, nodes, mbit: (2 - 2 / sum(nodes)) * megabytes * 8 / mbit, "ranks of one computer use no"),
        (lambda megabytes, nodes, mbit: None, "it should be a number"),
        (lambda megabytes, nodes, mbit: float("nan"), "your answer is nan times"),
        (lambda megabytes, nodes, mbit: 1 / 0, "your answer raised ZeroDivisionError"),
    ],
)
def test_a_wrong_time_is_told_why(capsys, wrong, sentence):
    told = said(capsys, check.wire_seconds, wrong)
    assert told.startswith("Not yet. ")
    assert sentence in told


def test_counting_computers_instead_of_ranks_is_told(capsys):
    def wrong(megabytes, nodes, mbit):
        return 2 * (len(nodes) - 1) / len(nodes) * megabytes * 8 / mbit

    assert "n counts ranks, here 6, not computers" in said(capsys, check.wire_seconds, wrong)


@pytest.fixture
def ranks(monkeypatch):
    """Two ranks, played: the first meets over eth0, the second too."""
    found = {"lo": "127.0.0.1/8", "eth0": "10.5.0.2/24"}
    monkeypatch.setattr(hosts, "on_ranks", lambda _, answer: [(answer("10.5.0.1", found), ["eth0", "wlan0"])] * 2)


def misspelt(address, interfaces):
    for name, own in interfaces.items():
        if ipaddress.ip_address(address) in ipaddress.ip_interface(own).network:
            return name
    raise ValuError("no")  # noqa: F821


def interface_for(address, interfaces):
    wanted = ipaddress.ip_address(address)
    for name, own in interfaces.items():
        if wanted in ipaddress.ip_interface(own).network:
            return name
    raise ValueError(f"no network for {address}")


def same_three_numbers(address, interfaces):
    start = address.rsplit(".", 1)[0]
    return next(name for name, own in interfaces.items() if own.startswith(start))


def whole_numbers(address, interfaces):
    """Compare as many numbers as the prefix has bytes."""
    for name, own in interfaces.items():
        start, bits = own.split("/")
        numbers = int(bits) // 8
        if address.split(".")[:numbers] == start.split(".")[:numbers]:
            return name
    raise ValueError(f"no network for {address}")


def first_or_none(address, interfaces):
    try:
        return interface_for(address, interfaces)
    except ValueError:
        return None


def not_on_this_rank(address, interfaces):
    return "lo" if address == "10.5.0.1" else interface_for(address, interfaces)


def test_the_interface_towards_an_address(capsys, ranks):
    assert said(capsys, check.interface_for, interface_for).startswith("Correct")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda address, interfaces: "eth0", "192.168.6.80 is in the network of wlan0, 192.168.4.7/22; your answer is"),
        (lambda address, interfaces: next(n for n in interfaces if n != "lo"), "10.1.2.9 is in the network of eth0"),
        (same_three_numbers, "192.168.6.80 is in the network of wlan0, 192.168.4.7/22; your answer raised"),
        (first_or_none, "10.1.3.9 is in no network"),
        (whole_numbers, "192.168.9.80 is in no network of"),
        (misspelt, "raise an error that says so; your answer raised NameError: name 'ValuError' is not defined"),
        (not_on_this_rank, "On rank 0 the way to rank 0 is eth0 or wlan0, your answer is 'lo'"),
    ],
)
def test_a_wrong_interface_is_told_why(capsys, ranks, wrong, sentence):
    told = said(capsys, check.interface_for, wrong)
    assert told.startswith("Not yet. ")
    assert sentence in told


WAYS = {
    "the second of two addresses": (
        [("eth0", "10.9.0.2/255.255.255.0"), ("eth0", "10.5.0.2/255.255.255.0")],
        {"eth0": "10.5.0.2/24"},
        ["eth0"],
    ),
    "two ways": (
        [("eth0", "10.5.0.2/255.255.255.0"), ("wlan0", "10.5.0.3/255.255.255.0")],
        {"eth0": "10.5.0.2/24", "wlan0": "10.5.0.3/24"},
        ["eth0", "wlan0"],
    ),
    "a router": ([("eth0", "10.9.0.2/255.255.255.0")], {"eth0": "10.9.0.2/24"}, []),
}


@pytest.mark.parametrize(("entries", "interfaces", "right"), WAYS.values(), ids=WAYS)
def test_the_ways_to_rank_0(entries, interfaces, right):
    assert hosts._ways(entries, "10.5.0.1") == (interfaces, right)


def test_a_rank_behind_a_router_is_not_compared(capsys, monkeypatch):
    monkeypatch.setattr(hosts, "on_ranks", lambda _, answer: [("eth0", ["eth0"]), (None, [])])
    told = said(capsys, check.interface_for, interface_for)
    assert told.startswith(
        "Correct: on a computer with four interfaces it is the right one. Nothing was compared on rank 1:"
    )


NOTEBOOKS = """
import ipaddress
goal = ipaddress.ip_address(address)
right = [name for name, own in interfaces.items() if goal in ipaddress.ip_interface(own).network]
if address.startswith("127.0.0."):
    {there}
if not right:
    raise ValueError(address)
return right[0]
"""


@pytest.mark.parametrize(
    ("there", "sentence"),
    [
        ("pass", "Correct: on every rank it is the interface towards rank 0"),
        ("return 'eth7'", "On rank 0 the way to rank 0 is lo"),
        ("raise ValueError(address)", "your answer raised ValueError: 127.0.0.1, line"),
    ],
)
def test_the_interface_on_running_ranks(graded, there, sentence):
    assert sentence in graded(check.interface_for, "address, interfaces", NOTEBOOKS.format(there=there))
