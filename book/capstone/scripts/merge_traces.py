"""Merge the traces of all ranks into one file for ui.perfetto.dev. The chapter *profiling* makes and reads such files.

python merge_traces.py merged.json rank0.json rank1.json
"""

import json
import re
import sys
from pathlib import Path

ARROWS = 2**32  # more than a trace has; Perfetto wants whole numbers


def merge(paths):
    """Return the events of all traces: a process for each rank, named after it, on one clock that begins at 0."""
    traces = [json.loads(Path(path).read_text()) for path in paths]
    first, events, lanes, names = traces[0]["baseTimeNanoseconds"], [], {}, {}
    for place, trace in enumerate(traces):
        rank = trace.get("distributedInfo", {}).get("rank", place)
        shift = trace["baseTimeNanoseconds"] - first
        for event in trace["traceEvents"]:
            if not isinstance(event["pid"], int) or event["name"].startswith("process_"):
                continue  # the profiler's own lines, and the name "python"
            stack = event.get("cat") == "python_function"  # its frames do not nest with record_function
            lane = lanes.setdefault((rank, event["pid"], event["tid"], stack), len(lanes) + 1)
            if event["name"] == "thread_name":
                own = re.sub(r"thread \d+ \((.*)\)", r"\1", event["args"]["name"])
                names.setdefault((rank, lane), own)
            if event["ph"] == "M":
                continue
            moved = event | {"pid": rank + 1, "tid": lane}  # Perfetto's process 0 is the idle one
            moved["ts"] = round(event["ts"] * 1000) + shift  # whole nanoseconds: floats would round
            if "id" in event:
                moved["id"] = rank * ARROWS + event["id"]  # an arrow stays on its rank
            events.append(moved)
            if stack:
                names[rank, lane] = "Python"
            elif event.get("cat") != "gpu_user_annotation" and event["name"].startswith(("ProfilerStep", "gloo:")):
                names[rank, lane] = "main" if event["name"].startswith("Prof") else "gloo"
        names[rank, 0] = f"rank {rank}"
    start = min(event["ts"] for event in events)
    events = [event | {"ts": (event["ts"] - start) / 1000} for event in events]
    for (rank, lane), name in names.items():
        line = {"ph": "M", "name": "thread_name" if lane else "process_name", "ts": 0}
        events.append(line | {"pid": rank + 1, "tid": lane, "args": {"name": name}})
    return events


def write_merged(out, paths):
    """Write the merged events to a file."""
    Path(out).write_text(json.dumps({"traceEvents": merge(paths)}))


if __name__ == "__main__":
    write_merged(sys.argv[1], sys.argv[2:])
