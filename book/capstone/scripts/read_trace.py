"""Ask a merged trace in SQL, with the tables of Perfetto's trace processor. The chapter *profiling* does.

python read_trace.py merged.json "SELECT name, dur FROM slice ORDER BY dur DESC LIMIT 5"

Where TRACE_PROCESSOR is the path of Perfetto's program, `perfetto=True` asks that program (pip install perfetto).
"""

import json
import os
import sqlite3
import sys
from pathlib import Path

TABLES = """
CREATE TABLE process (upid INTEGER PRIMARY KEY, pid INTEGER, name TEXT);
CREATE TABLE thread (utid INTEGER PRIMARY KEY, tid INTEGER, name TEXT, upid INTEGER);
CREATE TABLE thread_track (id INTEGER PRIMARY KEY, utid INTEGER);
CREATE TABLE slice (id INTEGER PRIMARY KEY, ts INTEGER, dur INTEGER, category TEXT, name TEXT, track_id INTEGER);
"""
SPANS = """
SELECT SUBSTR(process.name, 6) + 0, slice.name, slice.ts / 1e6, (slice.ts + slice.dur) / 1e6
FROM slice JOIN thread_track ON slice.track_id = thread_track.id
  JOIN thread USING (utid) JOIN process USING (upid)
WHERE COALESCE(slice.category, '') != 'gpu_user_annotation'
ORDER BY slice.ts, slice.dur DESC
"""


def tables(path):
    """Return a SQLite connection with the four tables of a merged trace; times are nanoseconds, as in Perfetto."""
    events = json.loads(Path(path).read_text())["traceEvents"]
    base = sqlite3.connect(":memory:")
    base.executescript(TABLES)
    names = {(each["name"], each["pid"], each["tid"]): each["args"].get("name") for each in events if each["ph"] == "M"}
    for pid in {each["pid"] for each in events}:
        base.execute("INSERT INTO process VALUES (?, ?, ?)", (pid, pid, names.get(("process_name", pid, 0))))
    slices = [each for each in events if each["ph"] == "X"]
    for pid, tid in {(each["pid"], each["tid"]) for each in slices}:
        base.execute("INSERT INTO thread VALUES (?, ?, ?, ?)", (tid, tid, names.get(("thread_name", pid, tid)), pid))
        base.execute("INSERT INTO thread_track VALUES (?, ?)", (tid, tid))
    for each in slices:
        row = round(each["ts"] * 1000), round(each["dur"] * 1000), each.get("cat"), each["name"], each["tid"]
        base.execute("INSERT INTO slice VALUES (NULL, ?, ?, ?, ?, ?)", row)
    return base


def ask(path, query, perfetto=False):
    """Return the rows of a query, as a list of tuples."""
    if not perfetto:
        return tables(path).execute(query).fetchall()
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    config = TraceProcessorConfig(bin_path=os.environ["TRACE_PROCESSOR"])
    with TraceProcessor(trace=str(path), config=config) as processor:
        return [tuple(vars(row).values()) for row in processor.query(query)]


def spans(path):
    """Return the rank, the name, the begin and the end of all events, in ms, in the order of their begin.

    Left out are the copies of a program's own names that the profiler puts on the streams of a GPU.
    """
    return ask(path, SPANS)


if __name__ == "__main__":
    for row in ask(*sys.argv[1:3], perfetto="TRACE_PROCESSOR" in os.environ):
        print(*row, sep="\t")
