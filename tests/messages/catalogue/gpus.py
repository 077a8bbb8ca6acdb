"""What CUDA and the driver print. Most of it is not produced here: continuous integration has no GPU."""

from ..entry import Group, Message

COUNT = "torch's C++, c10/cuda/CUDAFunctions.cpp"
DEVICE = "ranks/rank-local-rank-world-size#The rank as a device"

GROUP = Group(
    "On GPUs: CUDA and the driver",
    "A kernel on a GPU runs later than the line that started it. So a message that begins with `CUDA error` can stand "
    "in an innocent line: run again with `CUDA_LAUNCH_BLOCKING=1`, and it stands in its own.",
    (
        Message(
            "CUDA out of memory",
            "This rank asked for more memory than its GPU has left. It is an ordinary exception, of this rank alone.",
            (
                "The model, its optimizer state and the activations of this batch do not fit.",
                "Another process uses the same GPU, or several ranks do.",
                "One rank has longer rows than the others.",
                "A list keeps tensors with their graphs, for example losses without `.item()`.",
            ),
            "Look at `nvidia-smi` for other processes. Then use a smaller batch with accumulation, recomputation, or a "
            "sharded model. If much is *reserved but unallocated*, try `PYTORCH_ALLOC_CONF=expandable_segments:True`. "
            "The other ranks wait for this one: end the job.",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate …. GPU … has a total capacity of … of which "
            "… is free. Including non-PyTorch memory, this process has … memory in use. Of the allocated memory … is "
            "allocated by PyTorch, and … is reserved by PyTorch but unallocated.",
            source="torch's C++, c10/cuda/CUDACachingAllocator.cpp",
            see="ranks/why-distribute#Before you distribute",
        ),
        Message(
            "CUDA error: device-side assert triggered",
            "A kernel on the GPU found a value that it must not have; Python hears of it later, in another line.",
            (
                "An index is too large: a label, a token or a row that does not exist.",
                "A loss got values outside of its range.",
            ),
            "Run again with `CUDA_LAUNCH_BLOCKING=1`, or the same batch on the CPU: the error then stands in its own "
            "line. The process cannot use the GPU any more.",
            source="CUDA, `cudaGetErrorString` of `cudaErrorAssert`",
        ),
        Message(
            "CUDA error: an illegal memory access was encountered",
            "A kernel on the GPU read or wrote where it must not; Python hears of it later, in another line.",
            (
                "A kernel of an extension, of Triton or of your own goes past the end of a tensor.",
                "A tensor was freed while a kernel on another stream still used it.",
                "A tensor has more elements than the kernel can count.",
                "The GPU is broken: the same program fails on one node only.",
            ),
            "Run with `CUDA_LAUNCH_BLOCKING=1`, then under `compute-sanitizer`. `dmesg` shows an `Xid 31` for it. The "
            "process cannot use the GPU any more: end the job.",
            "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
            source="CUDA, `cudaGetErrorString` of `cudaErrorIllegalAddress`",
            threads=("https://github.com/pytorch/pytorch/issues/21819",),
        ),
        Message(
            "CUBLAS_STATUS_",
            "A product of matrices has failed in NVIDIA's library cuBLAS; the word behind `STATUS_` is its reason.",
            (
                "The GPU's memory is full: `ALLOC_FAILED`, `NOT_INITIALIZED`, and often `INTERNAL_ERROR`.",
                "An earlier kernel has failed, for example with an index that is too large: `EXECUTION_FAILED`.",
                "The shapes or strides do not fit: `INVALID_VALUE`.",
                "`LD_LIBRARY_PATH` puts a cuBLAS of another CUDA in front of torch's.",
            ),
            "Look at `nvidia-smi`, and take a smaller batch. Then run the same batch on the CPU, which has better "
            "messages.",
            "RuntimeError: CUDA error: CUBLAS_STATUS_… when calling `cublas…`",
            source="torch's C++, aten/src/ATen/cuda/Exceptions.h, `TORCH_CUDABLAS_CHECK`",
        ),
        Message(
            "CUDA error: CUDA-capable device(s) is/are busy or unavailable",
            "The GPU exists, and this process may not use it now.",
            (
                "The GPU is in exclusive mode, which clusters like, and another process has it.",
                "Two ranks were given the same GPU.",
                "A process of an earlier job still holds the GPU.",
                "The driver is in a bad state, on this node alone.",
            ),
            "`nvidia-smi -q -d COMPUTE` shows the mode, `nvidia-smi` the processes. Print the device of each rank. If "
            "the GPU is idle and in default mode, leave the node out.",
            "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
            source="CUDA, `cudaGetErrorString` of `cudaErrorDevicesUnavailable`",
            see="ranks/rank-local-rank-world-size#Which GPU is mine?",
        ),
        Message(
            "Found no NVIDIA driver on your system.",
            "This torch has CUDA, and the process finds no driver for a GPU.",
            (
                "The program runs on a node without GPUs, such as the login node.",
                "The container was started without `--gpus all`.",
                "The driver was updated, and the machine was not restarted.",
            ),
            "Run `nvidia-smi` in the same place: the same node, job and container. If it fails too, the trouble is not "
            "torch's.",
            "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and "
            "installed a driver from …",
            source=COUNT,
        ),
        Message(
            "No CUDA GPUs are available",
            "There is a driver, and it shows this process no GPU.",
            (
                "Slurm gave the job no GPU: `--gpus-per-node` is missing.",
                "`CUDA_VISIBLE_DEVICES` is empty, or names GPUs that do not exist.",
            ),
            'Print `os.environ.get("CUDA_VISIBLE_DEVICES")` on each rank, and run `nvidia-smi -L` inside the job.',
            "RuntimeError: No CUDA GPUs are available",
            source=COUNT,
            see=DEVICE,
        ),
        Message(
            "CUDA error: invalid device ordinal",
            "The process asked for a GPU that it does not see.",
            (
                "More processes per node were started than it has GPUs.",
                "`set_device(rank)` was written for `set_device(local_rank)`.",
                "Slurm shows each process one GPU only, and the number of that one is 0.",
            ),
            "Print `torch.cuda.device_count()`, `LOCAL_RANK` and `CUDA_VISIBLE_DEVICES` on each rank.",
            source="CUDA, `cudaGetErrorString` of `cudaErrorInvalidDevice`",
            see=DEVICE,
        ),
        Message(
            "Cannot re-initialize CUDA in forked subprocess",
            "The process was forked from one that already used CUDA, and CUDA does not survive a fork.",
            (
                "A DataLoader's worker makes CUDA tensors.",
                "`mp.Process` was used after the parent touched the GPU, if only with `torch.cuda.get_device_name`.",
            ),
            'Make CPU tensors in workers. For your own processes use `mp.get_context("spawn")`.',
            "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
            "use the 'spawn' start method",
            source="torch/cuda/__init__.py: _lazy_init",
            threads=("https://github.com/pytorch/pytorch/issues/40403",),
        ),
        Message(
            "Expected all tensors to be on the same device",
            "An operation has met tensors on two devices.",
            (
                "A batch, a mask or a new tensor was not moved to the device of this rank.",
                "`cuda:0` is written in the program, and this rank has another GPU.",
            ),
            "Make every tensor with `device=device`, and write no number of a GPU.",
            source="torch/lib/libtorch_cpu.so: TensorIterator",
            see=DEVICE,
        ),
        Message(
            "Torch not compiled with CUDA enabled",
            "This is the CPU build of torch, and the program asks for `cuda`.",
            ("`pip` has installed the CPU build.", "Another environment than you think is active."),
            "Print `torch.version.cuda`: None is the CPU build. Where there is a GPU, install the build for its CUDA; "
            "elsewhere ask `torch.cuda.is_available()` before you choose the device.",
            "AssertionError: Torch not compiled with CUDA enabled",
            by="starting.no_gpu",
        ),
        Message(
            "module 'torch._C' has no attribute '_cuda_setDevice'",
            "This is the CPU build of torch, and the program calls `torch.cuda.set_device`.",
            ("A program for GPUs runs on a CPU.",),
            "Put the call below `if torch.cuda.is_available():`.",
            "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'",
            by="starting.no_gpu_to_set",
        ),
        Message(
            "NVRM: Xid",
            "The driver reports an error of the GPU with this number. The line stands in the log of the system, not in "
            "that of the job.",
            (
                "The program: 13 and 31 are kernels that read or write where they must not, 43 is what follows.",
                "The GPU's memory: 48, 63, 64, 94 and 95.",
                "The GPU does not answer any more: 79, from power, heat or the slot; 119, its own processor.",
                "NVLink: 74.",
            ),
            "`dmesg | grep Xid` on the node. For 13, 31 and 43 look for the fault in the program; if it comes on one "
            "node only, and for all others, leave the node out and report it.",
            "NVRM: Xid (PCI:…): 79, …, GPU has fallen off the bus.",
            source="NVIDIA's manual *Xid Errors*, docs.nvidia.com/deploy/xid-errors",
        ),
    ),
)
