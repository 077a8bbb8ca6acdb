"""What torchrun does when something fails."""

from ..entry import Group, Variable, python
from .meeting import NODE, option

AGENT = "distributed/elastic/agent/server/local_elastic_agent.py"
START = "LocalElasticAgent._start_workers"

GROUP = Group(
    "Restarts and elastic jobs",
    "torchrun sets the first three for its workers. It reads most of the others itself, and each entry says who does.",
    (
        Variable(
            "TORCHELASTIC_RESTART_COUNT",
            "How often the workers of this job were restarted after a failure. A program can use it to say in its "
            "log which attempt this is.",
            "None. torchrun sets it, `0` at first.",
            "It can differ between machines: each torchrun counts its own restarts.",
            (python(AGENT, START, '"TORCHELASTIC_RESTART_COUNT": str(restart_count)'),),
        ),
        Variable(
            "TORCHELASTIC_MAX_RESTARTS",
            "How many restarts are allowed, as `--max-restarts` said.",
            "None. torchrun sets it.",
            "Each torchrun has its own limit.",
            (python(AGENT, START, '"TORCHELASTIC_MAX_RESTARTS": str(spec.max_restarts)'),),
        ),
        Variable(
            "TORCHELASTIC_ERROR_FILE",
            "Where `@record` writes the exception of this worker. torchrun reads it for its report at the end.",
            "None. torchrun sets it for each worker.",
            "They do differ: each worker has a file of its own. If two share one, the report shows only one of the "
            "errors.",
            (
                python(
                    "distributed/elastic/multiprocessing/errors/error_handler.py",
                    "ErrorHandler._get_error_file_path",
                    'os.environ.get("TORCHELASTIC_ERROR_FILE", None)',
                ),
                python(
                    "distributed/elastic/multiprocessing/api.py",
                    "DefaultLogsSpecs",
                    'envs[local_rank]["TORCHELASTIC_ERROR_FILE"] = error_file',
                ),
            ),
            see="launching/from-spawn-to-torchrun#When it breaks",
        ),
        option(
            "PET_MAX_RESTARTS",
            "--max-restarts",
            "How often all workers are restarted when one of them fails.",
            "`0`: one failure ends the job.",
            "Each torchrun has its own limit. The first one that reaches its limit ends its workers, and the "
            "others' workers lose their partners.",
        ),
        option(
            "PET_MONITOR_INTERVAL",
            "--monitor-interval",
            "How often torchrun looks at its workers, in seconds. A death is seen at the next look.",
            "`0.1`.",
        ),
        option(
            "PET_LOG_DIR",
            "--log-dir",
            "The folder of the workers' log files. They are written with `--redirects` or `--tee`.",
            "None: a new folder in the system's place for temporary files.",
        ),
        option(
            "PET_TEE",
            "--tee",
            "Which outputs go to the terminal and to a file: `1` standard output, `2` standard error, `3` both.",
            "`0`.",
        ),
        option(
            "PET_REDIRECTS",
            "--redirects",
            "Which outputs go to a file only, with the same numbers.",
            "`0`.",
        ),
        Variable(
            "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE",
            "What `--tee` puts in front of each line. `${role_name}`, `${rank}` and `${local_rank}` are filled in.",
            "The role and the local rank, for example `[default0]:`. With several machines that prefix is not "
            "unique, so `rank ${rank}:` is better.",
            f"{NODE} With `rank ${{rank}}: ` two workers show:",
            (python("distributed/run.py", "config_from_args", 'os.getenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE")'),),
            "rank 0: ready\nrank 1: ready",
            "launching.prefix",
        ),
        Variable(
            "TORCH_ELASTIC_SHUTDOWN_TIMEOUT",
            "How many seconds a worker has between SIGTERM and SIGKILL. A program that saves at SIGTERM has to "
            "finish in this time. The option `--shutdown-timeout` wins over the variable.",
            "`30`.",
            NODE,
            (
                python(
                    "distributed/launcher/api.py",
                    "LaunchConfig.__post_init__",
                    'os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "30")',
                ),
            ),
            see="data-parallel/training-script#The scheduler takes the nodes back",
        ),
        Variable(
            "TORCHELASTIC_SIGNALS_TO_HANDLE",
            "The signals at which torchrun ends its workers. It sets the variable from `--signals-to-handle`, so "
            "setting it yourself does nothing.",
            "`SIGTERM,SIGINT,SIGHUP,SIGQUIT`.",
            NODE,
            (
                python(
                    "distributed/elastic/multiprocessing/api.py",
                    "PContext.start",
                    'os.environ.get("TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT")',
                ),
                python(
                    "distributed/launcher/api.py",
                    "launch_agent",
                    'os.environ["TORCHELASTIC_SIGNALS_TO_HANDLE"] = config.signals_to_handle',
                ),
            ),
        ),
        Variable(
            "TORCHELASTIC_ENABLE_FILE_TIMER",
            "`1` lets a worker set itself a deadline, with `expires(…)` of `torch.distributed.elastic.timer`. "
            "torchrun ends a worker that misses its deadline.",
            "Not set: no deadlines.",
            NODE,
            (python(AGENT, "LocalElasticAgent._setup_local_watchdog", "os.getenv(enable_watchdog_env_name)"),),
        ),
        Variable(
            "TORCHELASTIC_TIMER_FILE",
            "The named pipe through which workers tell torchrun their deadlines. torchrun makes one, and hands its "
            "name to the workers.",
            "A new name in the folder for temporary files.",
            "All workers of one machine need the same value.",
            (python(AGENT, "LocalElasticAgent._setup_local_watchdog", "os.getenv(watchdog_file_env_name)"),),
        ),
        Variable(
            "TORCHELASTIC_HEALTH_CHECK_PORT",
            "The port of a server that says whether torchrun is alive. In the torch from PyPI the server is empty: "
            "it writes one line into the log, and opens no port.",
            "Not set.",
            NODE,
            (python(AGENT, "LocalElasticAgent._setup_healthcheck", "os.getenv(healthcheck_port_env_name)"),),
        ),
        Variable(
            "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT",
            "A worker counts as failed after this many seconds in a system call that no signal can interrupt. The "
            "usual reason is a file system that hangs.",
            "Not set, or 0: no such check.",
            NODE,
            (
                python(
                    AGENT,
                    "_resolve_uninterruptible_state_timeout",
                    'os.environ.get(TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT, "")',
                ),
            ),
        ),
        Variable(
            "TORCH_ELASTIC_WORKER_IDENTICAL",
            "`1` tells torchrun that all machines start the same number of workers, so that the ranks follow from "
            "the machine's number. It saves a round through the store in large jobs.",
            "`0`: the machines tell each other how many they have.",
            "**All torchruns need the same value.** With unequal machines, or unequal values, two workers can get the "
            "same rank.",
            (
                python(
                    "distributed/elastic/agent/server/api.py",
                    "SimpleElasticAgent._assign_worker_ranks",
                    'os.environ.get("TORCH_ELASTIC_WORKER_IDENTICAL", "0")',
                ),
            ),
        ),
        Variable(
            "TORCH_WORKER_SERVER_SOCKET",
            "The socket on which a worker answers questions from outside, such as *dump your flight recorder*. Only "
            "programs that use `worker_main` have it.",
            "Not set: no such server.",
            "Each worker needs a socket of its own.",
            (
                python(
                    "distributed/elastic/control_plane.py", "worker_main", "os.environ.get(TORCH_WORKER_SERVER_SOCKET)"
                ),
            ),
        ),
        Variable(
            "TORCHELASTIC_ETCD_BINARY_PATH",
            "The program that torchrun starts for `--rdzv-backend=etcd` with a server of its own.",
            "`bin/etcd` beside torch's file, then `etcd` from the path.",
            NODE,
            (
                python(
                    "distributed/elastic/rendezvous/etcd_server.py",
                    "EtcdServer.__init__",
                    'os.environ.get("TORCHELASTIC_ETCD_BINARY_PATH", default_etcd_bin)',
                ),
            ),
        ),
        Variable(
            "TORCH_DISTRIBUTED_USE_TORCHCOMMS",
            "`1` makes c10d use the package torchcomms in place of its own process groups.",
            "Not set.",
            "**All ranks need the same value:** otherwise they talk through different libraries. The package "
            "torchcomms is not installed here.",
            (python("distributed/config.py", "", '"TORCH_DISTRIBUTED_USE_TORCHCOMMS"'),),
        ),
    ),
)
