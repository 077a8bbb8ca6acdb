"""How long does a rank wait, and what ends the wait?"""

from ..entry import ALONE, Group, Variable, guide, header, library, python, repository

PG = "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp"
CPP = "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"
NCCL = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html"
GLOO = "gloo's `gloo/common/utils.cc`"


def torch_nccl(name, symbol, comment=""):
    """A variable of torch's process group for NCCL: its name in the header, its default in a file nobody installs."""
    return header(PG, comment or f'"{name}"', named=True), repository(CPP, symbol)


def nccl(name):
    """A variable that NCCL itself reads."""
    return guide(f"{NCCL}#{name.lower().replace('_', '-')}", f"NCCL's user guide, {name}")


GROUP = Group(
    "How long do we wait?",
    "No variable sets the timeout of a collective. It is the argument `timeout=` of `init_process_group`, by "
    "default 30 minutes with gloo and 10 with NCCL. With NCCL a thread of torch, the *watchdog*, looks at the "
    "clock. The variables below decide what happens when that time is over, and how long the layers below torch "
    "keep trying.",
    (
        Variable(
            "TORCH_DIST_INIT_BARRIER",
            "`1` makes each rank wait at the end of `init_process_group` and of `new_group` until all ranks are there.",
            "`0`: each rank goes on when its own part is done.",
            "The rank with `1` waits for the others in a barrier that they never enter. They go on to their first "
            "collective, and wait there for the rank with `1`.",
            (
                python(
                    "distributed/distributed_c10d.py",
                    "_is_barrier_after_init",
                    'os.getenv("TORCH_DIST_INIT_BARRIER", "0")',
                ),
            ),
            "process 0: DistStoreError: Timed out initializing process group in store based barrier on rank 0, … "
            "(world_size=2, num_workers_joined=1, timeout=… …)\n"
            "process 1: RuntimeError: … Timed out waiting …ms for send operation to complete",
            "waiting.one_barrier",
        ),
        Variable(
            "GLOO_DISABLE_CONNECTION_RETRIES",
            "`1` makes gloo give up at the first connection that fails. Otherwise it tries again until the timeout.",
            "Not set: gloo tries again.",
            f"{ALONE} Here rank 0 had `1`, and both ranks came in time.",
            (library(symbol=GLOO),),
            "process 0: all_reduce counts 2 ranks\nprocess 1: all_reduce counts 2 ranks",
            "waiting.one_retries",
        ),
        Variable(
            "TORCH_NCCL_ASYNC_ERROR_HANDLING",
            "What torch does when a collective of NCCL fails or takes too long. `0`: nothing. `1`: it ends the "
            "communicators and then the process. `2`: it ends the communicators only. `3`: it ends the process only.",
            "`3`. torchrun gives its workers `1`, unless its own environment has another value.",
            "The ranks with `0` go on waiting after the others have ended. Then only a launcher can end them.",
            (
                header(PG, "SkipCleanUp = 3", named=True),
                python(
                    "distributed/elastic/agent/server/local_elastic_agent.py",
                    "LocalElasticAgent._start_workers",
                    'os.getenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", str(1))',
                ),
                repository(CPP, "ProcessGroupNCCL"),
            ),
            see="launching/from-spawn-to-torchrun#On GPUs",
        ),
        Variable(
            "TORCH_NCCL_BLOCKING_WAIT",
            "`1` makes `wait()` stop the Python thread until the collective is done, or raise an error after the "
            "timeout. torch then starts no watchdog thread.",
            "`0`: `wait()` only tells the GPU's stream to wait, and a watchdog thread looks at the clock.",
            "Each rank waits in its own way. A rank with `1` gets an exception that Python can catch; the others are "
            "ended by their watchdog.",
            torch_nccl("TORCH_NCCL_BLOCKING_WAIT", "ProcessGroupNCCL"),
        ),
        Variable(
            "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
            "If the watchdog thread gives no sign of life for this many seconds, a second thread ends the process. "
            "It helps when the watchdog itself hangs in a call of CUDA.",
            "`480`, eight minutes.",
            ALONE,
            torch_nccl("TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC", "ProcessGroupNCCL::HeartbeatMonitor"),
        ),
        Variable(
            "TORCH_NCCL_ENABLE_MONITORING",
            "`0` turns off the second thread, which watches the watchdog. Use it if that thread ends a process "
            "that is only slow, for example because a debugger holds it.",
            "`1`.",
            ALONE,
            torch_nccl("TORCH_NCCL_ENABLE_MONITORING", "ProcessGroupNCCL::HeartbeatMonitor"),
        ),
        Variable(
            "TORCH_NCCL_COORD_CHECK_MILSEC",
            "How often that second thread looks into the store to see whether another rank asks for a dump, in "
            "milliseconds.",
            "`1000`.",
            ALONE,
            torch_nccl("TORCH_NCCL_COORD_CHECK_MILSEC", "ProcessGroupNCCL::HeartbeatMonitor"),
        ),
        Variable(
            "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC",
            "How long a rank waits for its flight recorder's file before it ends, in milliseconds.",
            "`15000`.",
            "The rank with the smaller value may end before its file is complete.",
            torch_nccl("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "ProcessGroupNCCL::HeartbeatMonitor"),
        ),
        Variable(
            "TORCH_NCCL_PROPAGATE_ERROR",
            "`1` tells the other ranks through the store that NCCL has failed here, so that they stop as well.",
            "`0`.",
            "A rank with `0` does not tell the others about its error.",
            torch_nccl("TORCH_NCCL_PROPAGATE_ERROR", "ProcessGroupNCCL::Watchdog"),
        ),
        Variable(
            "TORCH_NCCL_RETHROW_CUDA_ERRORS",
            "`0` keeps the watchdog quiet about CUDA errors that it meets while it checks a collective.",
            "`1`: the watchdog raises them, and the process ends.",
            "The rank with `0` goes on with a GPU that has failed.",
            torch_nccl(
                "TORCH_NCCL_RETHROW_CUDA_ERRORS",
                "ProcessGroupNCCL::Watchdog",
                "// Whether to rethrow CUDA Errors in the watchdog (default true)",
            ),
        ),
        Variable(
            "NCCL_SOCKET_RETRY_CNT",
            "How often NCCL tries again to connect a socket after *connection refused* or a similar error.",
            "`34`.",
            ALONE,
            (nccl("NCCL_SOCKET_RETRY_CNT"),),
            since="NCCL 2.24",
        ),
        Variable(
            "NCCL_IB_TIMEOUT",
            "How long an InfiniBand card waits for an answer: 4.096 µs times two to the power of this number.",
            "`20`, about 4 seconds. It was 18 before NCCL 2.23, and 14 before 2.14.",
            "The cards wait for different times. Set it on all nodes if errors name `ibv_poll_cq` and the number 12.",
            (library(symbol="DDP's log", named=True), nccl("NCCL_IB_TIMEOUT")),
        ),
        Variable(
            "NCCL_IB_RETRY_CNT",
            "How often an InfiniBand card sends again before it reports an error.",
            "`7`.",
            ALONE,
            (nccl("NCCL_IB_RETRY_CNT"),),
            since="NCCL 2.1.15",
        ),
    ),
)
