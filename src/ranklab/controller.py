"""The process that runs ipyparallel's controller: the same program, plus the dead man's switch."""

from __future__ import annotations

from ipyparallel.controller.app import main

from .deadman import watch_owner

if __name__ == "__main__":
    watch_owner()
    main()
