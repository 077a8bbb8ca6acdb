"""Rates and delays: what a reader may write, what tc gets, which addresses hosts get."""

from ipaddress import IPv4Network

import pytest

from ranklab.errors import WorldError
from ranklab.lab.rates import Link, read_delay, read_links, read_rate
from ranklab.lab.subnets import choose_subnet, used_networks
from ranklab.programs import missing


@pytest.mark.parametrize(
    ("text", "rate", "shown"),
    [
        ("1gbit", 1e9, "1 Gbit/s"),
        ("100mbit", 1e8, "100 Mbit/s"),
        ("2.5 Gbit/s", 2.5e9, "2.5 Gbit/s"),
        ("500kbit", 5e5, "500 kbit/s"),
        ("unlimited", None, "unlimited"),
    ],
)
def test_a_rate_is_read_and_said(text, rate, shown):
    assert read_rate(text) == rate
    assert str(Link(read_rate(text))) == shown


@pytest.mark.parametrize("text", ["fast", "", "1", "1gb", "-1gbit", "0mbit", "1kbit", "999gbit", 1, None, True])
def test_what_is_no_rate_is_refused_in_one_sentence(text):
    with pytest.raises(WorldError, match=r"^A link (has a rate such as|can have rates)[^\n]*$"):
        read_rate(text)


@pytest.mark.parametrize(("text", "seconds"), [("2ms", 0.002), ("500us", 0.0005), ("0.1s", 0.1), ("0ms", 0)])
def test_a_delay_is_read(text, seconds):
    assert read_delay(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["slow", "2", "11s", 2, None])
def test_what_is_no_delay_is_refused(text):
    with pytest.raises(WorldError, match="delay"):
        read_delay(text)


def test_a_link_needs_nodes_and_a_delay_needs_a_link():
    assert read_links(None, "0ms", (2, 2)) == ()
    assert read_links("1gbit", "2ms", (2, 1)) == (Link(1e9, 0.002),) * 2
    with pytest.raises(WorldError, match=r"name them: start\(nodes=\[2, 2\], link='1gbit'\)"):
        read_links("1gbit", "0ms", ())
    with pytest.raises(WorldError, match="A delay is a property of a link"):
        read_links(None, "2ms", (2, 2))


def test_the_bucket_is_two_milliseconds_and_never_less_than_ten_frames():
    assert "rate 1000000000bit burst 250000 latency 50ms" in Link(1e9).queues("eth0", delayed=True)[-1]
    assert "rate 500000bit burst 15000 latency 50ms" in Link(5e5).queues("eth0", delayed=True)[-1]


def test_a_delay_is_at_one_end_of_a_cable():
    link = Link(1e8, 0.002)
    assert any("netem delay 2000us" in line for line in link.queues("eth0", delayed=True))
    assert not any("netem" in line for line in link.queues("port1", delayed=False))
    assert str(link) == "100 Mbit/s, 2 ms"


def test_a_network_that_this_machine_uses_is_passed_over():
    used = [IPv4Network("192.168.1.0/24"), IPv4Network("192.168.2.128/25"), IPv4Network("10.0.0.0/8")]
    assert str(choose_subnet(None, used)) == "192.168.3.0/24"
    assert str(choose_subnet(None, [IPv4Network("192.168.0.0/16")])) == "172.16.77.0/24"
    assert str(choose_subnet("192.168.7.0/24", used)) == "192.168.7.0/24"


@pytest.mark.parametrize("asked", ["10.1.2.0/24", "192.168.2.0/24"])
def test_a_network_in_use_is_refused_where_it_is_asked_for(asked):
    with pytest.raises(WorldError, match=r"This machine uses .* itself: leave subnet out"):
        choose_subnet(asked, [IPv4Network("192.168.2.128/25"), IPv4Network("10.0.0.0/8")])


@pytest.mark.parametrize("asked", ["home", "192.168.7.0/16", "192.168.7.1/24", "fd00::/64"])
def test_what_is_no_subnet_is_refused(asked):
    with pytest.raises(WorldError, match="A subnet for hosts is one like"):
        choose_subnet(asked, [])


@pytest.mark.skipif(bool(missing("ip")), reason="networks are asked for where hosts can be made, with ip")
def test_this_machines_own_networks_are_known():
    assert IPv4Network("127.0.0.0/8") in used_networks()
