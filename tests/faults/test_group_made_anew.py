"""A group that is made anew has the name of the last one; what a report says of it must be its own."""

import pytest
from faults_catalogue import SETUP

ANYWAY = "if dist.is_initialized():\n    dist.destroy_process_group()"
WAYS_TO_MEET = {
    "at an address": "dist.init_process_group('gloo')",
    "in a file": "dist.init_process_group(store=dist.FileStore({file!r}, {size}), rank=rank, world_size={size})",
}


@pytest.mark.parametrize("way", WAYS_TO_MEET)
def test_calls_of_the_last_group_are_not_told(notebook, tmp_path, way):
    """Sends and receives are in no recorder, and count as calls: the only entries are those of the last group."""
    place = {"file": str(tmp_path / "store"), "size": notebook.size}
    start = WAYS_TO_MEET[way].format(**place)
    for cell in (f"{SETUP}\n{ANYWAY}", WAYS_TO_MEET["at an address"]):
        shown = notebook.px(cell, "--timeout 60")
        assert shown.error is None, shown.text
    apart = notebook.px("dist.all_reduce(torch.ones(1)) if rank == 0 else dist.barrier()", "--timeout 2")
    assert "disagree" in apart.text, apart.text
    for cell in (ANYWAY, start):
        shown = notebook.px(cell, "--timeout 60")
        assert shown.error is None, shown.text
    waits = notebook.px("dist.recv(torch.ones(4), (rank + 1) % dist.get_world_size())", "--timeout 2")
    assert "ranks 0–2 wait for each other: rank 0 receives from rank 1" in waits.text, waits.text
    assert "all_reduce" not in waits.text and "barrier" not in waits.text, waits.text
