"""What ranklab says itself, in the panel below a cell or as an error."""

from ..entry import Group, Message

BREAKS = "ranks/your-first-ranks#When it breaks"
DEADLOCK = "talking/point-to-point#A deadlock, made and read"

GROUP = Group(
    "ranklab says it in a notebook",
    "These sentences are ranklab's own. Below a cell that went wrong the panel names the ranks, the call and the line; "
    "the first line of the panel is the one to search for.",
    (
        Message(
            "No ranks are running. Start them first: world = ranklab.start(4).",
            "A `%%px` cell was run, and there are no ranks.",
            ("The start cell was not run, or the kernel was restarted.",),
            "Run the start cell of the chapter.",
            by="notebook.before_the_start",
            see="ranks/your-first-ranks#Four processes answer one cell",
        ),
        Message(
            "The ranks were stopped. Start them again: world = ranklab.start(4).",
            "`world` is there, and its ranks have ended.",
            ("`world.stop()` was called, for example by the last cell of the chapter.",),
            "Run the start cell again.",
            by="notebook.after_the_stop",
            see="ranks/your-first-ranks#Four processes answer one cell",
        ),
        Message(
            "which finished the cell without it",
            "Some ranks wait in a collective, and another rank has run the whole cell without calling it.",
            (
                "The call stands below a condition such as `if rank == 0:`.",
                "The ranks have different numbers of steps.",
            ),
            "Have all ranks make the call, or none.",
            "After 1 s: rank 0 waits in all_reduce for rank 1, which finished the cell without it",
            by="notebook.skipped",
            see=BREAKS,
        ),
        Message(
            "the ranks disagree about collective",
            "The ranks are in different collectives at the same place of the order.",
            ("The calls stand in another order on one rank.", "One rank has one call more or less."),
            "Compare the lines that the panel shows for each rank.",
            "After 1 s: the ranks disagree about collective 1: all_reduce on rank 0, broadcast on rank 1",
            by="notebook.other_collective",
            see="talking/collectives#Another collective",
        ),
        Message(
            "wait for each other",
            "Each rank waits for the other one, so none goes on.",
            ("Both ranks receive first.", "The messages have different tags."),
            "Let one of the two send first.",
            "After 1 s: ranks 0, 1 wait for each other: rank 0 receives from rank 1, rank 1 receives from rank 0",
            by="notebook.mutual",
            see=DEADLOCK,
        ),
        Message(
            "was killed by SIGKILL in",
            "The process of a rank was killed in the middle of the cell; its variables are gone.",
            ("The machine ran out of memory.", "You killed it, as some chapters do."),
            "The other ranks keep their variables. Run the cells again that made those of the lost rank.",
            "rank 1 was killed by SIGKILL in the statement that begins in line …",
            by="notebook.killed",
            see=BREAKS,
        ),
        Message(
            "raised ValueError",
            "The cell raised an exception on the named rank; the others were freed from what they waited for.",
            ("A mistake in the cell, or in what this rank was given.",),
            "The panel shows the line. `%pxresult` shows the panel once more.",
            "rank 1 raised ValueError: no data",
            by="notebook.raised",
            see=BREAKS,
        ),
        Message(
            "set it in a %%px cell first.",
            "`world.pull` was asked for a name that these ranks do not have.",
            ("The cell that sets it was not run, or it failed.", "A rank was started anew after it was killed."),
            "Run the cell that sets it.",
            "No variable 'loss' on ranks 0, 1: set it in a %%px cell first.",
            by="notebook.no_such_variable",
        ),
        Message(
            "This machine shows no NVIDIA GPU, and NCCL needs one",
            '`backend="nccl"` was asked for on a machine without a GPU.',
            ("The cell is for a machine with a GPU.",),
            "Leave `backend` out: the ranks then use the CPU and gloo.",
            by="notebook.nccl_on_a_cpu",
            see="ranks/your-first-ranks#On GPUs",
        ),
        Message(
            "No ranks are running. The last start said:",
            "A `%%px` cell was run below a start that failed.",
            ("`ranklab.start()` refused what was asked for, or the ranks did not come up.",),
            "Read what follows: it is what the start said. Mend that, and run its cell again. If it says that there is "
            "no GPU, leave the cells that need one.",
            "No ranks are running. The last start said: This machine shows no NVIDIA GPU, and NCCL needs one",
            by="notebook.below_a_failed_start",
            see="ranks/your-first-ranks#On GPUs",
        ),
        Message(
            "ranks do not fit",
            "So many ranks need more memory than is free.",
            ("Other notebooks still have their ranks.",),
            "Stop other notebooks, or start fewer ranks.",
            "100000 ranks do not fit: … MB of memory are free and a rank needs about … MB before it holds any data, so "
            "… would fit.",
            by="notebook.too_many",
        ),
    ),
)
