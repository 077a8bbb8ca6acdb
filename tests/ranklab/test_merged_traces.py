"""What the chapter *profiling* gives its readers to take home: a merge of traces, and SQL on it. No rank is started."""

import importlib
import json
import os
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "book" / "capstone" / "scripts"


@pytest.fixture
def scripts(monkeypatch):
    """Return the module that merges and the one that reads, as a program beside them would import them."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("merge_traces"), importlib.import_module("read_trace")


@pytest.fixture
def files(tmp_path):
    """Two ranks' traces, as torch 2.13 writes them: one process id, equal arrows, and clocks with different bases."""
    for rank in range(2):
        clock = 1000.5 - 10**6 * rank  # microseconds; the base of rank 1 is a second later
        events = [
            _named("process_name", 0, "python"),
            _named("thread_name", 7, "thread 7 (pt_main)"),
            _named("thread_name", 8, "thread 8 (pt_gloo_runloop)"),
            _named("thread_name", 9, "stream 9"),
            {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": 0, "ts": 0, "dur": 9},
            _span("ProfilerStep#2", 7, clock, 100.0),
            _span("backward", 7, clock + 10, 50.25),
            _span("gloo:all_reduce", 8, clock + 20 + rank, 30.125),
            _span("kernel", 9, clock + 20, 1.0),
            _span("ProfilerStep#2", 9, clock + 20, 90.0) | {"cat": "gpu_user_annotation"},
            _span("model.py(1): forward", 7, clock + 5, 100.0) | {"cat": "python_function"},
            {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": 7, "tid": 7, "ts": clock + 1},
        ]
        trace = {"baseTimeNanoseconds": 10**18 + 10**9 * rank, "traceEvents": events}
        trace["distributedInfo"] = {"rank": rank}
        (tmp_path / f"{rank}.json").write_text(json.dumps(trace))
    return [tmp_path / "1.json", tmp_path / "0.json"]


def _named(kind, tid, name):
    return {"ph": "M", "name": kind, "pid": 7, "tid": tid, "ts": 0, "args": {"name": name}}


def _span(name, tid, ts, dur):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": tid, "ts": ts, "dur": dur}


def test_ranks_keep_apart_what_has_one_number(scripts, files):
    events = scripts[0].merge(files)
    assert {event["pid"] for event in events} == {1, 2}
    assert len({event["id"] for event in events if event["ph"] == "s"}) == 2
    assert all(isinstance(event["id"], int) for event in events if event["ph"] == "s")
    lanes = {(event["pid"], event["tid"]) for event in events if event["ph"] == "X"}
    assert len({tid for _, tid in lanes}) == len(lanes) == 8


def test_ranks_and_threads_have_names(scripts, files):
    names = [(e["pid"], e["name"], e["args"]["name"]) for e in scripts[0].merge(files) if e["ph"] == "M"]
    for pid, rank in (1, "rank 0"), (2, "rank 1"):
        assert [name for p, kind, name in names if (p, kind) == (pid, "process_name")] == [rank]
        threads = {name for p, kind, name in names if (p, kind) == (pid, "thread_name")}
        assert threads == {"main", "gloo", "stream 9", "Python"}


def test_clocks_with_different_bases_are_one_clock(scripts, files):
    steps = [e for e in scripts[0].merge(files) if e["name"] == "ProfilerStep#2" and e["cat"] == "cpu_op"]
    starts = {e["pid"]: e["ts"] for e in steps}
    assert starts == {1: 0, 2: 0}
    assert min(event["ts"] for event in scripts[0].merge(files)) == 0


def test_a_trace_without_a_group_takes_its_place(scripts, files):
    for path in files:
        trace = json.loads(path.read_text())
        del trace["distributedInfo"]
        path.write_text(json.dumps(trace))
    assert {event["pid"] for event in scripts[0].merge(files)} == {1, 2}


def test_spans_are_read_in_order(scripts, files, tmp_path):
    merge, read = scripts
    merge.write_merged(tmp_path / "merged.json", files)
    rows = read.spans(tmp_path / "merged.json")
    assert [row[2] for row in rows] == sorted(row[2] for row in rows)
    assert (1, "gloo:all_reduce", 0.021, 0.051125) in [(r, n, round(s, 6), round(e, 6)) for r, n, s, e in rows]
    assert len(rows) == 10


def test_perfettos_own_program_gives_the_same_rows(scripts, files, tmp_path):
    pytest.importorskip("perfetto", reason="pip install perfetto")
    if "TRACE_PROCESSOR" not in os.environ:
        pytest.skip("TRACE_PROCESSOR names no program of Perfetto's")
    merge, read = scripts
    merge.write_merged(tmp_path / "merged.json", files)
    path = tmp_path / "merged.json"
    assert read.ask(path, read.SPANS, perfetto=True) == read.ask(path, read.SPANS)
