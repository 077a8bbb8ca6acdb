"""Hosts that are not there, so that a program can ask ``if world.hosts:`` and go on without them."""

from __future__ import annotations

from typing import NoReturn

from ..errors import WorldError


class AbsentHosts:
    """An empty sequence of hosts: false, of length 0, and whatever else is asked of it raises the reason.

    Args:
        why: one sentence: why there are no hosts.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def __len__(self) -> int:
        return 0

    def __getitem__(self, number: object) -> NoReturn:
        raise WorldError(self._why)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)  # Python and IPython look for names of their own; the answer is no
        raise WorldError(self._why)

    def __repr__(self) -> str:
        return f"no hosts: {self._why}"
