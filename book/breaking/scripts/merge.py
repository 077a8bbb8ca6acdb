"""Read what black_box.py wrote on all ranks, and say for each group where its ranks part.

python merge.py FOLDER

A rank that has never called a group counts as no member of it. A recorder forgets its oldest calls, so only numbers
that no rank can have forgotten are compared. Sends and receives are left out.
"""

import pickle
import sys
from pathlib import Path


def calls_of(folder):
    """Return the calls by group, number and rank: operation, shapes, file and line."""
    groups = {}
    for file in sorted(Path(folder).glob("trace_*")):
        rank = int(file.name.removeprefix("trace_"))
        for entry in pickle.loads(file.read_bytes())["entries"]:
            if entry["is_p2p"]:
                continue
            own = [f for f in entry["frames"] if "/torch/" not in f["filename"]]
            where = f"{Path(own[0]['filename']).name} line {own[0]['line']}" if own else "?"
            name = entry["profiling_name"]  # gloo:all_reduce
            free = name.rpartition(":")[2].startswith(("all_to_all", "scatter"))  # inputs may differ by rank
            what = name, [] if free else entry["input_sizes"], where
            numbers = groups.setdefault(entry["process_group"], {})
            numbers.setdefault(entry["collective_seq_id"], {})[rank] = what
    return groups


def first_split(numbers):
    """Return the first number of a group whose calls are not alike on all its ranks, and None where all are."""
    ranks = {rank for by_rank in numbers.values() for rank in by_rank}
    oldest = max(min(n for n in numbers if rank in numbers[n]) for rank in ranks)
    for number in sorted(n for n in numbers if n >= oldest):
        by_rank = numbers[number]
        kinds = {str(what[:2]) for what in by_rank.values()}
        if len(kinds) > 1 or by_rank.keys() != ranks:
            return number, {rank: by_rank.get(rank) for rank in sorted(ranks)}
    return None


if __name__ == "__main__":
    groups = calls_of(sys.argv[1])
    if not groups:
        raise SystemExit(f"No rank has left its calls in {sys.argv[1]}.")
    for (name, description), numbers in sorted(groups.items()):
        found, ranks = first_split(numbers), sorted({rank for by_rank in numbers.values() for rank in by_rank})
        alike = f"all calls are alike, on ranks {', '.join(map(str, ranks))}"
        print(f"group {name} ({description}):", f"collective {found[0]}" if found else alike)
        for rank, what in (found[1] if found else {}).items():
            print(f"  rank {rank}:", " ".join(map(str, what)) if what else "never called it")
