"""Where do the ranks meet?"""

from ..entry import Group, Variable, python

AGENT = "distributed/elastic/agent/server/local_elastic_agent.py"
RENDEZVOUS = "distributed/rendezvous.py"
OPTION = python("distributed/argparse_util.py", "env", "os.environ.get(env_name, default)")
FLAG = python("distributed/argparse_util.py", "check_env", 'os.environ.get(env_name, "1" if default else "0")')
NODE = "Each torchrun reads its own, so the machines of a job can differ."


def option(name, flag, what, default, differ=NODE, see="", shows="", by=""):
    """An option of torchrun as a variable."""
    what = f"torchrun's option `{flag}`. {what}"
    reader = python("distributed/run.py", "get_args_parser", f'"{flag}"')
    return Variable(name, what, default, differ, (OPTION, reader), shows, by, see=see)


GROUP = Group(
    "Where do we meet?",
    "All ranks look for one store, which has an address and a port. Whoever starts the ranks tells them where the "
    "store is. Every option of torchrun can be given as a variable as well: write `PET_` and the option's name in "
    "capitals, with `_` instead of `-`, so `--node-rank` is `PET_NODE_RANK`. Jobs on Kubernetes often use these. "
    "An option on the command line wins over the variable.",
    (
        Variable(
            "MASTER_ADDR",
            "The machine where the store is, as a name or an address. `init_process_group` reads it when you pass "
            "neither `init_method=` nor `store=`.",
            "None. torchrun sets it. Without it `init_process_group` raises an error.",
            "The texts may differ, if they lead to the same machine. Here rank 0 had `127.0.0.1` and rank 1 had "
            "`localhost`.",
            (
                python(RENDEZVOUS, "_env_rendezvous_handler", '_get_env_or_raise("MASTER_ADDR")'),
                python(AGENT, "LocalElasticAgent._start_workers", '"MASTER_ADDR": worker_group.master_addr'),
            ),
            "process 0: all_reduce counts 2 ranks\nprocess 1: all_reduce counts 2 ranks",
            "meeting.other_name",
            see="ranks/meeting-up#Where they meet",
        ),
        Variable(
            "MASTER_PORT",
            "The port of the store at `MASTER_ADDR`. Rank 0 opens it, or torchrun does.",
            "None. torchrun sets it; the default of its own `--master-port` is 29500. Without it "
            "`init_process_group` raises an error.",
            "They never meet. Rank 0 waits at its port, and the other rank tries a port where nobody listens.",
            (
                python(RENDEZVOUS, "_env_rendezvous_handler", 'int(_get_env_or_raise("MASTER_PORT"))'),
                python(AGENT, "LocalElasticAgent._start_workers", '"MASTER_PORT": str(worker_group.master_port)'),
            ),
            "process 0: DistStoreError: Timed out after … seconds waiting for clients. 1/2 clients joined.\n"
            "process 1: DistNetworkError: The client socket has timed out after …ms while trying to connect to "
            "(127.0.0.1, …).",
            "meeting.other_port",
            see="ranks/meeting-up#Where they meet",
        ),
        Variable(
            "USE_LIBUV",
            "`0` takes the older of the two implementations of the store's server. Only the process that serves "
            "the store reads it.",
            "`1`, except on Windows, where it is `0`.",
            "Nothing happens, because clients talk to both servers in the same way. Here rank 0 had `0` and rank 1 "
            "had `1`.",
            (
                python(RENDEZVOUS, "_get_use_libuv_from_query_dict", 'os.environ.get("USE_LIBUV", "1")'),
                python(
                    "distributed/elastic/utils/distributed.py", "create_c10d_store", 'os.environ.get("USE_LIBUV", "1")'
                ),
            ),
            "process 0: all_reduce counts 2 ranks\nprocess 1: all_reduce counts 2 ranks",
            "meeting.other_store",
        ),
        Variable(
            "TORCHELASTIC_USE_AGENT_STORE",
            "`True` says that torchrun serves the store, so that rank 0 does not open one. torchrun sets it.",
            "None, which means that rank 0 serves the store.",
            "If rank 0 has `True` and there is no torchrun, nobody opens the port. That happens when a worker of "
            "torchrun starts processes of its own, and these inherit the variable.",
            (
                python(
                    RENDEZVOUS,
                    "_torchelastic_use_agent_store",
                    'os.environ.get("TORCHELASTIC_USE_AGENT_STORE", None) == str(True)',
                ),
            ),
            "process 0: DistNetworkError: The client socket has timed out after …ms while trying to connect to "
            "(127.0.0.1, …).\nprocess 1: DistNetworkError: The client socket has timed out after …ms while trying to "
            "connect to (127.0.0.1, …).",
            "meeting.no_agent",
            see="ranks/meeting-up#Where they meet",
        ),
        Variable(
            "TORCHELASTIC_RUN_ID",
            "The name of the job, as given with `--rdzv-id`. `dist.is_torchelastic_launched()` only checks that "
            "this variable exists.",
            "None. torchrun sets it; `--standalone` makes a new name for each start.",
            "torchruns with different names do not meet, because the name is part of the key in the store.",
            (
                python(
                    "distributed/distributed_c10d.py", "is_torchelastic_launched", 'os.getenv("TORCHELASTIC_RUN_ID")'
                ),
                python(
                    AGENT, "LocalElasticAgent._start_workers", '"TORCHELASTIC_RUN_ID": spec.rdzv_handler.get_run_id()'
                ),
            ),
        ),
        Variable(
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE",
            "`1` gives the workers a store of their own. Otherwise they use the store in which the torchruns meet.",
            "`0`.",
            f"{NODE} But all of them should have the same value, because it decides who opens the store: a machine "
            "with another value looks for the store elsewhere. With `1` on a single machine, each worker sees the "
            "following.",
            (
                python(
                    "distributed/elastic/rendezvous/dynamic_rendezvous.py",
                    "DynamicRendezvousHandler.use_agent_store",
                    'os.getenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0")',
                ),
            ),
            "agent store: False",
            "launching.separate_store",
        ),
        Variable(
            "PYTHON_EXEC",
            "The Python that torchrun starts the workers with.",
            "The Python that runs torchrun.",
            f"{NODE} Another Python can have another torch, and nothing compares them. The output below comes from a "
            "script that takes the place of Python.",
            (python("distributed/run.py", "config_from_args", 'os.getenv("PYTHON_EXEC", sys.executable)'),),
            "instead of Python: -u worker.py",
            "launching.other_python",
        ),
        option(
            "PET_NNODES",
            "--nnodes",
            "How many machines take part, or `min:max` for an elastic job.",
            "`1:1`.",
            "Each torchrun waits for as many as its own value says, so the machines should agree.",
        ),
        option(
            "PET_NPROC_PER_NODE",
            "--nproc-per-node",
            "How many processes are started on this machine: a number, `gpu`, `cpu` or `auto`.",
            "`1`.",
            f"{NODE} Here the variable was `2`, and the command line said `--nproc-per-node=1`: the command line wins.",
            see="launching/from-spawn-to-torchrun#Two machines, unequal",
            shows="workers: 1",
            by="launching.option_beats_variable",
        ),
        option(
            "PET_NODE_RANK",
            "--node-rank",
            "The number of this machine. Only the static rendezvous reads it; the others number the machines "
            "themselves.",
            "`0`.",
            "They have to, because each machine needs a number of its own.",
        ),
        option(
            "PET_MASTER_ADDR",
            "--master-addr",
            "The machine with number 0. Only the static rendezvous reads it.",
            "`127.0.0.1`.",
            "They do not meet, as with `MASTER_ADDR`.",
        ),
        option(
            "PET_MASTER_PORT",
            "--master-port",
            "The port on that machine. Only the static rendezvous reads it.",
            "`29500`, so two jobs on one machine want the same port.",
            "They do not meet, as with `MASTER_PORT`.",
        ),
        option(
            "PET_RDZV_BACKEND",
            "--rdzv-backend",
            "How the torchruns find one another: `static` or `c10d`, and two more that need etcd.",
            "`static`.",
            "They do not meet: each backend talks to its store in its own way.",
        ),
        option(
            "PET_RDZV_ENDPOINT",
            "--rdzv-endpoint",
            "Where the torchruns meet, as `host:port`.",
            "Empty.",
            "They do not meet, unless both texts lead to the same place.",
        ),
        option(
            "PET_RDZV_ID",
            "--rdzv-id",
            "The name of the job. Two jobs with one endpoint need two names.",
            "`none`.",
            "They do not meet, because the name is part of the key in the store.",
        ),
        option(
            "PET_RDZV_CONF",
            "--rdzv-conf",
            "Further settings as `key=value,key=value`, for example `join_timeout=60`.",
            "Empty.",
        ),
        Variable(
            "PET_STANDALONE",
            "torchrun's option `--standalone`: one machine, and a free port.",
            "`0`.",
            "A machine with `1` starts a job of its own, and the other machines wait for it.",
            (FLAG, python("distributed/run.py", "get_args_parser", '"--standalone"')),
        ),
    ),
)
