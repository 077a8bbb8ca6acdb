"""What is written down, checked and recorded?"""

from ..entry import ALONE, Group, Variable, guide, header, library, python, ranklab, repository
from .waiting import nccl, torch_nccl

RECORDER = "torch/csrc/distributed/c10d/FlightRecorder.hpp"
WRITER = repository("torch/csrc/distributed/c10d/FlightRecorder.cpp", "DebugInfoWriter::getWriter")
PYTHON = "https://docs.python.org/3/using/cmdline.html"
LOUDER = "The rank with the higher level prints more. Nothing else changes."
CALL = "breaking/hangs#What has every rank called?"
FIT = "breaking/hangs#Do the calls fit together?"
FRESH = "amounts.fresh"

GROUP = Group(
    "What is logged, checked and recorded?",
    "torch, gloo, NCCL and Python each have their own switches. Most of them may differ between ranks, so you can "
    "make a single rank talk. The exceptions are marked.",
    (
        Variable(
            "TORCH_DISTRIBUTED_DEBUG",
            "`INFO` makes c10d and DDP write more. `DETAIL` also compares every collective of all ranks before it "
            "runs, and raises an error where shapes, types or operations differ.",
            "`OFF`. torch reads the variable when it is imported; `dist.set_debug_level_from_env()` reads it again.",
            "**Never give `DETAIL` to some ranks only.** These ranks want to compare with all others, which do not "
            "take part. Here rank 1 had `DETAIL`: it waited for rank 0 in a group that rank 0 never made.",
            (
                library(symbol="pytorch's `torch/csrc/distributed/c10d/debug.cpp`"),
                python("distributed/device_mesh.py", "", 'os.environ.get("TORCH_DISTRIBUTED_DEBUG", "")'),
            ),
            "process 0: RuntimeError: …\n"
            "process 1: DistStoreError: wait timeout after …ms, keys: /default_pg/0//cpu//pg_wrapper:0/0/0",
            "logs.one_checks",
            see=FIT,
        ),
        Variable(
            "TORCH_CPP_LOG_LEVEL",
            "How much the C++ part of torch writes: `INFO`, `WARNING`, `ERROR` or `FATAL`. With `INFO` the store "
            "and its sockets say how they connect.",
            "`WARNING`. It is read when torch is loaded.",
            f"{LOUDER} Here rank 1 had `INFO`.",
            (library("libc10.so"),),
            "[I… socket.cpp:…] [c10d] The client socket has connected to …",
            FRESH,
            see="ranks/meeting-up#The one-process answer",
        ),
        Variable(
            "TORCH_SHOW_CPP_STACKTRACES",
            "`1` adds the C++ functions to the message of each error. Bug reports need them.",
            "`0`.",
            "The messages differ, and nothing else. Here rank 1 had `1`.",
            (library(),),
            "C++ frames in an error: False and True",
            FRESH,
        ),
        Variable(
            "TORCH_DISABLE_ADDR2LINE",
            "`1` keeps torch from starting `addr2line`, which finds the file and line of each C++ function. Use it "
            "if a program seems to hang after `symbolizing C++ stack trace for exception`.",
            "Not set.",
            ALONE,
            (library(),),
        ),
        Variable(
            "TORCH_FR_BUFFER_SIZE",
            "How many collectives the flight recorder keeps on each rank. `0` turns it off. The recorder works with "
            "gloo as well as with NCCL.",
            "`2000` in torch 2.13: it is on. `ranklab` sets 256.",
            "Each rank keeps its own number of calls, and only calls that all ranks still have can be compared. "
            "Here rank 0 had `4` and rank 1 had `0`.",
            (
                header(RECORDER, '{"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, 2000'),
                library(symbol="`FlightRecorder`"),
                ranklab("ranklab/rank/recorder.py", "", 'ENTRIES = "256"'),
            ),
            "process 0: recorded 4 of 9 calls\nprocess 1: recorded 0 of 9 calls",
            "logs.other_buffer",
            see=CALL,
        ),
        Variable(
            "TORCH_NCCL_TRACE_BUFFER_SIZE",
            "The old name of `TORCH_FR_BUFFER_SIZE`. It still works, but torch writes a warning.",
            "Not set.",
            "As with `TORCH_FR_BUFFER_SIZE`. Here both had `4`.",
            (
                header(RECORDER, '{"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}, 2000'),
                library(symbol="`FlightRecorder`"),
            ),
            "Warning: Environment variable TORCH_NCCL_TRACE_BUFFER_SIZE is deprecated; use TORCH_FR_BUFFER_SIZE "
            "instead\nprocess 0: recorded 4 of 9 calls",
            "logs.old_name",
        ),
        Variable(
            "TORCH_FR_CPP_STACK",
            "`1` makes the flight recorder note the C++ functions of each call, too.",
            "`0`.",
            "Some ranks' files have longer stacks. The analysis does not need them.",
            (
                header(RECORDER, '{"TORCH_FR_CPP_STACK", "TORCH_NCCL_TRACE_CPP_STACK"}, false'),
                library(symbol="`FlightRecorder`"),
            ),
        ),
        Variable(
            "TORCH_INCLUDE_STACK_TRACE",
            "`0` leaves the stacks out of the flight recorder's dump.",
            "`1`.",
            "Some ranks' files lack the lines of the calls.",
            (header(RECORDER, "// Whether to include stack trace in the Flight Recorder trace (default true)"),),
        ),
        Variable(
            "TORCH_INCLUDE_ONLY_ACTIVE",
            "`1` leaves completed collectives out of the dump.",
            "`0`.",
            "The files of some ranks lack the completed calls, so the ranks cannot be compared.",
            (
                header(
                    RECORDER,
                    "// Whether to include only active collectives in the Flight Recorder trace // (default false)",
                ),
            ),
        ),
        Variable(
            "TORCH_FR_DUMP_TEMP_FILE",
            "The beginning of the names of the flight recorder's files; each rank adds its number.",
            "`~/.cache/torch/comm_lib_trace_rank_`, below `XDG_CACHE_HOME` where that is set.",
            "Each rank writes to a place of its own, but `torchfrtrace` needs all files in one folder, with the "
            "same beginning.",
            (library(symbol="`FlightRecorder`"), WRITER),
            see="breaking/hangs#On GPUs",
        ),
        Variable(
            "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
            "The old name of `TORCH_FR_DUMP_TEMP_FILE`.",
            "Not set.",
            "As with the new name.",
            (library(symbol="`FlightRecorder`"), WRITER),
        ),
        Variable(
            "TORCH_NCCL_DUMP_ON_TIMEOUT",
            "`1` makes each rank write its flight recorder's file when a collective of NCCL fails or takes too long.",
            "`1`. In older releases it was `0`.",
            "The rank with `0` writes no file, and its part of the story is missing.",
            torch_nccl("TORCH_NCCL_DUMP_ON_TIMEOUT", "ProcessGroupNCCL::HeartbeatMonitor"),
            see="breaking/hangs#On GPUs",
        ),
        Variable(
            "TORCH_NCCL_EXTRA_DUMP_ON_EXEC",
            "`1` writes a file when a process group of NCCL ends with an exception, not only after a timeout.",
            "`0`.",
            "The rank with `0` writes no such file.",
            torch_nccl("TORCH_NCCL_EXTRA_DUMP_ON_EXEC", "ProcessGroupNCCL::HeartbeatMonitor"),
        ),
        Variable(
            "TORCH_NCCL_DESYNC_DEBUG",
            "`1` makes the watchdog say, after a timeout, which ranks were at which collective.",
            "`0`, but on with `TORCH_DISTRIBUTED_DEBUG=DETAIL`.",
            "The report has gaps, because each rank notes its own steps in the store.",
            torch_nccl("TORCH_NCCL_DESYNC_DEBUG", "ProcessGroupNCCL"),
        ),
        Variable(
            "TORCH_NCCL_ENABLE_TIMING",
            "`1` records when each collective begins on the GPU, so that the recorder knows how long it took. Each "
            "collective costs one more event of CUDA, and torch's header warns that the watchdog may hang more "
            "often.",
            "`0`.",
            ALONE,
            torch_nccl("TORCH_NCCL_ENABLE_TIMING", "ProcessGroupNCCL"),
        ),
        Variable(
            "TORCH_NCCL_NAN_CHECK",
            "`1` looks for NaN in what a rank sends, before each collective, and stops the process if there is one.",
            "`0`.",
            "Only the ranks with `1` look. Give it to all: you do not know which rank makes the first NaN.",
            torch_nccl("TORCH_NCCL_NAN_CHECK", "ProcessGroupNCCL"),
        ),
        Variable(
            "TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN",
            "`0` leaves out the C++ stacks when a process is ended by the watchdog.",
            "`1`.",
            ALONE,
            torch_nccl(
                "TORCH_NCCL_LOG_CPP_STACK_ON_UNCLEAN_SHUTDOWN",
                "ProcessGroupNCCL::HeartbeatMonitor",
                "// Whether to log C++ stack traces on unclean shutdown (default true)",
            ),
        ),
        Variable(
            "TORCH_LOGS",
            "What the compiler and other parts of torch write, for example `TORCH_LOGS=recompiles` or `+dynamo`. "
            "Python reads it when torch is imported.",
            "Not set.",
            LOUDER,
            (python("_logging/_internal.py", "_update_log_state_from_env", "os.environ.get(LOG_ENV_VAR, None)"),),
        ),
        Variable(
            "LOGLEVEL",
            "How much torchrun itself writes: `DEBUG`, `INFO`, `WARNING`. `INFO` shows each step of the rendezvous.",
            "`WARNING` for its modules, `INFO` for its events.",
            "Each torchrun writes at its own level.",
            (
                python(
                    "distributed/elastic/utils/logging.py",
                    "_setup_logger",
                    'os.environ.get("LOGLEVEL", get_log_level())',
                ),
                python(
                    "distributed/elastic/events/__init__.py",
                    "_get_or_create_logger",
                    'os.environ.get("LOGLEVEL", "INFO")',
                ),
            ),
        ),
        Variable(
            "GLOO_LOG_LEVEL",
            "How much gloo writes: `DEBUG`, `INFO`, `WARN` or `ERROR`.",
            "`WARN`.",
            LOUDER,
            (library(symbol="gloo's `gloo/common/logging.cc`"),),
        ),
        Variable(
            "FR_TRACE_VERBOSE_OUTPUT",
            "`1` makes `torchfrtrace` print more of each call. Its option `-v` does the same.",
            "`0`.",
            "Nothing: the ranks do not read it. The program that reads their files does.",
            (
                python(
                    "distributed/flight_recorder/components/types.py", "Op", 'os.getenv("FR_TRACE_VERBOSE_OUTPUT", "0")'
                ),
            ),
        ),
        Variable(
            "NCCL_DEBUG",
            "How much NCCL writes: `VERSION`, `WARN`, `INFO` or `TRACE`. `WARN` gives a sentence for each error; "
            "`INFO` shows the networks and rings that it has chosen.",
            "Not set: nothing.",
            LOUDER,
            (library(symbol="DDP's log", named=True), nccl("NCCL_DEBUG")),
            see="talking/all-reduce#On GPUs",
        ),
        Variable(
            "NCCL_DEBUG_SUBSYS",
            "Which parts of NCCL write at the level `INFO`, for example `INIT,NET`. `^` in front takes parts out.",
            "`INIT,BOOTSTRAP,ENV`. `ENV` prints the variables that NCCL has found.",
            LOUDER,
            (
                python("nn/parallel/distributed.py", "_dump_DDP_relevant_env_vars", "", named=True),
                nccl("NCCL_DEBUG_SUBSYS"),
            ),
            since="NCCL 2.3.4",
        ),
        Variable(
            "NCCL_DEBUG_FILE",
            "The file that NCCL's lines go to. `%h` stands for the host and `%p` for the process.",
            "The standard output.",
            "Give each process a file of its own with `%h` and `%p`. Processes that write into one file lose lines.",
            (
                python("nn/parallel/distributed.py", "_dump_DDP_relevant_env_vars", "", named=True),
                nccl("NCCL_DEBUG_FILE"),
            ),
            since="NCCL 2.2.12",
        ),
        Variable(
            "NCCL_RAS_ENABLE",
            "`0` turns off NCCL's own watcher. While a job hangs, it can tell which of the job's ranks are alive: "
            "ask it with `ncclras` on a node of the job.",
            "`1`.",
            "The ranks with `0` are unknown to the others' watcher.",
            (nccl("NCCL_RAS_ENABLE"),),
            since="NCCL 2.24",
        ),
        Variable(
            "NCCL_TOPO_DUMP_FILE",
            "A file into which NCCL writes the machine as it sees it: GPUs, switches and network cards, as XML.",
            "Not set.",
            "Each rank that has the variable writes, so ranks with the same file name overwrite one another.",
            (
                python("nn/parallel/distributed.py", "_dump_DDP_relevant_env_vars", "", named=True),
                nccl("NCCL_TOPO_DUMP_FILE"),
            ),
            since="NCCL 2.6",
        ),
        Variable(
            "PYTHONUNBUFFERED",
            "Any text makes Python print each line at once. Without it the last lines of a process that is killed are "
            "lost, and a log file stays empty for a long time. torchrun starts its workers with `-u`, which does the "
            "same.",
            "Not set.",
            "The lines of a rank without it come later, or never.",
            (guide(f"{PYTHON}#envvar-PYTHONUNBUFFERED", "Python's documentation"),),
        ),
        Variable(
            "PYTHONFAULTHANDLER",
            "Any text makes Python print where each thread is when the process dies of a signal such as SIGSEGV or "
            "SIGABRT.",
            "Not set.",
            "Only the ranks that have it tell where they died.",
            (guide(f"{PYTHON}#envvar-PYTHONFAULTHANDLER", "Python's documentation"),),
        ),
    ),
)
