"""What this book's helper reads and sets."""

from ..entry import Group, Variable, ranklab

OWN = "ranklab sets it for the processes that it starts. Do not set it yourself."
SAME = "All ranks of one world have the same value."


def own(name, what, path, code, default=OWN, differ=SAME):
    """A variable of ranklab."""
    return Variable(name, what, default, differ, (ranklab(path, "", code),))


GROUP = Group(
    "What ranklab reads and sets",
    "`ranklab` gives its ranks the variables that torchrun gives, so the programs of this book run under both. In "
    "addition it sets `GLOO_SOCKET_IFNAME` or `NCCL_SOCKET_IFNAME`, `TORCH_FR_BUFFER_SIZE`, "
    "`CUDA_VISIBLE_DEVICES`, and with NCCL `TORCH_NCCL_ASYNC_ERROR_HANDLING`, so that a notebook outlives a hang. "
    "It removes variables that begin with `TORCHELASTIC_`, because they would describe another job.",
    (
        own(
            "IPP_NONINTERACTIVE",
            "`1` says that nobody watches, so panels do not move and text is the same in every run. Authors and "
            "tests set it.",
            "ranklab/live.py",
            'os.environ.get("IPP_NONINTERACTIVE")',
            "Not set.",
            "Nothing: the notebook reads it, the ranks do not.",
        ),
        own(
            "RANKLAB_ROOM",
            "A folder in which a learner lets an instructor see verdicts, how many ranks run, and the last hang. "
            "`make hub` names one; as long as it does not exist, nothing is written. Remove it, and nothing is written "
            "any more.",
            "ranklab/classroom.py",
            'os.environ.get("RANKLAB_ROOM")',
            "Not set.",
            "Nothing: the notebook reads it, the ranks do not.",
        ),
        own(
            "RANKLAB_BACKEND",
            "The backend that `ranklab.start` has chosen. `ranklab.device()` follows it.",
            "ranklab/system/backends.py",
            'BACKEND = "RANKLAB_BACKEND"',
        ),
        own(
            "RANKLAB_SHARED",
            "Says that several ranks share a GPU.",
            "ranklab/system/backends.py",
            'SHARED = "RANKLAB_SHARED"',
        ),
        own(
            "RANKLAB_ENGINES",
            "The launcher of ranks that come from elsewhere: `slurm`, `mpi` or `ssh`.",
            "ranklab/system/gpus.py",
            'ENGINES = "RANKLAB_ENGINES"',
        ),
        own(
            "RANKLAB_HOST",
            "The process whose network a rank uses, if hosts were made on this machine.",
            "ranklab/lab/namespaces.py",
            'HOST = "RANKLAB_HOST"',
            differ="Ranks on different hosts have different values.",
        ),
        own(
            "RANKLAB_OWNER",
            "The process whose end also ends the rank, so that nothing is left when the notebook is closed.",
            "ranklab/system/deadman.py",
            'OWNER = "RANKLAB_OWNER"',
            differ="Ranks that the same process has started have the same value.",
        ),
        own(
            "RANKLAB_HOME",
            "The folder of a world's files. It is removed when the world stops.",
            "ranklab/system/deadman.py",
            'HOME = "RANKLAB_HOME"',
        ),
        own(
            "RANKLAB_SSH_RANK",
            "The rank's number if ssh has started it, because ssh itself gives no numbers.",
            "ranklab/system/foreign.py",
            'RANK_NAMES = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANKLAB_SSH_RANK")',
            differ="They have to, because each rank needs a number of its own.",
        ),
    ),
)
