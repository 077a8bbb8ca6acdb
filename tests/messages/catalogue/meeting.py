"""Ranks that do not find one another, and groups that cannot be made."""

from ..entry import Group, Message

FAILS = "ranks/meeting-up#Three meetings that fail"
GROUPS = "ranks/meeting-up#Smaller groups"
WHERE = "ranks/meeting-up#Where they meet"

GROUP = Group(
    "The program stops before its first step",
    "The processes run, but they do not become a job. One of the numbers that they need is missing or wrong, or the "
    "place where they want to meet cannot be reached.",
    (
        Message(
            "environment variable RANK expected, but not set",
            "`init_process_group` looks for the rank in the environment, and nobody has put it there.",
            (
                "The program was started with `python` instead of a launcher.",
                "A launcher such as `srun` or `mpirun` started it, and these set variables of other names.",
                "A container or `ssh` did not pass the environment on.",
            ),
            "Start it with `torchrun --standalone --nproc-per-node=1 train.py`, also for one process. Under Slurm, "
            "copy "
            "`SLURM_PROCID` to `RANK` and `SLURM_NTASKS` to `WORLD_SIZE` first.",
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable RANK "
            "expected, but not set",
            by="meeting.plain_python",
            see="launching/from-spawn-to-torchrun#The program",
        ),
        Message(
            "environment variable MASTER_ADDR expected, but not set",
            "The process knows its rank, but it does not know on which machine rank 0 waits for the others.",
            (
                "A launcher that is not torchrun set the rank, and nothing set the address.",
                "A batch script exports `MASTER_ADDR` on the first node only.",
            ),
            "Export `MASTER_ADDR` and `MASTER_PORT` on every node, with the same values, or let torchrun do it.",
            "ValueError: Error initializing torch.distributed using env:// rendezvous: environment variable "
            "MASTER_ADDR "
            "expected, but not set",
            by="meeting.no_address",
            see=WHERE,
        ),
        Message(
            "KeyError: 'LOCAL_RANK'",
            "The program reads `LOCAL_RANK` from the environment, and this launcher does not set it.",
            (
                "The program was started with `python`.",
                "`srun` or `mpirun` started it: their name for it is `SLURM_LOCALID` or `OMPI_COMM_WORLD_LOCAL_RANK`.",
            ),
            "Start the program with torchrun, or read the launcher's own variable where `LOCAL_RANK` is missing.",
            by="meeting.no_local_rank",
            see="ranks/rank-local-rank-world-size#The six numbers",
        ),
        Message(
            "The server socket has failed to listen on any local network address",
            "Rank 0, or torchrun, wants to open the port where the ranks meet, and another program has it.",
            (
                "A second job on this machine uses the same default port, 29500.",
                "An earlier job still runs, or its processes were left behind.",
                "Two ranks both believe that they are rank 0.",
            ),
            "On one node `torchrun --standalone` takes a free port. On several, each job needs a port of its own in "
            "`--rdzv-endpoint` (or `--master-port`, without `--rdzv-backend`). `ss -ltnp` shows who has the port.",
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. "
            "port: …, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
            by="meeting.port_in_use",
            see=FAILS,
            threads=("https://github.com/pytorch/pytorch/issues/85604",),
        ),
        Message(
            "The client socket has timed out after",
            "This rank tried to reach the meeting place for the whole timeout, and nobody answered there.",
            (
                "Rank 0 has not started, or it has already failed: look at its output first.",
                "`MASTER_ADDR` or `MASTER_PORT` is wrong on this node.",
                "A firewall stands between the nodes.",
            ),
            "Look at the log of rank 0. Then try `nc -vz ADDRESS PORT` from this node while rank 0 waits.",
            "torch.distributed.DistNetworkError: The client socket has timed out after …ms while trying to connect to "
            "(…, …).",
            by="meeting.nobody_listens",
            see="launching/two-computers#Names that lead nowhere",
        ),
        Message(
            "cannot be retrieved (gai error:",
            "The name of the machine where the ranks meet leads to no address.",
            (
                "`MASTER_ADDR` or `--rdzv-endpoint` has a slip in the name.",
                "The name is known on the login node, and it is not known on the compute nodes.",
            ),
            "Try `getent hosts NAME` on every node. If it prints nothing, use the address itself.",
            "[c10d] The IPv6 network addresses of (…, …) cannot be retrieved (gai error: … - …).",
            by="meeting.unknown_name",
            see="launching/two-computers#Names that lead nowhere",
        ),
        Message(
            "seconds waiting for clients.",
            "The store at rank 0 is open, but fewer processes came than `WORLD_SIZE` says.",
            (
                "One of the processes has failed before it came here.",
                "The numbers of nodes or of processes in the start commands do not agree.",
                "One node cannot reach the address of rank 0.",
            ),
            "Count the processes on each node. Then compare `--nnodes` and `--nproc-per-node` of all start commands.",
            "torch.distributed.DistStoreError: Timed out after … seconds waiting for clients. 1/2 clients joined.",
            by="meeting.a_rank_is_missing",
            see="launching/two-computers#The computer that never comes",
        ),
        Message(
            "wait timeout after",
            "A process waited for a key of the store, and no other process has written that key in time.",
            (
                "Another rank has failed, or it is slower than the timeout, before it wrote its part.",
                "Only some of the ranks call `new_group`, `init_device_mesh` or a checkpoint function.",
            ),
            "Find the rank that did not arrive: compare the last line that each rank has logged.",
            "torch.distributed.DistStoreError: wait timeout after 1000ms, keys: /…",
            by="meeting.a_key_that_nobody_sets",
            see="ranks/meeting-up#The table and its cards",
        ),
        Message(
            "RuntimeError: Wait timeout",
            "A process waited at a shared file, and another rank has not written its part there.",
            (
                'With `init_method="file://…"`: fewer processes came than `world_size` says.',
                "Only the members of a group called `new_group`, and every rank has to call it.",
                "The file is left over from an earlier run.",
            ),
            "Have all ranks make the same calls. Delete the file before each start.",
            by="meeting.only_one_makes_the_group",
            see="ranks/meeting-up#A group that only its members make",
        ),
        Message(
            "trying to initialize the default process group twice!",
            "This process already has its default process group, and `init_process_group` was called again.",
            (
                "A notebook's cell was run a second time.",
                "The program and a library such as Lightning or Accelerate both make the group.",
            ),
            "Ask `dist.is_initialized()` first, or call `dist.destroy_process_group()` before you make it anew.",
            "ValueError: trying to initialize the default process group twice!",
            by="meeting.twice",
        ),
        Message(
            "Default process group has not been initialized",
            "A function of `torch.distributed` was called before `init_process_group`, or after the group was "
            "destroyed.",
            (
                "The program never calls `init_process_group`, for example when it runs on one process.",
                "`DistributedSampler`, `DistributedDataParallel` or a logger is made before the group.",
                "The call stands after `destroy_process_group`.",
            ),
            "Make the group in the first lines of the program. For one process, give the sampler `num_replicas=1` and "
            "`rank=0`.",
            "ValueError: Default process group has not been initialized, please make sure to call init_process_group.",
            by="meeting.no_group",
            see="launching/from-spawn-to-torchrun#One process, then many, without a change",
        ),
        Message(
            "Process group cannot be None",
            "`destroy_process_group` was called, and there is no group any more.",
            ("The call stands in two places, for example at the end of `main` and in a `finally`.",),
            "Write `if dist.is_initialized(): dist.destroy_process_group()`.",
            "AssertionError: Process group cannot be None",
            by="meeting.ended_twice",
        ),
        Message(
            "Unknown backend type",
            "The name of the backend is none that torch knows.",
            ("A slip in the name: `glo`, `nvidia`.", "A backend of a package that was not imported."),
            "The usual names are `gloo` and `nccl`. `dist.get_default_backend_for_device(device)` returns the right "
            "one.",
            "AssertionError: Unknown backend type glo",
            by="meeting.misspelt_backend",
            see="ranks/meeting-up#What a backend carries",
        ),
        Message(
            "Distributed package doesn't have NCCL built in",
            "This torch was built without NCCL, and the program asks for the backend `nccl`.",
            (
                "The CPU build of torch is installed, by `pip` from the CPU index or on macOS.",
                "The program runs on Windows, where torch has no NCCL.",
            ),
            "Install the CUDA build of torch, or use `gloo` on a machine without an NVIDIA GPU.",
            "RuntimeError: Distributed package doesn't have NCCL built in",
            by="meeting.no_nccl",
            see="ranks/meeting-up#What a backend carries",
        ),
        Message(
            "rank < size",
            "A process gave a rank that is not smaller than the number of processes.",
            (
                "Ranks were counted from 1 instead of from 0.",
                "`RANK` was computed from the node's number with the wrong number of processes per node.",
            ),
            "Ranks go from 0 to `WORLD_SIZE` − 1. Let torchrun compute them.",
            "RuntimeError: [enforce fail at …gloo/context.cc:…] rank < size. 2 vs 2",
            by="meeting.rank_beyond_the_world",
            see="ranks/rank-local-rank-world-size#The six numbers",
        ),
        Message(
            "Unable to find address for",
            "gloo was told to use a network interface that this machine does not have.",
            (
                "`GLOO_SOCKET_IFNAME` was copied from another machine.",
                "The nodes of the cluster have interfaces of different names.",
            ),
            "`ip -brief address` lists the names. Set the variable on each node to a name that exists there.",
            "RuntimeError: [enforce fail at …gloo/transport/tcp/device.cc:…] ifa != nullptr. Unable to find address "
            "for: "
            "eth77",
            by="meeting.wrong_interface",
            see="launching/two-computers#Names that lead nowhere",
        ),
        Message(
            "Gloo connectFullMesh failed",
            "The ranks have met at the store, but two of them cannot connect to each other.",
            (
                "A machine's own name leads to `127.0.1.1`, so it gives the others an address that is their own.",
                "gloo chose the wrong network interface, for example that of a VPN or of Docker.",
                "A firewall lets the meeting port through and no other port.",
            ),
            "Set `GLOO_SOCKET_IFNAME` on every node to the interface that the nodes share.",
            source="torch/lib/libtorch_cpu.so: connectFullMesh failed",
            see="launching/two-computers#Names that lead nowhere",
        ),
        Message(
            "is out of range. Valid ranks are",
            "`new_group` was given a rank that the job does not have.",
            ("The list of ranks was written for a larger job.",),
            "Compute the list from `dist.get_world_size()`.",
            "ValueError: Rank 2 is out of range. Valid ranks are 0 to 1 (world_size=2)",
            by="meeting.new_group_beyond_the_world",
            see=GROUPS,
        ),
        Message(
            "the new group's world size should be less or equal to the world size",
            "`new_group` was given more ranks than the job has.",
            ("The list of ranks was written for a larger job.",),
            "Compute the list from `dist.get_world_size()`.",
            "ValueError: the new group's world size should be less or equal to the world size set by "
            "init_process_group",
            by="meeting.new_group_too_large",
            see=GROUPS,
        ),
        Message(
            "is not part of group",
            "`src` or `dst` is the number of a rank that does not belong to this group.",
            (
                "`src=0` was written in a group to which global rank 0 does not belong.",
                "A number inside the group was given where torch wants the global rank.",
            ),
            "Give `group_src=0`, which counts inside the group, instead of `src=0`.",
            "ValueError: Global rank 5 is not part of group <torch.distributed.distributed_c10d.ProcessGroup object at "
            "…>",
            by="meeting.root_of_another_group",
            see=GROUPS,
        ),
        Message(
            "which does not belong to the given group",
            "A rank called a collective of a group that it is not a member of; torch skips the call.",
            ("The call has no condition around it, and not all ranks are members of the group.",),
            "Put the call below `if rank in members:`. The tensor of this rank is unchanged, so do not use it as a "
            "result.",
            "UserWarning: Running all_reduce on global rank 1 which does not belong to the given group.",
            by="meeting.group_of_others",
            see=GROUPS,
        ),
        Message(
            "Mesh should not be bigger than default world size",
            "The mesh has more places than the job has ranks.",
            ("The mesh of a larger machine, for example `(2, 4)`, is used in a small test.",),
            "Compute the shape from `dist.get_world_size()`.",
            "RuntimeError: Mesh should not be bigger than default world size 1, but found 4 ranks!",
            by="meeting.mesh_too_large",
        ),
        Message(
            "Invalid mesh_dim_names",
            "The mesh has no dimension of this name.",
            ('`mesh["tp"]` is used, and the mesh was made with other names or without any.',),
            'Give all names when you make the mesh: `init_device_mesh(…, mesh_dim_names=("dp", "tp"))`.',
            "KeyError: \"Invalid mesh_dim_names ('tp',) specified. Valid mesh_dim_names are ['dp'].\"",
            by="meeting.mesh_dimension_unknown",
        ),
    ),
)
