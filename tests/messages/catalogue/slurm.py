"""What Slurm prints when it ends a job or does not take one."""

from ..entry import Group, Message

REQ = "Slurm 26.11, src/slurmd/slurmstepd/req.c"
SRUN = "Slurm 26.11, src/srun/launch.c"
ERRNO = "Slurm 26.11, src/common/slurm_errno.c"
MANY = "launching/two-computers#When there are many: Slurm"
BACK = "data-parallel/training-script#The scheduler takes the nodes back"

GROUP = Group(
    "Slurm ends the job, or does not take it",
    "These lines stand in the job's output file or behind `sbatch`. They are not produced here; each entry names the "
    "file of Slurm's source that has the text.",
    (
        Message(
            "DUE TO TIME LIMIT ***",
            "The job has used the time that it had asked for, and Slurm has ended it.",
            ("`--time` was too short.", "The job hung: look at when its last line was written."),
            "Save often, and ask for a signal in time: `#SBATCH --signal=TERM@120` sends it to the job's steps 120 "
            "seconds before the end. torchrun passes SIGTERM on to its processes.",
            "slurmstepd: error: *** … ON … CANCELLED AT … DUE TO TIME LIMIT ***",
            source=REQ,
            see=BACK,
        ),
        Message(
            "DUE TO PREEMPTION ***",
            "A job of higher priority needed the nodes.",
            ("The partition allows preemption.",),
            "Submit with `--requeue`, save on SIGTERM, and begin by loading the last checkpoint.",
            "slurmstepd: error: *** … ON … CANCELLED AT … DUE TO PREEMPTION ***",
            source=REQ,
            see=BACK,
        ),
        Message(
            "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
            "Slurm has lost a node of the job, and ends the job on the others.",
            (
                "A GPU, the memory or the network of the node has failed: see `Xid`.",
                "The node was so full of work, or so short of memory, that it did not answer Slurm in time.",
                "The node was rebooted.",
            ),
            "Slurm requeues such a job unless you or the cluster forbid it: begin by loading the last checkpoint. "
            "Leave the node out with `#SBATCH --exclude=NODE`, and tell the administrators its name.",
            "srun: error: Node failure on …\nslurmstepd: error: *** … ON … CANCELLED AT … DUE TO NODE FAILURE, SEE "
            "SLURMCTLD LOG FOR DETAILS ***",
            source=REQ + " and src/srun/allocate.c",
            see=BACK,
        ),
        Message(
            "Some of the step tasks have been OOM Killed.",
            "A process used more memory than the job was given, and Linux has killed it.",
            ("Every rank loads the whole data set.", "`--mem` or `--mem-per-cpu` is smaller than you think."),
            "Ask for more with `--mem`, or have fewer workers. `sacct -j JOB --format=MaxRSS` tells what was used.",
            "slurmstepd: error: Detected … oom_kill event… in StepId=…. Some of the step tasks have been OOM Killed.",
            source="Slurm 26.11, src/plugins/task/cgroup/task_cgroup_memory.c",
        ),
        Message(
            "Exited with exit code",
            "A task of the step has failed; this line says on which node and which task.",
            ("An exception in the program: its traceback stands in the output.",),
            "Search the output for the first `Traceback`. `srun --label` writes the task in front of each line.",
            "srun: error: …: task …: Exited with exit code 1",
            source=SRUN,
            see=MANY,
        ),
        Message(
            "Job step aborted: Waiting up to",
            "One task has failed or the step was cancelled, and Slurm now ends the other tasks.",
            ("Another task failed first.",),
            "Look for the first `Exited with exit code`.",
            "srun: Job step aborted: Waiting up to … seconds for job step to finish.",
            source="Slurm 26.11, src/api/step_launch.c",
            see=MANY,
        ),
        Message(
            "Requested node configuration is not available",
            "No node of the partition has what the job asks for.",
            ("More GPUs, cores or memory per node than a node has.", "The wrong partition."),
            '`sinfo -o "%P %c %m %G"` lists what the nodes have.',
            "sbatch: error: Batch job submission failed: Requested node configuration is not available",
            source=ERRNO,
        ),
        Message(
            "More processors requested than permitted",
            "`srun` asks for more than the job was given.",
            ("`--ntasks` or `--cpus-per-task` of `srun` is larger than that of `sbatch`.",),
            "Leave the numbers out of `srun`, or write the same ones. Since Slurm 22.05 `srun` does not take over "
            "`--cpus-per-task` from the job.",
            "srun: error: Unable to create step for job …: More processors requested than permitted",
            source=ERRNO,
            see=MANY,
        ),
        Message(
            "Invalid account or account/partition combination specified",
            "Your account may not use this partition.",
            ("`--account` is missing or has a slip.", "The project has ended."),
            "`sacctmgr show associations user=$USER` lists what you may use.",
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
            source=ERRNO,
        ),
        Message(
            "Invalid generic resource (gres) specification",
            "The job asks for a kind of device that the cluster does not know.",
            ("A slip in `--gres=gpu:a100:4`: the type has another name here.",),
            '`sinfo -o "%P %G"` lists the names.',
            "sbatch: error: Batch job submission failed: Invalid generic resource (gres) specification",
            source=ERRNO,
        ),
    ),
)
