"""CUDA, its memory, and how torch's process group uses it."""

from ..entry import ALONE, Group, Variable, guide, header, library, python, repository
from .networks import SAME
from .waiting import nccl, torch_nccl

CUDA = "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html"
TOLD = guide(CUDA, "NVIDIA's CUDA programming guide")
ALLOCATOR = "c10/cuda/CUDAAllocatorConfig.h"
DRIFT = "The rank's numbers may differ from the others' in their last bits."

GROUP = Group(
    "CUDA and memory",
    "CUDA reads its variables when a process first uses a GPU. After that, a change in `os.environ` does nothing.",
    (
        Variable(
            "CUDA_VISIBLE_DEVICES",
            "The GPUs that this process may see, as numbers or as the names that `nvidia-smi -L` prints. The "
            "process numbers these from 0 again. An empty text hides all GPUs.",
            "Not set: all GPUs. torchrun hands on what it has; with `--virtual-local-rank` it gives each process one "
            "GPU.",
            "That is normal: launchers give each process its own GPU in this way. Then `cuda:0` is another card in "
            "each process, and `cuda:1` does not exist, so a program that takes `cuda:LOCAL_RANK` fails on every "
            "local rank but 0.",
            (
                python("cuda/__init__.py", "_parse_visible_devices", 'os.getenv("CUDA_VISIBLE_DEVICES")'),
                python(
                    "distributed/elastic/agent/server/local_elastic_agent.py",
                    "LocalElasticAgent._set_local_rank_env",
                    'os.getenv("CUDA_VISIBLE_DEVICES")',
                ),
                TOLD,
            ),
            see="ranks/rank-local-rank-world-size#Which GPU is mine?",
        ),
        Variable(
            "CUDA_DEVICE_ORDER",
            "`PCI_BUS_ID` numbers the GPUs as `nvidia-smi` does. `FASTEST_FIRST` makes the fastest one number 0.",
            "`FASTEST_FIRST`.",
            "On a machine with GPUs of two kinds, the same number means different cards.",
            (TOLD,),
        ),
        Variable(
            "CUDA_LAUNCH_BLOCKING",
            "`1` makes each call wait until the GPU has done its work, so that an error is reported at the line "
            "that caused it. It is slow, and it hides errors that depend on timing.",
            "`0`.",
            "The rank with `1` is slower, and the others wait for it in each collective.",
            (python("cuda/_pin_memory_utils.py", "pin_memory", "", True), TOLD),
        ),
        Variable(
            "CUDA_DEVICE_MAX_CONNECTIONS",
            "How many queues lead from the processor to the GPU. Megatron-LM's users set `1`, so that a collective "
            "begins before the computation that is started after it.",
            "Not set: CUDA chooses.",
            "The order of work on the GPU differs, and with it the speed.",
            (TOLD,),
        ),
        Variable(
            "CUDA_MODULE_LOADING",
            "`EAGER` loads all of a library's GPU code at the start. `LAZY` loads each part when it is first used, "
            "which saves memory and makes the first call slower.",
            "Not set: CUDA chooses.",
            ALONE,
            (
                python(
                    "utils/collect_env.py",
                    "get_cuda_module_loading_config",
                    'os.environ.get("CUDA_MODULE_LOADING", "")',
                ),
                TOLD,
            ),
        ),
        Variable(
            "PYTORCH_ALLOC_CONF",
            "Settings of torch's memory allocator as `key:value,key:value`. `expandable_segments:True` is the one "
            "to try if enough memory is free in total, but only in pieces that are too small.",
            "Not set.",
            "Each rank manages its own memory, so the rank with the worse setting runs out of it first.",
            (library("libc10.so"), header(ALLOCATOR, 'get_env("PYTORCH_ALLOC_CONF")')),
        ),
        Variable(
            "PYTORCH_CUDA_ALLOC_CONF",
            "The older name of `PYTORCH_ALLOC_CONF`. The header of the allocator for CUDA reads it first, so set only "
            "one of them.",
            "Not set.",
            "As with the newer name.",
            (library("libc10.so"), header(ALLOCATOR, 'get_env("PYTORCH_CUDA_ALLOC_CONF")')),
        ),
        Variable(
            "PYTORCH_NO_CUDA_MEMORY_CACHING",
            "`1` gives each piece of memory back to CUDA at once. It is slow, but tools such as compute-sanitizer then "
            "see more. torch's allocator only checks whether the variable is set, so `0` does the same as `1`.",
            "Not set. torch's memory tracker takes that as `0`.",
            ALONE,
            (
                python("distributed/_tools/mem_tracker.py", "", 'os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", 0)'),
                repository("c10/cuda/CUDACachingAllocator.cpp", "forceUncachedAllocator"),
            ),
        ),
        Variable(
            "PYTORCH_NVML_BASED_CUDA_CHECK",
            "`1` makes `torch.cuda.is_available()` ask the driver's library instead of CUDA, so that the process can "
            "be forked afterwards.",
            "Not set.",
            ALONE,
            (python("cuda/__init__.py", "_nvml_based_avail", 'os.getenv("PYTORCH_NVML_BASED_CUDA_CHECK") == "1"'),),
        ),
        Variable(
            "CUBLAS_WORKSPACE_CONFIG",
            "The working memory of cuBLAS. `:4096:8` or `:16:8` makes its results equal from run to run; use it with "
            "`torch.use_deterministic_algorithms(True)`.",
            "Not set.",
            DRIFT,
            (
                guide(
                    "https://docs.pytorch.org/docs/2.12/cudnn_rnn_determinism.html",
                    "pytorch's note on deterministic RNNs",
                ),
            ),
            see="data-parallel/checkpoints#On GPUs",
        ),
        Variable(
            "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
            "`1` lets all products of float32 matrices use TF32: faster, with ten bits of precision.",
            "Not set.",
            "The rank's numbers differ from the others', and by more than the last bits.",
            (library(),),
        ),
        Variable(
            "TORCH_CUDA_SANITIZER",
            "Any text makes torch look for two streams that use one tensor at the same time. It finds missing waits "
            "after `async_op=True`.",
            "Not set.",
            "Only the ranks with it look, and they are slower.",
            (python("__init__.py", "", '"TORCH_CUDA_SANITIZER" in os.environ'),),
        ),
        Variable(
            "TORCH_DEVICE_BACKEND_AUTOLOAD",
            "`0` keeps torch from importing packages for other accelerators when it is imported.",
            "`1`.",
            ALONE,
            (
                python(
                    "__init__.py",
                    "_is_device_backend_autoload_enabled",
                    'os.getenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "1")',
                ),
            ),
        ),
        Variable(
            "TORCH_NCCL_HIGH_PRIORITY",
            "`1` gives NCCL's stream a high priority, so that a collective need not wait for computation.",
            "Not set.",
            ALONE,
            (
                header(
                    "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp",
                    "// Control whether to always use high priority streams",
                    True,
                ),
            ),
        ),
        Variable(
            "TORCH_NCCL_AVOID_RECORD_STREAMS",
            "It changed how torch keeps the memory of tensors that NCCL still uses. torch now always works in the "
            "new way, and only warns that the variable is out of date.",
            "No effect.",
            "Nothing.",
            torch_nccl("TORCH_NCCL_AVOID_RECORD_STREAMS", "ProcessGroupNCCL"),
        ),
        Variable(
            "TORCH_NCCL_CUDA_EVENT_CACHE",
            "`0` makes the watchdog create and destroy CUDA's events instead of reusing them. torch's header says "
            "why it reuses them: destroying one can hang.",
            "`1`.",
            ALONE,
            torch_nccl("TORCH_NCCL_CUDA_EVENT_CACHE", "ProcessGroupNCCL"),
        ),
        Variable(
            "TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
            "`1` tells NCCL about each piece of memory that torch allocates, so that it need not copy into buffers of "
            "its own.",
            "Not set.",
            ALONE,
            (
                header(
                    "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp",
                    '"TORCH_NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK", "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK"',
                    True,
                ),
            ),
        ),
        Variable(
            "TORCH_NCCL_RANKS_PER_ROOT",
            "In jobs of hundreds of ranks: how many ranks get NCCL's first address from the same process.",
            "Set by torch.",
            "**All ranks need the same value:** they must agree on who gives it.",
            (
                header(
                    "torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp",
                    "// Control the number of ranks each root can cover",
                    True,
                ),
            ),
        ),
        Variable(
            "TORCH_NCCL_BCAST_UNIQUEID",
            "`0` keeps torch from sending NCCL's first address through the store; another program then has to.",
            "`1`.",
            "**All ranks need the same value:** a rank with `1` waits for an address that a rank with `0` does not "
            "send.",
            torch_nccl("TORCH_NCCL_BCAST_UNIQUEID", "ProcessGroupNCCL::initNCCLComm"),
        ),
        Variable(
            "TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING",
            "`0` silences the warning that the sends and receives of a group run one after another if the group "
            "was made with `device_id=`.",
            "`1`.",
            ALONE,
            torch_nccl("TORCH_NCCL_SHOW_EAGER_INIT_P2P_SERIALIZATION_WARNING", "ProcessGroupNCCL"),
        ),
        Variable(
            "TORCH_SYMMMEM_IMPLICIT_POOL",
            "`0` keeps symmetric memory from taking its tensors out of a pool by itself.",
            "`1`.",
            "Symmetric memory has the same layout on all ranks, so give all ranks the same value.",
            (python("distributed/_symmetric_memory/__init__.py", "", 'os.getenv("TORCH_SYMMMEM_IMPLICIT_POOL", "1")'),),
        ),
        Variable(
            "FSDP_SKIP_WRITEBACK_CHECK",
            "`1` leaves out a check of the older FSDP: whether other tensors have replaced its parameters. torch "
            "warns that errors may then stay silent.",
            "Not set.",
            ALONE,
            (
                python(
                    "distributed/fsdp/_flat_param.py",
                    "FlatParamHandle",
                    'os.environ.get(_FSDP_SKIP_WRITEBACK_CHECK, "") == "1"',
                ),
            ),
        ),
        Variable(
            "NCCL_MULTI_RANK_GPU_ENABLE",
            "`1` lets several ranks use one GPU. NVIDIA calls it experimental. It had no effect in NCCL 2.28.9, "
            "but there `NCCL_HOSTID` does the same.",
            "`0`: the group cannot be made, with the message *Duplicate GPU detected*.",
            SAME,
            (nccl("NCCL_MULTI_RANK_GPU_ENABLE"),),
            since="NCCL 2.30",
        ),
        Variable(
            "NCCL_LAUNCH_ORDER_IMPLICIT",
            "`1` starts collectives of several groups in the order of the program. It helps against hangs if one "
            "rank uses two groups at once.",
            "`0`.",
            SAME,
            (nccl("NCCL_LAUNCH_ORDER_IMPLICIT"),),
            since="NCCL 2.26",
        ),
    ),
)
