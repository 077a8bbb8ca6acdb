"""Read what black_box.py wrote on all ranks, and say where the ranks part.

python merge.py FOLDER
"""

import pickle
import sys
from pathlib import Path


def calls_of(folder):
    """Return group and number of each collective, and by rank what it was: operation, shapes, file and line."""
    calls = {}
    for file in sorted(Path(folder).glob("trace_*")):
        rank = int(file.name.removeprefix("trace_"))
        for entry in pickle.loads(file.read_bytes())["entries"]:
            own = [f for f in entry["frames"] if "/torch/" not in f["filename"]]
            where = f"{Path(own[0]['filename']).name} line {own[0]['line']}" if own else "?"
            place = entry["process_group"][0], entry["collective_seq_id"]
            what = entry["profiling_name"], entry["input_sizes"], where
            calls.setdefault(place, {})[rank] = what
    return calls


def first_split(calls):
    """Return the first collective that not all ranks called alike: its group, its number, and the calls by rank."""
    ranks = {rank for by_rank in calls.values() for rank in by_rank}
    for (group, number), by_rank in sorted(calls.items(), key=lambda call: call[0][1]):
        kinds = {str(what[:2]) for what in by_rank.values()}
        if len(kinds) > 1 or by_rank.keys() != ranks:
            return group, number, {rank: by_rank.get(rank) for rank in sorted(ranks)}
    return None


if __name__ == "__main__":
    found = first_split(calls_of(sys.argv[1]))
    print("no split" if found is None else f"group {found[0]}, collective {found[1]}")
    for rank, what in (found[2] if found else {}).items():
        print(f"  rank {rank}:", " ".join(map(str, what)) if what else "never called it")
