"""torchrun, torch.distributed.launch and mp.spawn."""

from ..entry import Group, Message

BREAKS = "launching/from-spawn-to-torchrun#When it breaks"
FLAGS = "launching/from-spawn-to-torchrun#Flags, and flags that do not exist"
SPAWN = "launching/from-spawn-to-torchrun#First way: mp.spawn"
REPORT = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
…
Root Cause (first observed failure):
[0]:
…
  rank      : … (local_rank: …)
"""

GROUP = Group(
    "torchrun ends with a report, or does not begin",
    "torchrun starts your processes, watches them, and stops all when one has failed. Its report tells which rank "
    "failed first; why it failed stands further up, in the output of that rank.",
    (
        Message(
            "ChildFailedError",
            "One of the processes that torchrun started has failed; this is the report, and it is not the cause.",
            (
                "An exception in your program: its traceback stands above this report.",
                "The process was killed: see exit codes -9, -11 and -6 below.",
            ),
            "Search upwards for the first `Traceback` of the rank that is named below *Root Cause*.",
            REPORT + "  exitcode  : 1 (pid: …)",
            by="starting.raises",
            see=BREAKS,
            threads=("https://github.com/pytorch/pytorch/issues/91278",),
        ),
        Message(
            "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
            "torchrun knows that the process failed, but the process did not leave its exception behind.",
            ("The main function of the program is not decorated with `@record`.",),
            "Write `from torch.distributed.elastic.multiprocessing.errors import record` and put `@record` above "
            "`def main():`. The report then ends with the exception.",
            "  error_file: <N/A>\n  traceback : To enable traceback see: "
            "https://pytorch.org/docs/stable/elastic/errors.html",
            by="starting.raises",
            see=BREAKS,
        ),
        Message(
            "Signal 9 (SIGKILL) received by PID",
            "Somebody ended the process with SIGKILL, which a program can neither catch nor explain.",
            (
                "The machine ran out of memory, and Linux killed the process: `dmesg` has a line with `Out of memory`.",
                "A container or Slurm enforced its own limit of memory.",
                "A person or a script has called `kill -9`.",
            ),
            "Use fewer DataLoader workers, or load the data once per node. Every rank has its own copy of what it "
            "loads.",
            "  exitcode  : -9 (pid: …)  (SIGKILL)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by "
            "PID …",
            by="starting.killed",
            see=BREAKS,
            threads=("https://github.com/hpcaitech/ColossalAI/issues/3514",),
        ),
        Message(
            "closing signal SIGTERM",
            "torchrun stops its healthy processes, because another one has failed or because torchrun was stopped.",
            (
                "Another rank failed first. This line is a consequence.",
                "Somebody or a scheduler stopped torchrun itself.",
            ),
            "Look for the rank that is named below *Root Cause*. If nothing is named, ask who stopped the job.",
            "Sending process … closing signal SIGTERM",
            by="starting.killed",
            see=BREAKS,
        ),
        Message(
            "Failed to parse reply file",
            "A rank has failed, and torchrun cannot read the error file that `@record` made there. torchrun 2.13 then "
            "ends with `JSONDecodeError`: it prints no report and starts nothing anew, whatever `--max-restarts` says.",
            (
                "Two ranks failed at almost the same time, and torchrun ended the second while it wrote its file.",
                "The disk is full, so the file is empty.",
            ),
            "Start the job again from its last checkpoint. Where it happens often, leave `@record` out: without an "
            "error file torchrun starts anew.",
            "Failed to parse reply file: …",
            by="starting.half_written",
            see="capstone/mingpt#A rank is killed",
        ),
        Message(
            "failed (exitcode: -11)",
            "The process was ended by signal 11, SIGSEGV: native code has used memory that is not its own.",
            (
                "Two packages bring binaries that do not fit together, such as torch and torchvision.",
                "A C++ extension was built for another version of torch.",
            ),
            "Set `PYTHONFAULTHANDLER=1` and run again: Python then prints the line where it happened.",
            "failed (exitcode: -11) local_rank: 0 (pid: …) of binary: …",
            by="starting.segfault",
            see=BREAKS,
        ),
        Message(
            "failed (exitcode: -6)",
            "The process was ended by signal 6, SIGABRT: native code gave up, and it has printed why.",
            (
                "gloo met messages of different lengths: see `op.preamble.length` below.",
                "NCCL's watchdog ended the process after a timeout.",
            ),
            "Search upwards for `terminate called`; the line below it has the reason.",
            "failed (exitcode: -6) local_rank: 0 (pid: …) of binary: …",
            by="starting.aborted",
            see=BREAKS,
        ),
        Message(
            "SignalException: Process",
            "torchrun itself was asked to stop, and it has stopped its processes.",
            (
                "The batch system ended the job: its time was over, or it was preempted.",
                "The terminal or the `ssh` connection was closed.",
                "You pressed Ctrl-C; the signal is 2 then.",
            ),
            "Save in time: catch SIGTERM in the program. Start long jobs in `tmux` or with `sbatch`.",
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process … got signal: 15",
            by="starting.terminated",
            see="data-parallel/training-script#The scheduler takes the nodes back",
        ),
        Message(
            "can't open file",
            "Python does not find the program that torchrun was given, and so every process fails.",
            ("A slip in the path.", "The folder is not mounted on this node, or the job began in another folder."),
            "Give the whole path, and look at it from the node where it fails.",
            "…python: can't open file '…': [Errno 2] No such file or directory",
            by="starting.no_such_file",
        ),
        Message(
            "torchrun: error: the following arguments are required: training_script",
            "The command has options only, and names no program.",
            ("The program's name is missing.", "An option with a forgotten value has swallowed the program's name."),
            "The order is `torchrun [options of torchrun] train.py [options of the program]`.",
            by="starting.no_program",
            see=FLAGS,
        ),
        Message(
            "torchrun: error: unrecognized arguments",
            "An option that torchrun does not know stands in front of the program's name.",
            (
                "It is an option of the program, and it belongs behind the program's name.",
                "A slip in torchrun's option.",
            ),
            "Move the program's own options behind `train.py`. `torchrun --help` lists torchrun's.",
            "torchrun: error: unrecognized arguments: --epochs=3",
            by="starting.flag_before_the_program",
            see=FLAGS,
        ),
        Message(
            "Unsupported nproc_per_node value",
            "`--nproc-per-node` takes a number, or one of `auto`, `cpu`, `gpu`, `xpu`.",
            ("A shell variable is empty or has another content than you think.",),
            "Print the command with `echo` before you run it.",
            "ValueError: Unsupported nproc_per_node value: two",
            by="starting.misspelt_number",
            see=FLAGS,
        ),
        Message(
            "ValueError: Cuda is not available.",
            "`--nproc-per-node=gpu` asks for one process per GPU, and torch sees none.",
            (
                "The job was started on a node without GPUs, such as the login node.",
                "The CPU build of torch is installed.",
                "`CUDA_VISIBLE_DEVICES` is set and empty.",
            ),
            "Look at `nvidia-smi` and at `torch.cuda.is_available()` on that node.",
            by="starting.as_many_as_gpus",
            see="launching/from-spawn-to-torchrun#Choosing GPUs",
        ),
        Message(
            "error: unrecognized arguments: --local-rank=",
            "`torch.distributed.launch` gives each process `--local-rank`, and this program does not take it.",
            (
                "The program was written for torchrun and is started with the old launcher.",
                "The program expects `--local_rank`, with an underscore; that was the spelling before torch 2.0.",
            ),
            'Start it with torchrun, and read `os.environ["LOCAL_RANK"]` in the program.',
            "train.py: error: unrecognized arguments: --local-rank=0",
            by="starting.local_rank_argument",
            see="launching/from-spawn-to-torchrun#Second way: torch.distributed.launch",
        ),
        Message(
            "The module torch.distributed.launch is deprecated",
            "The old launcher still works, and it will be removed.",
            ("A script or a tutorial calls `python -m torch.distributed.launch`.",),
            "Write `torchrun` in its place, and read `LOCAL_RANK` from the environment.",
            "FutureWarning: The module torch.distributed.launch is deprecated\nand will be removed in future. Use "
            "torchrun.",
            by="starting.local_rank_argument",
            see="launching/from-spawn-to-torchrun#Second way: torch.distributed.launch",
        ),
        Message(
            "Setting OMP_NUM_THREADS environment variable for each process to be 1",
            "torchrun gives each process one thread for work on the CPU, so that the processes do not crowd one "
            "another.",
            ("More than one process per node, and you have not set the variable.",),
            "Nothing is wrong. If the CPU is your bottleneck, export `OMP_NUM_THREADS` as cores divided by processes.",
            "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system "
            "being overloaded, please further tune the variable for optimal performance in your application as needed.",
            by="starting.raises",
        ),
        Message(
            "RendezvousTimeoutError",
            "torchrun waited for the other nodes, and fewer came than `--nnodes` says.",
            (
                "torchrun was not started on every node, or it has failed on one.",
                "The nodes were given different values of `--rdzv-id` or `--rdzv-endpoint`.",
                "A node cannot reach the endpoint.",
            ),
            "Compare the commands of all nodes word by word, above all `--nnodes`, `--rdzv-id` and `--rdzv-endpoint`.",
            "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
            by="starting.nobody_at_the_rendezvous",
            see="launching/two-computers#The computer that never comes",
        ),
        Message(
            "RendezvousConnectionError: The connection to the C10d store has failed",
            "torchrun on this node cannot reach the machine of `--rdzv-endpoint`.",
            (
                "torchrun has not been started on that machine yet.",
                "The endpoint names a wrong machine or port.",
                "A firewall closes the port.",
            ),
            "Start torchrun on the endpoint's machine first, and try `nc -vz MACHINE PORT` from here.",
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has "
            "failed. See inner exception for details.",
            by="starting.no_host_at_the_rendezvous",
            see="launching/two-computers#Names that lead nowhere",
        ),
        Message(
            "RendezvousClosedError",
            "torchrun on this node came to a meeting that is over: the job has ended on the other nodes.",
            (
                "The other nodes have failed or finished while this one was starting; their logs have the reason.",
                "torchrun was started again with the `--rdzv-id` of a job that is over.",
            ),
            "Read the logs of the other nodes first. Give each job an `--rdzv-id` of its own, such as `$SLURM_JOB_ID`.",
            "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
            by="starting.rendezvous_over",
            see="launching/two-computers#When it breaks",
            threads=("https://github.com/pytorch/pytorch/issues/116974",),
        ),
        Message(
            "is not registered. Did you forget to call `register`?",
            "`--rdzv-backend` names a meeting place that torchrun does not have.",
            ("A slip in the name; the usual one is `c10d`.",),
            "Write `--rdzv-backend=c10d`, or leave the option out.",
            "ValueError: The rendezvous backend 'etcdd' is not registered. Did you forget to call `register`?",
            by="starting.unknown_rendezvous",
            see=FLAGS,
        ),
        Message(
            "ProcessRaisedException",
            "A process that `mp.spawn` started has raised an exception; its traceback follows.",
            ("The exception below is the cause.",),
            "Read the traceback below the line `-- Process 0 terminated with the following error:`.",
            "torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 0 terminated with the following error:",
            by="starting.spawned_raises",
            see=SPAWN,
        ),
        Message(
            "terminated with signal SIGKILL",
            "A process that `mp.spawn` started was killed.",
            ("The machine ran out of memory.", "A person, a container or the batch system killed it."),
            "Look at `dmesg`, and at the limits of the container or of the job.",
            "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL",
            by="starting.spawned_killed",
            see=SPAWN,
        ),
        Message(
            "terminated with exit code",
            "A process that `mp.spawn` started has ended itself, without an exception.",
            ("`sys.exit` or `os._exit` was called, by your code or by a library.",),
            "Look for the last line that this process has printed.",
            "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with exit code 3",
            by="starting.spawned_leaves",
            see=SPAWN,
        ),
        Message(
            "current process has finished its bootstrapping phase",
            "A new process imports your program to begin, and the program starts processes while it is imported.",
            ('`mp.spawn`, or a DataLoader with workers, stands outside of `if __name__ == "__main__":`.',),
            "Move everything that starts processes into `main()`, and call it below that line.",
            "An attempt has been made to start a new process before the\n        current process has finished its "
            "bootstrapping phase.",
            by="starting.without_a_guard",
            see=SPAWN,
        ),
        Message(
            "on <module '__main__' (built-in)>",
            "A spawned process looks for your function in a file, and the function stands in a notebook only.",
            ("`mp.spawn` was called with a function that is defined in a cell.",),
            'Write the function into a `.py` file and import it, or use `start_method="fork"` before CUDA is used.',
            "AttributeError: Can't get attribute 'train' on <module '__main__' (built-in)>",
            by="starting.function_of_a_notebook",
            see=SPAWN,
        ),
    ),
)
