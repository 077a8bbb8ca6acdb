"""``python -m tests.variables.stage FILE`` runs all programs, and writes what each has printed into the file."""

import json
import sys
from pathlib import Path

from tests.messages import stage

from . import programs

LONGEST = "waiting.one_barrier"  # waits thirteen seconds: it begins first
stage.AT_ONCE = 6  # they wait for most of their time

if __name__ == "__main__":
    programs.load()
    told = Path(sys.argv[1])
    names = sys.argv[2:] or sorted(stage.PROGRAMS, key=lambda name: (name != LONGEST, name))
    told.write_text(json.dumps(stage.run(names, told.parent)))
