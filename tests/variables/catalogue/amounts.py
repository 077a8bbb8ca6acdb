"""How much of the machine is used, and is it the same everywhere?"""

from ..entry import ALONE, Group, Variable, guide, header, library, python
from .networks import SAME, listed
from .waiting import nccl

LIBGOMP = "https://gcc.gnu.org/onlinedocs/libgomp/Environment-Variables.html"
TUNING = "Each rank tunes itself. Equal machines should have the same value."
FRESH = "amounts.fresh"


def openmp(name, what, default, differ=TUNING):
    """A variable of OpenMP's library."""
    return Variable(name, what, default, differ, (library("libgomp.so.1"), guide(LIBGOMP, "libgomp's manual")))


def checkpoint(name, what, code, differ=ALONE):
    """A switch of the process that writes checkpoints."""
    reader = python("distributed/checkpoint/_async_process_executor.py", "_ProcessGroupInitInfo", code)
    return Variable(name, what, "`0`.", differ, (reader,))


GROUP = Group(
    "How much is used, and is it the same everywhere?",
    "Eight processes that each take all cores slow each other down. And what looks like a matter of speed can change "
    "the numbers, too.",
    (
        Variable(
            "OMP_NUM_THREADS",
            "How many threads one process uses for one operation on the CPU. A sensible value is the number of cores "
            "divided by the number of processes on the machine.",
            "`1` if torchrun starts more than one process on the machine; it then prints a warning. Otherwise all "
            "cores.",
            "The sum of the same million numbers differs in its last bits, because two threads add up other parts "
            "than one thread does. So ranks that each compute the same thing drift apart. Here rank 0 had `1` and "
            "rank 1 had `2`.",
            (
                library("libgomp.so.1"),
                library(),
                python("distributed/run.py", "config_from_args", '"OMP_NUM_THREADS" not in os.environ'),
            ),
            "threads: 1 and 2\nthe sum of the same numbers is equal: False",
            FRESH,
            see="launching/from-spawn-to-torchrun#Summary",
        ),
        Variable(
            "MKL_NUM_THREADS",
            "How many threads Intel's MKL takes. The builds of torch for Intel and AMD processors have MKL, and "
            "there the variable wins over `OMP_NUM_THREADS`, for all of torch. So if you set it, the `1` that "
            "torchrun gives to `OMP_NUM_THREADS` has no effect.",
            "Not set: `OMP_NUM_THREADS` holds.",
            "As with `OMP_NUM_THREADS`. Here one process had `OMP_NUM_THREADS=1` and `MKL_NUM_THREADS=2`.",
            (library(),),
            "threads: 2",
            "amounts.mkl_wins",
        ),
        Variable(
            "MKL_CBWR",
            "Makes MKL compute in a way that gives equal bits on different processors, for example `COMPATIBLE`. It "
            "is slower.",
            "Not set: the fastest way for this processor.",
            "Ranks on different processors get different bits from equal numbers.",
            (library(symbol="Intel's MKL"),),
        ),
        Variable(
            "ATEN_CPU_CAPABILITY",
            "Which instructions torch's own CPU code uses: `default`, `avx2` or `avx512`. "
            "`torch.backends.cpu.get_cpu_capability()` says which are in use.",
            "Not set: the best that the processor has.",
            "Ranks on different processors add in different orders, so equal numbers can give different last bits.",
            (library(),),
        ),
        openmp(
            "OMP_PROC_BIND",
            "`true` or `close` ties threads to cores. Several processes that all begin at core 0 then crowd there, "
            "unless the launcher gives each process its own cores.",
            "Not set: the operating system moves threads from core to core.",
        ),
        openmp("OMP_PLACES", "Where threads may run: `cores`, `threads`, or a list such as `{0},{2}`.", "Not set."),
        openmp(
            "GOMP_CPU_AFFINITY",
            "Ties threads to the cores of a list, for example `0-3`. `OMP_PLACES` wins over it, and "
            "`OMP_PROC_BIND=false` turns it off.",
            "Not set.",
        ),
        openmp(
            "OMP_WAIT_POLICY",
            "`passive` lets a thread sleep while it waits. `active` lets it spin, so that it starts faster but "
            "occupies a core.",
            "Not set: it spins for a while, and then it sleeps.",
        ),
        openmp(
            "GOMP_SPINCOUNT",
            "How long a waiting thread spins before it sleeps. A small number helps if there are more threads than "
            "cores.",
            "It depends on the wait policy, and is smaller if there are more threads than cores.",
        ),
        openmp(
            "OMP_DYNAMIC",
            "`true` lets the library take fewer threads than you asked for, so the last bits of sums can change.",
            "`false`.",
        ),
        openmp("OMP_THREAD_LIMIT", "The most threads that one process may have.", "Not set: no limit."),
        openmp(
            "OMP_DISPLAY_ENV",
            "`true` prints all settings of the library when a process starts. It shows what each rank really uses.",
            "`false`.",
            ALONE,
        ),
        Variable(
            "PYTHONHASHSEED",
            "A number that gives a set of strings the same order in every process. Without it the order is new in "
            "each process.",
            "Not set: random.",
            "A loop over a set then goes in another order on each rank. If the loop calls collectives, makes "
            "parameters or reads files, the ranks do different things. Here rank 0 had `0` and rank 1 had `1`. A "
            "`sorted(…)` in the program is better than the variable.",
            (guide("https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED", "Python's documentation"),),
            "the order of a set is equal: False",
            FRESH,
            see="breaking/silently-wrong#A number for each class",
        ),
        Variable(
            "TMPDIR",
            "Where temporary files go. torchrun keeps the workers' log files there, unless you pass `--log-dir`.",
            "`/tmp`.",
            "It may differ from machine to machine. A path that does not exist is passed over.",
            (library("libc10.so"), header("c10/util/tempfile.h", '`"TMPDIR"`, `"TMP"`, `"TEMP"`', named=True)),
        ),
        Variable(
            "TORCH_MP_PARALLEL_START",
            "`1` starts the processes of `mp.spawn` and its relatives at the same time, if the start method is "
            "`forkserver`.",
            "`0`: one after the other.",
            "Nothing: the process that starts the others reads it.",
            (python("multiprocessing/spawn.py", "start_processes", 'os.environ.get(ENV_VAR_PARALLEL_START, "0")'),),
        ),
        checkpoint(
            "DCP_USE_PREFIX_STORE",
            "`1` makes the processes that write checkpoints in the background meet in the job's own store instead of "
            "a new one.",
            'os.environ.get("DCP_USE_PREFIX_STORE", "0")',
            "Rank 0 chooses the place, and each rank chooses the kind of store, so give all ranks the same.",
        ),
        checkpoint(
            "DCP_DISABLE_AUTOMATIC_GC",
            "`1` turns Python's garbage collection off in the process that writes checkpoints.",
            'os.environ.get("DCP_DISABLE_AUTOMATIC_GC", "0")',
        ),
        checkpoint(
            "DCP_DISABLE_MANUAL_GC",
            "`1` leaves out the collection that this process makes by itself after each checkpoint.",
            'os.environ.get("DCP_DISABLE_MANUAL_GC", "0")',
        ),
        Variable(
            "NCCL_BUFFSIZE",
            "The size of a buffer between two GPUs, in bytes. Each connection has several buffers, so a smaller "
            "size saves GPU memory.",
            "`4194304`, 4 MiB.",
            SAME,
            listed("NCCL_BUFFSIZE"),
        ),
        Variable(
            "NCCL_MIN_CTAS",
            "The least number of a GPU's thread blocks that a collective uses. More can be faster, but leave less "
            "of the GPU to the model.",
            "Not set: NCCL chooses.",
            SAME,
            (nccl("NCCL_MIN_CTAS"),),
            since="NCCL 2.17",
        ),
        Variable(
            "NCCL_MAX_CTAS",
            "The greatest number of a GPU's thread blocks that a collective uses. Fewer leave more of the GPU to "
            "computation that runs at the same time.",
            "Not set: NCCL chooses.",
            SAME,
            (nccl("NCCL_MAX_CTAS"),),
            since="NCCL 2.17",
        ),
        Variable(
            "NCCL_MAX_NCHANNELS",
            "The older name for the same limit. NVIDIA's guide calls it deprecated since 2.17 in favour of "
            "`NCCL_MAX_CTAS`.",
            "Not set.",
            "As with `NCCL_MAX_CTAS`.",
            listed("NCCL_MAX_NCHANNELS"),
        ),
        Variable(
            "NCCL_NTHREADS",
            "How many threads each of NCCL's thread blocks has on the GPU.",
            "`512`, and 256 on some older GPUs.",
            TUNING,
            (library(symbol="DDP's log", named=True), nccl("NCCL_NTHREADS")),
        ),
        Variable(
            "NCCL_SOCKET_NTHREADS",
            "How many CPU threads serve one connection over sockets, 1 to 16.",
            "`1`; `2` on AWS.",
            TUNING,
            listed("NCCL_SOCKET_NTHREADS"),
            since="NCCL 2.4.8",
        ),
        Variable(
            "NCCL_NSOCKS_PERTHREAD",
            "How many sockets each of these threads opens. Several help if the network limits the speed of one socket.",
            "`1`; `8` on AWS.",
            SAME,
            listed("NCCL_NSOCKS_PERTHREAD"),
            since="NCCL 2.4.8",
        ),
        Variable(
            "NCCL_IGNORE_CPU_AFFINITY",
            "`1` lets NCCL's threads run on the cores nearest to the GPU, even if the job was given other cores.",
            "`0`.",
            TUNING,
            listed("NCCL_IGNORE_CPU_AFFINITY"),
            since="NCCL 2.4.6",
        ),
    ),
)
