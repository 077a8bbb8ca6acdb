"""The file that JupyterHub reads: all of it stands in ``configuration``."""

from bookkit.hub.configuration import configure
from bookkit.hub.room import load

configure(get_config(), load())  # type: ignore[name-defined]  # noqa: F821 — JupyterHub gives it
