"""What tests start, so that nobody marks one by hand: by the fixtures they ask for, and by name where they ask for none.

``ranks``: processes of a process group; ``hosts``: nodes with a network of their own; ``site``: the built pages in a
browser; ``build``: Sphinx or a wheel; ``alone``: its assertion is about seconds or memory, or about all processes of
the machine. The guard (tests/guard) stops a test that starts what is not said here.
"""

FIXTURES = {
    "notebook": {"ranks"},
    "uneven": {"ranks"},
    "figures": {"alone"},
    "site": {"site", "build"},
    "chromium": {"site"},
}
NAMED = {}


def markers(path, name, fixtures):
    """The markers of a test.

    Args:
        path: its file below tests.
        name: its function.
        fixtures: the names of all fixtures that it asks for, by others too.
    """
    found = set().union(*(FIXTURES.get(fixture, ()) for fixture in fixtures))
    for key in (path, f"{path}::{name}"):
        found |= set(NAMED.get(key, ()))
    return found
