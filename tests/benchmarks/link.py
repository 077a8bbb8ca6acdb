"""What an all_reduce gets of the link between two hosts: ``python -m tests.benchmarks.link``, part of ``make bench``.

Four ranks on two hosts add up 16.8 MB. A ring sends 2 (n − 1) / n of the bytes over each cable and both cables are
busy both ways, so at best it takes 1.5 × bytes / rate. The link's queue counts whole Ethernet frames, so TCP can
deliver at most 1448 of 1514 bytes of the rate, which is what the result is compared against; a plain TCP connection
over the same link is measured beside it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import ranklab
from ranklab.errors import NoHosts

RATES = {"100mbit": 1e8, "500mbit": 5e8, "1gbit": 1e9}
ELEMENTS = 4_200_000  # of float32: 16.8 MB
ROUNDS = 7
PAYLOAD = 1448 / 1514  # of a full Ethernet frame
TOLERANCE = 0.05
PREPARE = f"""
import time, torch, torch.distributed as dist
dist.init_process_group()
tensor = torch.ones({ELEMENTS})
def timed():
    dist.barrier()
    began = time.monotonic()
    dist.all_reduce(tensor)
    dist.barrier()
    return time.monotonic() - began
"""
SERVER = """
import socket, time
server = socket.create_server(("", 0))
print(server.getsockname()[1], flush=True)
connection, _ = server.accept()
began, got = time.monotonic(), 0
while part := connection.recv(1 << 20):
    got += len(part)
print(got * 8 / (time.monotonic() - began))
"""
CLIENT = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:
    connection.sendall(bytes(int(sys.argv[3])))
"""


def measure(rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """Measure each rate.

    Returns:
        For each rate: bits per second of the link, of a TCP connection, of the all_reduce's own messages (median, low,
        high), and the ratio of that median to what the link can carry for TCP.

    Raises:
        NoHosts: this machine allows no hosts.
    """
    figures = {}
    with ranklab.hosts(1):
        pass  # a world would fall back to loopback
    with ranklab.start(nodes=[2, 2], link=next(iter(RATES))) as world:
        view = world.view(range(world.size))
        view.execute(PREPARE, block=True)
        for name, rate in RATES.items():
            world.hosts.rate(name)
            view.execute(f"timed(); seconds = [timed() for _ in range({rounds})]", block=True)
            # The slowest rank's time is the collective's.
            seconds = [max(times) for times in zip(*world.pull("seconds"), strict=True)]
            rates = sorted(1.5 * ELEMENTS * 32 / second for second in seconds)
            middle = statistics.median(rates)
            figures[name] = {
                "link": rate,
                "tcp": plain_tcp(world.hosts, rate),
                "median": middle,
                "low": rates[0],
                "high": rates[-1],
                "share": middle / (rate * PAYLOAD),
            }
    return figures


def plain_tcp(lab, rate: float) -> float:
    """Return the bits per second of one connection from the first host to the second, over a second."""
    python = [sys.executable, "-I", "-S", "-c"]
    with lab[1].popen([*python, SERVER], stdout=subprocess.PIPE, text=True) as server:
        port = server.stdout.readline().strip()
        lab[0].run([*python, CLIENT, lab[1].address, port, str(int(rate / 8))])
        return float(server.stdout.read())


def report(console: Console, out: Path, rounds: int = ROUNDS) -> bool:
    """Measure, show and store; return whether an all_reduce gets what it should at 100 Mbit/s."""
    try:
        figures = measure(rounds)
    except NoHosts as why:
        console.print(f"Links were not measured: {why}")
        return True
    table = Table(title="16.8 MB all_reduce, 2 × 2 ranks on two hosts, Mbit/s: median (low – high)")
    for heading in ("link", "TCP can carry", "one TCP connection", "1.5 × bytes / time", "share"):
        table.add_column(heading, justify="right")
    for name, row in figures.items():
        found = f"{row['median'] / 1e6:.1f} ({row['low'] / 1e6:.1f} – {row['high'] / 1e6:.1f})"
        can, tcp = row["link"] * PAYLOAD / 1e6, row["tcp"] / 1e6
        table.add_row(name, f"{can:.1f}", f"{tcp:.1f}", found, f"{row['share']:.3f}")
    console.print(table)
    out.mkdir(parents=True, exist_ok=True)
    (out / "link.json").write_text(json.dumps(figures, indent=1) + "\n")
    kept = abs(1 - figures["100mbit"]["share"]) <= TOLERANCE
    console.print(f"At 100 Mbit/s within {TOLERANCE:.0%}: {'kept' if kept else '[bold red]broken'}")
    return kept


if __name__ == "__main__":
    os.environ["IPP_NONINTERACTIVE"] = "1"
    sys.exit(0 if report(Console(), Path("_build/bench")) else 1)
