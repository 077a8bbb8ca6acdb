"""What must not be published: patterns of machines, people and secrets, and of one run only.

Pure: text in, what was found out.
"""

import getpass
import ipaddress
import re
import socket
from dataclasses import dataclass
from html.parser import HTMLParser


@dataclass(frozen=True)
class Pattern:
    """Something to look for: its name in messages, the expression, and what an author does about it."""

    name: str
    expression: re.Pattern
    fix: str

    def find(self, text):
        """The distinct pieces of ``text`` that match, in order."""
        return list(dict.fromkeys(match[0] for match in self.expression.finditer(text)))


def _pattern(name, expression, fix):
    return Pattern(name, re.compile(expression), fix)


PATH = _pattern(
    "absolute path",
    r"(?:(?<![\w.\-/])|(?<=file://))/(?:home|Users|root|tmp|work|private/var|var/folders)/[^\s'\"<>)\]]*"
    r"|\b[A-Z]:\\[^\s'\"<>]+"
    r"|[\w./~-]{0,100}[/\\]site-packages\b[\w./-]*",
    "show a path relative to the chapter, or none",
)

SECRETS = (
    _pattern(
        "token",
        r"\bhf_[A-Za-z0-9]{20,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}|\bsk-[A-Za-z0-9_-]{20,}"
        r"|\bAKIA[0-9A-Z]{16}\b|\bxox[abprs]-[A-Za-z0-9-]{10,}",
        "revoke it now, then take it out",
    ),
    _pattern("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----", "replace the key, then take it out"),
    _pattern(
        "GPU's identity",
        r"\b(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        "print the GPU's index",
    ),
)

MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"

# Of this machine or this run; stored outputs may hold none of it.
ONE_RUN = (
    _pattern(
        "process id",
        r"(?i)\b(?:pid|process id)s?\b['\"]?[ =:]*\d+",
        "print the rank; a process id is another one in every run",
    ),
    _pattern(
        "port",
        r"(?:\b\d{1,3}(?:\.\d{1,3}){3}|\blocalhost|\[[0-9a-f:]+\]):\d{2,5}\b"
        r"|(?i:\bport)['\"]?[ =:]+\d{2,5}\b",
        "leave the port out; it is another one in every run",
    ),
    _pattern(
        "memory address",
        r"\b0x[0-9a-fA-F]{6,}\b",
        "print a name instead of the object; its address is another one in every run",
    ),
    _pattern(
        "random identifier",
        r"(?<![\w-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        "leave it out; it is another one in every run",
    ),
    _pattern(
        "date",
        rf"\b20\d\d-[01]\d-[0-3]\d\b|\b\d{{1,2}} {MONTH}[a-z]* 20\d\d\b"
        rf"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {MONTH} [ \d]\d\b",
        "leave the date out of what is printed",
    ),
    _pattern("clock time", r"\b[0-2]\d:[0-5]\d:[0-5]\d\b", "leave the time of day out of what is printed"),
)

# Whole seconds pass: a deadline that the chapter sets ("10 s") is the same in every run.
TIMING = _pattern(
    "timing",
    r"\b\d+\.\d+ ?(?:ns|µs|us|ms|s|sec|seconds|min)\b|\b\d+ ?(?:ns|µs|us|ms)\b"
    r"|\b\d+\.\d+ ?[kKMG]?(?:i?B|bit)/s\b|\b\d+(?:\.\d+)? ?it/s\b",
    "draw it, assert a ratio, or tag the cell nbval-ignore-output (two a chapter)",
)

# Loopback, the private networks that labs are built on, and those that RFC 5737 keeps for documents.
TAUGHT = [
    ipaddress.ip_network(network)
    for network in (
        "127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "0.0.0.0/32",
        "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "::1/128",
    )
]  # fmt: skip
V4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)")
V6 = re.compile(r"(?<![\w:.])(?:[0-9a-fA-F]{1,4}::?){2,7}[0-9a-fA-F]{1,4}(?![\w:])")


def addresses(text):
    """Network addresses in ``text`` that belong to somebody: no loopback, laboratory or example."""
    found = []
    for candidate in V4.findall(text) + V6.findall(text):
        try:
            address = ipaddress.ip_address(candidate)
        except ValueError:
            continue  # a version number, a clock time
        if not any(address in network for network in TAUGHT if network.version == address.version):
            found.append(candidate)
    return list(dict.fromkeys(found))


def names_of_this_machine():
    """The host's and the user's name, where they are names that say something.

    Names that every container shares, and those of one or two letters, give nobody away and
    would be found in ordinary words.
    """
    common = {"root", "user", "localhost", "runner", "ubuntu", "debian", "jovyan", "builder", "docker"}
    host = socket.gethostname()
    names = {host, host.split(".")[0], getpass.getuser()}
    return sorted(name for name in names if len(name) > 2 and name not in common)


ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
DATA_URI = re.compile(r"data:[\w/+.-]+;base64,[A-Za-z0-9+/=]+")


def plain(text):
    """Text without colour codes and embedded pictures, in both of which anything can be found."""
    return DATA_URI.sub("", ANSI.sub("", text))


def visible(html):
    """What a reader sees of an HTML output: no tags, styles or scripts."""
    reader = _Visible()
    reader.feed(html)
    return " ".join(reader.pieces)


class _Visible(HTMLParser):
    def __init__(self):
        super().__init__()
        self.pieces, self._hidden = [], 0

    def handle_starttag(self, tag, attrs):
        self._hidden += tag in ("style", "script")

    def handle_endtag(self, tag):
        self._hidden -= tag in ("style", "script")

    def handle_data(self, data):
        if not self._hidden:
            self.pieces.append(data)
