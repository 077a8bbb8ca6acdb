"""Who is this process, and how many are there?"""

from ..entry import Group, Variable, guide, library, python, ranklab

AGENT = "distributed/elastic/agent/server/local_elastic_agent.py"
START = "LocalElasticAgent._start_workers"
SET = "None. torchrun sets it for each of its processes."
SIX = "ranks/rank-local-rank-world-size#The six numbers"
FOREIGN = ranklab(
    "ranklab/system/foreign.py",
    "",
    'RANK_NAMES = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANKLAB_SSH_RANK")',
)
SRUN = guide("https://slurm.schedmd.com/srun.html", "srun's manual, Output environment variables")
OPEN_MPI = guide("https://docs.open-mpi.org/en/v5.0.x/tuning-apps/environment-var.html", "Open MPI's guide")


def given(value):
    """torchrun's agent writes it into the environment of a worker."""
    return python(AGENT, START, value)


GROUP = Group(
    "Who am I, and how many are we?",
    "torchrun gives these numbers to the processes that it starts. The second of two processes on one machine sees "
    "these, besides the environment that torchrun itself was started with. `…` stands for what differs from job to "
    "job.",
    (
        Variable(
            "RANK",
            "The number of this process among all processes of the job, from 0. `init_process_group` reads it, unless "
            "you pass `rank=`.",
            f"{SET} Without it `init_process_group` raises an error.",
            "They have to, because each process needs a number of its own. If two processes have the same number, "
            "the job does not start: both want to open the port of rank 0, or both give the same name to the store.",
            (
                python("distributed/rendezvous.py", "_env_rendezvous_handler", 'int(_get_env_or_raise("RANK"))'),
                given('"RANK": str(worker.global_rank)'),
            ),
            "process 0: DistStoreError: Timed out after … seconds waiting for clients. 1/2 clients joined.\nprocess "
            "1: DistNetworkError: The server socket has failed to listen on any local network address. port: …, "
            "useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
            "meeting.same_rank",
            see=SIX,
        ),
        Variable(
            "WORLD_SIZE",
            "How many processes the whole job has. `init_process_group` reads it, unless you pass `world_size=`.",
            f"{SET} Without it `init_process_group` raises an error.",
            "The rank with the larger number waits for a rank that does not exist. Here rank 1 was told that there "
            "are three ranks, and the end of its message, `/2`, names the rank that never came. Rank 0 was told "
            "two, and lost its partner when rank 1 gave up. Its error changes from run to run: `Timed out`, "
            "`Connection reset` or `Connect timeout`.",
            (
                python("distributed/rendezvous.py", "_env_rendezvous_handler", 'int(_get_env_or_raise("WORLD_SIZE"))'),
                given('"WORLD_SIZE": str(worker.world_size)'),
            ),
            "process 0: RuntimeError: …\nprocess 1: DistStoreError: wait timeout after …ms, keys: …/0/2",
            "meeting.other_size",
            see=SIX,
        ),
        Variable(
            "LOCAL_RANK",
            "The number of this process on its own machine, from 0. Programs use it to choose their GPU, and "
            "`init_device_mesh` and `dist.get_node_local_rank()` read it.",
            f"{SET} Slurm and MPI have names of their own for it.",
            "On one machine they must differ. If two processes of one machine have the same number, both choose "
            "the same GPU, and at first there is no error.",
            (
                python("distributed/distributed_c10d.py", "get_node_local_rank", 'int(os.environ["LOCAL_RANK"])'),
                python("distributed/device_mesh.py", "DeviceMesh", 'int(os.environ["LOCAL_RANK"])'),
                python(AGENT, "LocalElasticAgent._set_local_rank_env", 'worker_env["LOCAL_RANK"] = str(local_rank)'),
            ),
            "process 0: cuda:0\nprocess 1: cuda:0",
            "meeting.same_local_rank",
            see="ranks/rank-local-rank-world-size#Which GPU is mine?",
        ),
        Variable(
            "LOCAL_WORLD_SIZE",
            "How many processes torchrun has started on this machine. Programs divide CPU cores and GPUs by it.",
            SET,
            "That is normal on machines with different numbers of processes.",
            (given('"LOCAL_WORLD_SIZE": str(spec.local_world_size)'),),
            see=SIX,
        ),
        Variable(
            "GROUP_RANK",
            "The number of this machine, or more exactly of this torchrun, from 0. torchrun sets no variable "
            "`NODE_RANK`.",
            SET,
            "Processes of different machines have different values. With the `c10d` rendezvous a machine can get "
            "another number after a restart.",
            (given('"GROUP_RANK": str(worker_group.group_rank)'),),
            see=SIX,
        ),
        Variable(
            "GROUP_WORLD_SIZE",
            "How many torchruns take part, usually one on each machine.",
            SET,
            "They do not differ within one attempt. In an elastic job the number changes when a machine comes or goes.",
            (given('"GROUP_WORLD_SIZE": str(worker_group.group_world_size)'),),
            see=SIX,
        ),
        Variable(
            "ROLE_NAME",
            "The role of this process, as given with `--role`. torchrun puts it in front of log lines.",
            f"{SET} Without `--role` the value is `default`.",
            "One job can have processes of several roles, but one torchrun starts processes of one role.",
            (given('"ROLE_NAME": spec.role'),),
        ),
        Variable(
            "ROLE_RANK",
            "The number of this process among those of its role. With one role it is equal to `RANK`.",
            SET,
            "They must differ among the processes of a role. torchrun counts them itself.",
            (given('"ROLE_RANK": str(worker.role_rank)'),),
        ),
        Variable(
            "ROLE_WORLD_SIZE",
            "How many processes have the same role. With one role it is equal to `WORLD_SIZE`.",
            SET,
            "Processes of different roles may have different values.",
            (given('"ROLE_WORLD_SIZE": str(worker.role_world_size)'),),
        ),
        Variable(
            "SLURM_PROCID",
            "Slurm's name for the rank: the number of this task in the step that `srun` has started.",
            "None. `srun` sets it. torch does not read it, so a program under plain `srun` copies it into `RANK`.",
            "They have to, because each task needs a number of its own. In the batch script itself it is 0, "
            "because the script runs once, on the first node.",
            (FOREIGN, SRUN),
            see="launching/two-computers#When there are many: Slurm",
        ),
        Variable(
            "SLURM_LOCALID",
            "Slurm's name for the local rank: the number of this task on its node.",
            "None. `srun` sets it. A program under plain `srun` copies it into `LOCAL_RANK`.",
            "They have to on one node, because each task of the node needs a number of its own.",
            (SRUN,),
            see="launching/two-computers#When there are many: Slurm",
        ),
        Variable(
            "SLURM_NTASKS",
            "How many tasks the step or the job has. A program under plain `srun` copies it into `WORLD_SIZE`.",
            "None. Slurm sets it if the job asked for a number of tasks.",
            "They do not differ: all tasks of one step have the same value.",
            (SRUN,),
            see="launching/two-computers#When there are many: Slurm",
        ),
        Variable(
            "OMPI_COMM_WORLD_RANK",
            "Open MPI's name for the rank. `mpirun` sets it for each process that it starts.",
            "None. A program under `mpirun` copies it into `RANK`.",
            "They have to, because each process needs a number of its own.",
            (FOREIGN, OPEN_MPI),
        ),
        Variable(
            "OMPI_COMM_WORLD_LOCAL_SIZE",
            "Open MPI's name for the number of processes on this machine.",
            "None. `mpirun` sets it.",
            "That is normal on machines with different numbers of processes.",
            (library(), OPEN_MPI),
        ),
    ),
    "GROUP_RANK=0\nGROUP_WORLD_SIZE=1\nLOCAL_RANK=1\nLOCAL_WORLD_SIZE=2\nMASTER_ADDR=…\nMASTER_PORT=…\nOMP_NUM_THREADS=1\nRANK=1\nROLE_NAME=default\nROLE_RANK=1\nROLE_WORLD_SIZE=2\nTORCHELASTIC_ERROR_FILE=…/attempt_0/1/error.json\nTORCHELASTIC_MAX_RESTARTS=0\nTORCHELASTIC_RESTART_COUNT=0\nTORCHELASTIC_RUN_ID=…\nTORCHELASTIC_SIGNALS_TO_HANDLE=SIGTERM,SIGINT,SIGHUP,SIGQUIT\nTORCHELASTIC_USE_AGENT_STORE=True\nTORCH_NCCL_ASYNC_ERROR_HANDLING=1\nWORLD_SIZE=2",
    "launching.given",
)
