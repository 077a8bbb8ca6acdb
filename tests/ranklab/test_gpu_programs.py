"""Programs of the book that need a GPU to say what they are for: what a machine without one can try of them."""

import runpy
from pathlib import Path

import pytest

import ranklab

BOOK = Path(__file__).parents[2] / "book"
ONE_CARD = """
a:10:12 [0] NCCL INFO NET/Socket : Using [0]lo:127.0.0.1<0>  # bookkit: planted
a:10:12 [0] NCCL INFO Using network Socket
NCCL version 2.28.9+cuda13.0
a:10:12 [0] NCCL INFO Channel 00/0 : 3[0] -> 0[0] [receive] via NET/Socket/0
a:10:12 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0
a:10:12 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[0] [send] via NET/Socket/0
"""
TWO_NODES = """
b:20:21 [0] NCCL INFO Using network IB
b:20:21 [1] NCCL INFO Channel 02/0 : 3[1] -> 2[0] via P2P/CUMEM
b:20:21 [1] NCCL INFO Channel 01/0 : 3[1] -> 1[1] [send] via NET/IB/2/GDRDMA
b:20:21 [1] NCCL INFO Channel 09 : 3[1] -> 4[2] via SHM/direct/direct
b:20:21 [1] NCCL INFO Channel 09 : 3[1] -> 5[3] via P2P/IPC/read
"""


@pytest.fixture(scope="module")
def read_aloud():
    return runpy.run_path(str(BOOK / "talking/scripts/nccl_says.py"))["read_aloud"]


def test_ranks_that_share_a_card_talk_by_tcp(read_aloud):
    assert read_aloud(ONE_CARD) == ["NCCL 2.28.9", "network Socket", "0 -> 1 via NET/Socket/0: TCP"]


def test_each_kind_of_path_is_told(read_aloud):
    assert read_aloud(TWO_NODES) == [
        "network IB",
        "3 -> 1 via NET/IB/2/GDRDMA: RDMA, and the network card reads GPU memory",
        "3 -> 2 via P2P/CUMEM: from GPU to GPU, over NVLink or PCIe",
        "3 -> 4 via SHM/direct/direct: through the memory of the host",
        "3 -> 5 via P2P/IPC/read: from GPU to GPU, over NVLink or PCIe",
    ]


def test_a_path_that_is_not_known_is_told_as_it_stands(read_aloud):
    assert read_aloud("Channel 00/0 : 0[0] -> 1[1] [send] via NET/Plugin/0") == ["0 -> 1 via NET/Plugin/0"]


def test_the_matrix_of_gloo_is_the_one_that_meeting_up_draws():
    program = str(BOOK / "ranks/scripts/capabilities.py")
    run = ranklab.torchrun(program, nproc_per_node=4, backend="gloo", show=False)
    assert run.failure is None
    lines = dict(line.split(" refuses ") for line in run.outputs[0].splitlines() if " refuses " in line)
    told = {name.strip(): refused for name, refused in lines.items()}
    assert told.pop("send, recv") == "nothing"
    assert told.pop("gather") == "float8_e4m3fn, int16, complex64"
    assert set(told.values()) == {"float8_e4m3fn, int16"} and len(told) == 7
    assert run.outputs[0].splitlines()[-1] == "gloo: wrong results: none"


def test_on_a_cpu_a_late_rank_is_told_by_an_exception():
    run = ranklab.torchrun(str(BOOK / "launching/scripts/late.py"), nproc_per_node=2, backend="gloo", show=False)
    assert run.outputs[0] == "together: 2\n"
    assert run.failure is not None and run.failure.rank == 0
    assert "Timed out waiting 10000ms" in run.failure.error
