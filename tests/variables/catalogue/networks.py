"""Over which cable, and by which means?"""

from ..entry import Group, Variable, guide, library, python, repository
from .waiting import nccl

DEVICES = repository("torch/csrc/distributed/c10d/GlooDeviceFactory.cpp", "makeGlooDevice")
SLOWER = "Use it to find out whether this path causes the trouble. It costs speed, so take it out again."
SAME = "NCCL's guide does not say. Give all ranks the same value."
LISTED = "_dump_DDP_relevant_env_vars"


def listed(name):
    """A variable of NCCL that torch knows how to print."""
    return python("nn/parallel/distributed.py", LISTED, "", named=True), nccl(name)


GROUP = Group(
    "Which network is used?",
    "A machine has several networks, and the one that is chosen by default does not always reach the other "
    "machines. To see the choice, set `NCCL_DEBUG=INFO` for NCCL. gloo prints its choice only when it fails: the "
    "error names the address.",
    (
        Variable(
            "GLOO_SOCKET_IFNAME",
            "The network interface that gloo uses, for example `eth0`; several are joined by commas. `ip -brief "
            "address` lists the names of this machine.",
            "Not set: gloo takes the address to which the machine's own name leads. On many laptops and on some "
            "clusters that is 127.0.0.1 or 127.0.1.1, where no other machine can reach it.",
            "The name may differ from machine to machine, but all ranks need the same number of names. A name that "
            "this machine does not have is an error at once, and the other ranks wait for the timeout. Here rank 1 "
            "had `nic7`.",
            (library(symbol="`ProcessGroupGloo`"), python("nn/parallel/distributed.py", LISTED, "", named=True)),
            "process 0: DistStoreError: wait timeout after …ms, keys: …/0/1\n"
            "process 1: RuntimeError: … Unable to find address for: nic7",
            "networks.other_interface",
            see="launching/two-computers#Names that lead nowhere",
        ),
        Variable(
            "GLOO_DEVICE_TRANSPORT",
            "How gloo carries its bytes: `TCP`, or `TCP_TLS` if gloo was built with it. This build has no `TCP_TLS`.",
            "Not set: `TCP` on Linux.",
            "The rank whose transport does not exist fails, and the others wait for it. Here rank 1 had `TCP_TLS`.",
            (library(symbol="`GlooDeviceFactory`"), DEVICES),
            "process 0: DistStoreError: wait timeout after …ms, keys: …/0/1\n"
            "process 1: RuntimeError: makeDeviceForInterface(): unsupported gloo device",
            "networks.other_transport",
        ),
        Variable(
            "TORCH_GLOO_LAZY_INIT",
            "`1` makes gloo connect two ranks when they first talk. Otherwise each rank connects to all others at "
            "once.",
            "`0`.",
            "**All ranks need the same value.** Here rank 1 had `1`, and rank 0 died of signal 11, a segmentation "
            "fault. It left no message of its own, and rank 1 only said that its partner was gone.",
            (library(symbol="`ProcessGroupGloo`"),),
            "process 0: ended by signal 11\nprocess 1: …Error: …",
            "networks.one_is_lazy",
        ),
        Variable(
            "GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER",
            "`1` makes gloo use the rank of the partner as the number of a connection.",
            "Not set.",
            "**All ranks need the same value.** Here rank 1 had `1`, and rank 0 died of signal 11, as with "
            "`TORCH_GLOO_LAZY_INIT`.",
            (library(symbol="gloo's `gloo/common/utils.cc`"),),
            "process 0: ended by signal 11\nprocess 1: …Error: …",
            "networks.one_counts_ranks",
        ),
        Variable(
            "GLOO_ENABLE_STORE_V2_API",
            "`1` lets gloo use calls of the store that came later, such as one that reads several keys at once.",
            "Not set.",
            "Nothing that two ranks could see. Here rank 1 had `1`.",
            (library(symbol="gloo's `gloo/common/utils.cc`"),),
            "process 0: all_reduce counts 2 ranks\nprocess 1: all_reduce counts 2 ranks",
            "networks.other_store_calls",
        ),
        Variable(
            "TP_SOCKET_IFNAME",
            "The network interface of TensorPipe, which carries `torch.distributed.rpc`. Collectives do not use it.",
            "Not set: the address to which the machine's name leads.",
            "The name may differ from machine to machine.",
            (library(symbol="TensorPipe"),),
        ),
        Variable(
            "NCCL_SOCKET_IFNAME",
            "The network interfaces that NCCL uses, as beginnings of names: `eth` takes eth0 and eth1, `=eth0` "
            "only that one. `^docker` leaves out names that begin with `docker`. NCCL needs such a network to find "
            "its partners, even if InfiniBand carries the data.",
            "Not set: NCCL prefers names that begin with `ib`, and takes `lo` and `docker…` only if there is "
            "nothing else.",
            "It may differ from machine to machine, as long as the chosen networks reach each other. gloo does not "
            "know the sign `^`: it looks for an interface of that very name.",
            (library(symbol="DDP's log", named=True), nccl("NCCL_SOCKET_IFNAME")),
            "GLOO_SOCKET_IFNAME=^docker0: RuntimeError: … Unable to find address for: ^docker0",
            "networks.excluded",
            see="launching/two-computers#On GPUs",
        ),
        Variable(
            "NCCL_SOCKET_FAMILY",
            "`AF_INET` forces IPv4 and `AF_INET6` forces IPv6.",
            "Not set: no restriction.",
            "A rank with IPv4 and one with IPv6 cannot connect.",
            (nccl("NCCL_SOCKET_FAMILY"),),
        ),
        Variable(
            "NCCL_NET",
            "Forces one kind of network by its name: `IB`, `Socket`, or that of a plugin. NCCL then fails instead "
            "of falling back to a slower one, so a missing driver becomes visible.",
            "Not set: NCCL takes the best that it finds.",
            SAME,
            (nccl("NCCL_NET"),),
            since="NCCL 2.10",
        ),
        Variable(
            "NCCL_IB_DISABLE",
            f"`1` makes NCCL use sockets instead of InfiniBand and RoCE. {SLOWER}",
            "Not set: InfiniBand is used where there is a card.",
            SAME,
            listed("NCCL_IB_DISABLE"),
        ),
        Variable(
            "NCCL_IB_HCA",
            "Which InfiniBand cards NCCL uses, as beginnings of names, for example `mlx5_0`. `^` leaves cards out and "
            "`=` asks for the exact name.",
            "Not set: all cards.",
            "It may differ from machine to machine, because cards have different names.",
            listed("NCCL_IB_HCA"),
        ),
        Variable(
            "NCCL_IB_GID_INDEX",
            "Which of a card's addresses RoCE uses. `show_gids` lists them. A wrong one connects nowhere.",
            "`-1`: NCCL chooses.",
            "It may differ from machine to machine; both addresses must be of the same kind.",
            listed("NCCL_IB_GID_INDEX"),
            since="NCCL 2.1.4",
        ),
        Variable(
            "NCCL_P2P_DISABLE",
            f"`1` keeps the GPUs of a machine from reading each other's memory over NVLink or PCI. {SLOWER}",
            "Not set.",
            SAME,
            listed("NCCL_P2P_DISABLE"),
        ),
        Variable(
            "NCCL_P2P_LEVEL",
            "How far apart two GPUs may be to read each other's memory: `LOC` never, then `NVL`, `PIX`, `PXB`, `PHB`, "
            "and `SYS` always.",
            "Not set: NCCL decides by the machine.",
            SAME,
            listed("NCCL_P2P_LEVEL"),
            since="NCCL 2.3.4",
        ),
        Variable(
            "NCCL_SHM_DISABLE",
            "`1` makes the processes of one machine talk over the network instead of through shared memory. A "
            f"container whose `/dev/shm` is small needs a larger one, or this variable. {SLOWER}",
            "Not set.",
            SAME,
            listed("NCCL_SHM_DISABLE"),
        ),
        Variable(
            "NCCL_HOSTID",
            "What NCCL takes for the name of this machine. Processes with different names count as being on different "
            "machines, and talk over the network. `ranklab` uses it to put several ranks on one GPU.",
            "Not set: the machine's name, together with a number that its system draws anew at each start.",
            "That puts them on different machines, as far as NCCL knows. Ranks of one machine that are to use "
            "NVLink need the same value.",
            (
                guide(
                    "https://github.com/NVIDIA/nccl/blob/v2.28.9-1/src/misc/utils.cc",
                    "NCCL 2.28.9's source, `src/misc/utils.cc`",
                ),
            ),
        ),
        Variable(
            "NCCL_CROSS_NIC",
            "Whether a ring may leave a machine by one network card and enter the next machine by another: `0` never, "
            "`1` yes, `2` if it must.",
            "`2`.",
            "All ranks of a ring plan the same ring, so set it on all.",
            (nccl("NCCL_CROSS_NIC"),),
        ),
        Variable(
            "NCCL_ALGO",
            "Which algorithms NCCL may use, for example `Ring` or `^Tree`. torch sets it to `^NVLS` by itself when "
            "`torch.use_deterministic_algorithms(True)` holds and you have not set it.",
            "Not set: NCCL chooses for each size.",
            "**All ranks need the same value.** Ranks that follow different algorithms wait for messages that nobody "
            "sends.",
            (
                *listed("NCCL_ALGO"),
                repository("torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp", "ProcessGroupNCCL"),
            ),
            since="NCCL 2.5",
            see="talking/all-reduce#On GPUs",
        ),
        Variable(
            "NCCL_PROTO",
            "Which protocols NCCL may use: `LL`, `LL128`, `Simple`. NVIDIA advises against setting it: `LL128` on a "
            "machine that does not support it can corrupt data.",
            "Not set: all that the machine supports.",
            "**All ranks need the same value**, as with `NCCL_ALGO`.",
            listed("NCCL_PROTO"),
            since="NCCL 2.5",
        ),
        Variable(
            "NCCL_NVLS_ENABLE",
            "`0` turns off NVLink SHARP, with which the switch between the GPUs adds numbers up itself. With it "
            "NCCL needs more GPU memory.",
            "`2`: used if the machine has it.",
            SAME,
            (nccl("NCCL_NVLS_ENABLE"),),
            since="NCCL 2.17",
        ),
        Variable(
            "NCCL_CUMEM_ENABLE",
            "`0` makes NCCL allocate memory in the old way. Some containers and drivers fail with the new one.",
            "Chosen by NCCL since 2.19; `0` in 2.18.",
            SAME,
            (nccl("NCCL_CUMEM_ENABLE"),),
            since="NCCL 2.18",
        ),
    ),
)
