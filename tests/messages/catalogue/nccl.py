"""What NCCL prints, and torch about it. Nothing of it is produced here: continuous integration has no GPU."""

from ..entry import Group, Message

NCCL_CPP = "torch's C++, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"
UTILS = "torch's C++, torch/csrc/distributed/c10d/NCCLUtils.cpp"
NCCL = "NCCL 2.30.7, src/init.cc"
H100 = "one H100 with torch 2.11.0 and NCCL 2.28.9"

GROUP = Group(
    "On GPUs: NCCL",
    "These messages need a GPU, and no test of this book prints them. Each entry says where its text stands, or on "
    "which "
    "card it was seen. Set `NCCL_DEBUG=WARN` first: NCCL then writes its own reason in front of torch's message.",
    (
        Message(
            "Watchdog caught collective operation timeout",
            "A collective on the GPU did not end within the timeout; NCCL's default is 10 minutes.",
            (
                "Another rank did not make this call: it failed, left the loop, or is in another branch.",
                "Rank 0 evaluates or saves for longer than the timeout, and the others wait.",
                "The ranks call collectives in different orders.",
                "The network between the nodes has failed.",
            ),
            "Compare `SeqNum` and `OpType` of all ranks: the rank with the smallest number, or without this line, is "
            "the "
            "one to look at. With `TORCH_NCCL_DUMP_ON_TIMEOUT=1` torch writes the last calls of each rank to a file.",
            "[Rank …] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=…, OpType=ALLREDUCE, NumelIn=…, "
            "NumelOut=…, Timeout(ms)=…) ran for … milliseconds before timing out.",
            seen=H100,
            source=NCCL_CPP,
            see="ranks/meeting-up#How long they wait",
            threads=("https://github.com/pytorch/pytorch/issues/118369",),
        ),
        Message(
            "Some NCCL operations have failed or timed out",
            "After an error in NCCL torch ends the process, because what lies on the GPU cannot be trusted any more.",
            ("The timeout or the error that stands above this line.",),
            "Search upwards for `Watchdog caught` or `NCCL error`.",
            "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent "
            "GPU operations might run on corrupted/incomplete data.",
            source=NCCL_CPP,
        ),
        Message(
            "Process group watchdog thread terminated with exception",
            "The thread that watches NCCL's calls has found an error, and it ends the process with SIGABRT.",
            ("The exception that follows in the same line, mostly a timeout or a CUDA error.",),
            "Read on in the same line. The exit code in torchrun's report is then -6.",
            "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [PG … Rank …] Process "
            "group watchdog thread terminated with exception: …",
            source=NCCL_CPP,
        ),
        Message(
            "unhandled system error (run with NCCL_DEBUG=INFO for details)",
            "A call to the operating system has failed inside NCCL: a socket, memory, or shared memory.",
            (
                "The container has too little shared memory in `/dev/shm`.",
                "NCCL chose a network interface over which the nodes cannot reach each other.",
                "The limit of locked memory is too low for InfiniBand.",
            ),
            "Run with `NCCL_DEBUG=WARN` and read NCCL's own line. Then try `--shm-size=8g` for the container, or "
            "`NCCL_SOCKET_IFNAME`.",
            "torch.distributed.DistBackendError: NCCL error in: …, unhandled system error (run with NCCL_DEBUG=INFO "
            "for "
            "details), NCCL version …",
            source=NCCL,
            threads=(
                "https://github.com/pytorch/pytorch/issues/37004",
                "https://github.com/pytorch/torchtitan/issues/853",
            ),
        ),
        Message(
            "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
            "A call to CUDA has failed inside NCCL.",
            (
                "The GPU's memory is full: NCCL takes some hundred MB of its own.",
                "Two ranks were given the same GPU, or a rank a GPU that does not exist.",
                "An earlier kernel has failed, and NCCL is the first to notice.",
            ),
            "Run with `NCCL_DEBUG=WARN`. Look at `nvidia-smi` for the memory, and print the device of each rank.",
            "torch.distributed.DistBackendError: NCCL error in: …, unhandled cuda error (run with NCCL_DEBUG=INFO for "
            "details), NCCL version …",
            source=NCCL,
        ),
        Message(
            "ncclInternalError: Internal check failed.",
            "NCCL found something that it did not expect; its own words stand below `Last error:`.",
            (
                "The network between the nodes: the wrong interface, a firewall, or InfiniBand that is half set up.",
                "Two ranks use one GPU, in older releases of NCCL.",
                "GPUs that cannot reach each other directly, as in some virtual machines.",
            ),
            "Run with `NCCL_DEBUG=INFO` and read the lines above the first `WARN`. Set `NCCL_SOCKET_IFNAME`; then try "
            "`NCCL_IB_DISABLE=1` and `NCCL_P2P_DISABLE=1`, one at a time, to find out which way is broken.",
            "torch.distributed.DistBackendError: NCCL error in: …, internal error - please report this issue to the "
            "NCCL developers, NCCL version …\nncclInternalError: Internal check failed.\nLast error:",
            source=UTILS + ", and " + NCCL,
        ),
        Message(
            "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
            "The process at the other end is gone, or the network to it.",
            ("Another rank has failed: its log has the cause.", "A node or a cable has failed."),
            "Find the rank that ended first. This is NCCL's form of `Connection closed by peer`.",
            source=UTILS,
        ),
        Message(
            "Duplicate GPU detected",
            "Two ranks use the same GPU, and NCCL does not take that. NCCL 2.30 has other words: `Multiple Ranks are "
            "using the same GPU/Partition`.",
            (
                "`torch.cuda.set_device(local_rank)` is missing, so all ranks use GPU 0.",
                "More processes per node were started than it has GPUs.",
            ),
            'Call `torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))` before `init_process_group`.',
            "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\nDuplicate GPU "
            "detected "
            ": rank 0 and rank 1 both on CUDA device …",
            seen=H100,
            see="ranks/rank-local-rank-world-size#Which GPU is mine?",
        ),
        Message(
            "ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
            "This torch has NCCL, and the process sees no GPU.",
            (
                "The job runs on a node without GPUs, or Slurm gave it none.",
                "`CUDA_VISIBLE_DEVICES` is empty.",
                "The container was started without `--gpus all`.",
            ),
            "Look at `nvidia-smi` inside the job. Ask Slurm for `--gpus-per-node`.",
            "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!",
            source=NCCL_CPP,
        ),
        Message(
            "as device used by this process is currently unknown",
            "`barrier` had to guess which GPU belongs to this rank.",
            ("`init_process_group` was called without `device_id`.",),
            'Give `device_id=torch.device("cuda", local_rank)` to `init_process_group`.',
            "[PG ID 0 PG GUID 0 Rank …]  using GPU … as device used by this process is currently unknown. This can "
            "potentially cause a hang if this rank to GPU mapping is incorrect.",
            source=NCCL_CPP,
            see="data-parallel/ddp#On GPUs",
        ),
        Message(
            "destroy_process_group() was not called before program exit, which can leak resources",
            "The program ended and left its group to be cleaned up by chance.",
            ("The last line is missing.", "An exception ended the program before its last line."),
            "Call `dist.destroy_process_group()` at the end. After an exception this warning is a consequence.",
            "Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources.",
            source=NCCL_CPP,
        ),
        Message(
            "Bootstrap : no socket interface found",
            "NCCL found no network interface over which it could begin.",
            ("`NCCL_SOCKET_IFNAME` names an interface that this machine does not have.",),
            "Unset the variable, or set it to a name from `ip -brief address`.",
            "NCCL WARN Bootstrap : no socket interface found",
            source="NCCL 2.30.7, src/bootstrap.cc",
        ),
        Message(
            "Mismatched NCCL version detected",
            "The ranks have loaded different versions of NCCL.",
            (
                "The nodes have different environments.",
                "A module of the cluster puts its own NCCL in front of torch's.",
            ),
            "Print `torch.cuda.nccl.version()` on each node. Take `LD_LIBRARY_PATH` out of the job.",
            "NCCL WARN Mismatched NCCL version detected : rank … version … rank … version …",
            source=NCCL,
        ),
        Message(
            "Cannot use ReduceOp.BAND with NCCL",
            "NCCL has no bitwise operations; gloo has.",
            ("The program was written for gloo.",),
            "Reduce a mask of integers with `ReduceOp.MIN` or `ReduceOp.MAX`.",
            "ValueError: Cannot use ReduceOp.BAND with NCCL",
            seen=H100,
            see="talking/collectives#Every ReduceOp",
        ),
        Message(
            "monitored_barrier is only implemented for GLOO backend.",
            "`monitored_barrier` runs on gloo, and this group has NCCL.",
            ("A call that helps on a CPU was left in.",),
            'Make a second group for it: `dist.new_group(backend="gloo")`.',
            "ValueError: monitored_barrier is only implemented for GLOO backend.",
            seen=H100,
            source="torch/distributed/distributed_c10d.py: monitored_barrier",
        ),
    ),
)
