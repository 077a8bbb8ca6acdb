"""The graders of two-computers: right answers pass, each classic mistake is told in its own sentence."""

import pytest

from ranklab import check
from ranklab.check import hosts


def said(capsys, grader, answer) -> str:
    grader(answer)
    return capsys.readouterr().out.strip()


def right(megabytes, nodes, mbit):
    ranks = sum(nodes)
    return 2 * (ranks - 1) / ranks * megabytes * 8 / mbit if len(nodes) > 1 else 0


def test_the_cables_of_a_ring(capsys):
    assert said(capsys, check.wire_seconds, right).startswith("Correct: 5 rings were counted")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda megabytes, nodes, mbit: megabytes / mbit, "a byte has 8 bits"),
        (lambda megabytes, nodes, mbit: right(megabytes, nodes, mbit) / 8, "a byte has 8 bits"),
        (lambda megabytes, nodes, mbit: megabytes * 8 / mbit, "2 (n − 1) / n of the data"),
        (lambda megabytes, nodes, mbit: 16 * megabytes / mbit, "your answer is 1.33 times"),
        (lambda megabytes, nodes, mbit: 3 * right(megabytes, nodes, mbit) / 2, "your answer is 1.5 times"),
        (lambda megabytes, nodes, mbit: right(megabytes, [1, *nodes][1:], mbit) * 2, "both directions at once"),
        (lambda megabytes, nodes, mbit: right(megabytes, [*nodes], mbit) * sum(nodes), "only one rank of a computer"),
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

    assert "n counts ranks, here 4, not computers" in said(capsys, check.wire_seconds, wrong)


@pytest.fixture
def ranks(monkeypatch):
    """Two ranks, played: the first meets over eth0, the second too."""
    found = {"lo": "127.0.0.1/8", "eth0": "10.5.0.2/24"}
    monkeypatch.setattr(hosts, "on_ranks", lambda _, answer: [(answer("10.5.0.1", found), "eth0")] * 2)


def interface_for(address, interfaces):
    import ipaddress

    wanted = ipaddress.ip_address(address)
    for name, own in interfaces.items():
        if wanted in ipaddress.ip_interface(own).network:
            return name
    raise ValueError(f"no network for {address}")


def same_three_numbers(address, interfaces):
    start = address.rsplit(".", 1)[0]
    return next(name for name, own in interfaces.items() if own.startswith(start))


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
        (not_on_this_rank, "On rank 0 the way to rank 0 is eth0, your answer is 'lo'"),
    ],
)
def test_a_wrong_interface_is_told_why(capsys, ranks, wrong, sentence):
    told = said(capsys, check.interface_for, wrong)
    assert told.startswith("Not yet. ")
    assert sentence in told
