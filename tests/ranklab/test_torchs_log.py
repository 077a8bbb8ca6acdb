"""Torch's own log and NCCL's, folded away on ranks with GPUs. The lines have its form; no GPU wrote them here."""

from ranklab.cells.panel import Panel
from ranklab.hangs import deaths, raised, report, torchs_log
from ranklab.outcome import CellOutcome, RankOutcome
from ranklab.system.backends import ON_CPUS, ON_GPUS

HEAD = "[rank1]:[E1122 10:30:00.123456789 ProcessGroupNCCL.cpp:683] "
TIMEOUT = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, Timeout(ms)=6000) ran"
FRAMES = """Exception raised from checkTimeout at /build/torch/csrc/ProcessGroupNCCL.cpp:686 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7f00deadbeef in /build/lib/libc10.so)
frame #1: <unknown function> + 0xdc253 (0x7f00deadbeef in /build/lib/libstdc++.so.6)

"""
STACK = "Stack trace of the failed collective: \n#0 all_reduce from /build/torch/distributed/distributed_c10d.py:2810\n"
LOG = (
    f"{HEAD}[Rank 1] {TIMEOUT} for 6042 milliseconds before timing out.\n"
    f"{HEAD}{STACK}#1 <module> from /build/ipykernel_7/12.py:1\n\n"  # bookkit: planted
    f"{HEAD}[PG ID 0 PG GUID 0(default_pg) Rank 1] watchdog thread terminated with exception: {TIMEOUT}\n{FRAMES}"
    "some-host:71:80 [0] socket.cc:568 NCCL WARN socketFinalizeConnect: wrong type\n"
    "[2026-01-02 03:04:05] some-host:71:80 [0] transport.cc:1 NCCL WARN socketFinalizeConnect: wrong type\n"
)
ASSERTION = "/build/IndexKernel.cu:111: operator(): block: [0,0,0], thread: [{},0,0] Assertion `index < size` failed.\n"


def folded(backend=ON_GPUS, **wrote):
    entry = RankOutcome(1, **wrote)
    torchs_log.fold(entry, backend)
    return entry


def test_the_log_is_taken_out_and_what_the_reader_wrote_stays():
    entry = folded(stderr=f"mine\n{LOG}also mine\nframe: mine too\n")
    assert entry.stderr == "mine\nalso mine\nframe: mine too\n"
    assert entry.torchs_log.splitlines() == [
        f"ProcessGroupNCCL.cpp: {TIMEOUT} for 6042 milliseconds before timing out.",
        "ProcessGroupNCCL.cpp: Stack trace of the failed collective:",
        f"ProcessGroupNCCL.cpp: watchdog thread terminated with exception: {TIMEOUT}",
        "socket.cc:568 NCCL WARN socketFinalizeConnect: wrong type",
        "transport.cc:1 NCCL WARN socketFinalizeConnect: wrong type",
        "… 5 lines of stacks left out …",
    ]


def test_nccl_logs_on_the_other_stream_are_folded_too():
    entry = folded(stdout=f"loss 0.5\n{LOG.splitlines()[-1]}\nNCCL version 2.28.9+cuda13.0\ndone")
    assert entry.stdout == "loss 0.5\ndone"
    assert entry.torchs_log.endswith("NCCL version 2.28.9+cuda13.0")


def test_on_cpus_everything_stays_where_it_is():
    assert folded(ON_CPUS, stderr=LOG).stderr == LOG


def test_a_panel_opens_the_log_on_a_click_and_its_text_leaves_it_out():
    entries = [RankOutcome(rank, stdout="fine", torchs_log="a.cpp: <words>") for rank in range(2)]
    panel = Panel(CellOutcome(entries, torchs_log=torchs_log.joined(entries)))
    assert panel.text() == "ranks 0, 1   fine"
    assert "<summary>What torch wrote</summary>" in panel.html() and "a.cpp: &lt;words&gt;" in panel.html()
    silent = [RankOutcome(0, torchs_log="a.cpp: words")]
    assert not Panel(CellOutcome(silent, torchs_log=torchs_log.joined(silent)))


def test_a_report_has_the_logs_of_its_ranks():
    told = report.summarise([folded(stderr=LOG)], "finished", 1, [0, 1], 2)
    assert [ranks for ranks, _ in told.torchs_log] == [[1]]


def test_a_device_side_assert_is_told_in_words():
    last = (
        "".join(ASSERTION.format(thread) for thread in range(64))
        + f"{HEAD}[PG ID 0 PG GUID 0(default_pg) Rank 1] watchdog thread terminated with exception: "
        + "CUDA error: device-side assert triggered\nCUDA kernel errors might be asynchronously reported\n\n"
        + "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  CUDA error: device-side "
        + f"assert triggered\n{FRAMES}"
    )
    entry = RankOutcome(1, state="died", exit_code=-6, last_words=last)
    torchs_log.fold_last_words(entry, ON_GPUS)
    assert entry.torchs_log.splitlines()[:2] == [
        "IndexKernel.cu:111: Assertion `index < size` failed.",
        "ProcessGroupNCCL.cpp: watchdog thread terminated with exception: CUDA error: device-side assert triggered",
    ]
    assert "0x7f" not in entry.torchs_log and "frame" not in entry.torchs_log and "/build" not in entry.torchs_log
    assert deaths.how(entry, "") == "was killed by SIGABRT."
    cause, fix = deaths.why(entry, [entry])
    assert "an assertion failed in a kernel" in cause and cause.endswith("It failed at `index < size`.")
    assert "on the CPU" in fix


def test_the_watchdog_of_a_group_that_ends_a_program_is_told():
    entry = RankOutcome(1, state="died", exit_code=-6, last_words=LOG)
    assert "longer than the timeout of its group" in deaths.why(entry, [entry])[0]


def test_errors_of_gpus_are_told_in_words():
    for error, cause, fix in (
        (
            "DistBackendError: NCCL error in: …, unhandled system error\nLast error:\nncclSocketInit: connecting to "
            "address with family 0 is neither AF_INET(2) nor AF_INET6(10)",
            "two ranks begin with the same of send and recv",
            "batch_isend_irecv",
        ),
        ("DistBackendError: ncclInvalidUsage … Duplicate GPU detected : rank 0", "the same GPU", 'backend="nccl"'),
        ("RuntimeError: No backend type associated with device type cpu", "on the CPU", "device=ranklab.device()"),
        ("AcceleratorError: CUDA error: device-side assert triggered", "an assertion failed", "world.restart()"),
        ("OutOfMemoryError: CUDA out of memory. Tried to allocate", "the device is full", "use a smaller"),
    ):
        told = raised.explain([RankOutcome(0, state="raised", error=error)])
        assert cause in told[1] and fix in told[2], error
