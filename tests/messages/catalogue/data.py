"""Loaders, workers and samplers."""

from ..entry import Group, Message

FEEDS = "data-parallel/feeding-ranks#DDP feeds nothing"
WORKERS = "data-parallel/feeding-ranks#Workers on ranks"
STREAM = "data-parallel/feeding-ranks#A stream for many readers"

GROUP = Group(
    "A loader complains, or its workers die",
    "DataLoader workers are processes of their own: with four ranks and four workers each, sixteen more processes run "
    "on the machine. What a worker raises or dies of is told by the process that owns it.",
    (
        Message(
            "sampler option is mutually exclusive with shuffle",
            "The sampler decides the order, so the loader cannot shuffle as well.",
            ("`shuffle=True` was left in when `DistributedSampler` was added.",),
            "Remove `shuffle` from the loader: `DistributedSampler` shuffles. Call `sampler.set_epoch(epoch)` in each "
            "epoch.",
            "ValueError: sampler option is mutually exclusive with shuffle",
            by="data.sampler_and_shuffle",
            see=FEEDS,
        ),
        Message(
            "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last",
            "A batch sampler decides what a batch is, so the loader takes no other word on it.",
            ("`batch_size` was left in when a batch sampler was added.",),
            "Give the loader `batch_sampler` alone.",
            "ValueError: batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last",
            by="data.batch_sampler_and_size",
            see=FEEDS,
        ),
        Message(
            "rank should be in the interval",
            "`DistributedSampler` was given a rank that the number of replicas does not have.",
            ("`num_replicas` is the number of nodes or of GPUs per node.", "Ranks were counted from 1."),
            "Leave both out: the sampler then asks the process group.",
            "ValueError: Invalid rank 2, rank should be in the interval [0, 1]",
            by="data.sampler_beyond_the_world",
            see="data-parallel/feeding-ranks#Who owns which row",
        ),
        Message(
            "num_samples should be a positive integer value, but got num_samples=0",
            "The data set is empty.",
            ("The path or the filter finds no file on this node.", "A shard of this rank has no row."),
            "Print `len(dataset)` on each rank before you make the loader.",
            "ValueError: num_samples should be a positive integer value, but got num_samples=0",
            by="data.empty_dataset",
            see="data-parallel/feeding-ranks#Who owns which row",
        ),
        Message(
            "DataLoader with IterableDataset: expected unspecified shuffle option",
            "A stream has no order that a loader could change.",
            ("The data set was replaced by a stream, and `shuffle=True` was left in.",),
            "Shuffle inside the stream, for example with a buffer of rows.",
            "ValueError: DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle=True",
            by="data.stream_shuffled",
            see=STREAM,
        ),
        Message(
            "DataLoader with IterableDataset: expected unspecified sampler option",
            "A stream cannot be read by row numbers, so it takes no sampler.",
            ("`DistributedSampler` was given for a stream.",),
            "Split the stream yourself, by rank and by worker.",
            "ValueError: DataLoader with IterableDataset: expected unspecified sampler option, but got sampler=…",
            by="data.stream_with_a_sampler",
            see=STREAM,
        ),
        Message(
            "samples have been fetched.",
            "The stream gave more rows than its `__len__` has promised.",
            ("Each worker reads the whole stream, so every row comes as many times as there are workers.",),
            "Ask `torch.utils.data.get_worker_info()` inside the stream, and read this worker's share only.",
            "UserWarning: Length of IterableDataset … was reported to be 10(when accessing len(dataloader)), but 11 "
            "samples have been fetched.",
            by="data.stream_longer_than_told",
            see=STREAM,
        ),
        Message(
            "is killed by signal: Killed.",
            "A worker of the loader was ended from outside.",
            (
                "The machine ran out of memory: each worker holds its own copy of what the data set keeps in Python "
                "objects.",
                "A limit of the container or of the batch system.",
            ),
            "Use fewer workers, keep the data in one array or in a file, and look at `dmesg`.",
            "RuntimeError: DataLoader worker (pid …) is killed by signal: Killed.",
            by="data.worker_killed",
            see=WORKERS,
        ),
        Message(
            "is killed by signal: Terminated.",
            "A worker of the loader got SIGTERM, and the training process hears of it as an exception.",
            (
                "torchrun or the batch system sends SIGTERM to the whole group of processes, workers included.",
                "Somebody stopped the job.",
            ),
            "If you save on SIGTERM, have the workers ignore it: `signal.signal(SIGTERM, SIG_IGN)` in "
            "`worker_init_fn`.",
            "RuntimeError: DataLoader worker (pid …) is killed by signal: Terminated.",
            by="data.worker_terminated",
            see="data-parallel/training-script#The workers get the signal too",
        ),
        Message(
            "is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory",
            "A worker could not write a batch into shared memory, where batches travel.",
            (
                "A container has 64 MB of shared memory, unless it is told otherwise.",
                "Many ranks and workers hold large batches at the same time.",
            ),
            "Start the container with `--shm-size=8g` or `--ipc=host`. `df -h /dev/shm` shows what is there.",
            "RuntimeError: DataLoader worker (pid …) is killed by signal: Bus error. It is possible that dataloader's "
            "workers are out of shared memory. Please try to raise your shared memory limit.",
            by="data.worker_without_shared_memory",
            see=WORKERS,
            threads=("https://github.com/pytorch/pytorch/issues/5040",),
        ),
        Message(
            "exited unexpectedly",
            "A worker of the loader has ended, and nobody knows why.",
            (
                "It was killed: the lines above then name the signal.",
                "Code in the data set called `exit`, or native code ended the process.",
            ),
            "Run once with `num_workers=0`: the trouble then shows in the main process, with its traceback.",
            "RuntimeError: DataLoader worker (pid(s) …) exited unexpectedly",
            by="data.worker_gone",
            see=WORKERS,
        ),
        Message(
            "in DataLoader worker process",
            "Your data set has raised an exception in a worker; its traceback follows.",
            ("A file that cannot be read, or a row that is different from the others.",),
            "Read the lines below `Original Traceback`. With `num_workers=0` a debugger stops in the row.",
            "ValueError: Caught ValueError in DataLoader worker process 0.\nOriginal Traceback (most recent call "
            "last):",
            by="data.worker_raises",
            see=WORKERS,
        ),
        Message(
            "DataLoader timed out after",
            "No worker has delivered a batch within the loader's `timeout`.",
            ("The file system is slow, or it hangs.", "A worker waits for a lock that was held when it was forked."),
            "`py-spy dump --pid` on a worker shows the line where it is.",
            "RuntimeError: DataLoader timed out after 1 seconds",
            by="data.worker_slow",
            see=WORKERS,
        ),
        Message(
            "Our suggested max number of worker in current system is",
            "The loader was asked for more workers than this process may use cores.",
            ("Every rank starts as many workers as the machine has cores.", "The job was given few cores by Slurm."),
            "Divide the cores by the number of ranks on the node: `len(os.sched_getaffinity(0)) // local_world_size`.",
            "UserWarning: This DataLoader will create 4096 worker processes in total. Our suggested max number of "
            "worker "
            "in current system is …, which is smaller than what this DataLoader is going to create.",
            by="data.too_many_workers",
            see=WORKERS,
        ),
        Message(
            "stack expects each tensor to be equal size",
            "The rows of one batch have different sizes, so they cannot be stacked.",
            ("Sentences or images of different lengths.",),
            "Give the loader a `collate_fn` that pads, for example with `torch.nn.utils.rnn.pad_sequence`.",
            "RuntimeError: stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
            by="data.rows_of_unequal_size",
        ),
        Message(
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists",
            "A row is an object that torch cannot make a batch of.",
            ("The data set returns `None` for a row that it could not read.", "A row is an object of your own class."),
            "Raise an exception for a broken row, or drop the row in a `collate_fn`, on all ranks alike.",
            "TypeError: default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
            "<class "
            "'NoneType'>",
            by="data.rows_of_none",
        ),
        Message(
            "Can't pickle local object",
            "A new process needs a function or an object that cannot be sent to it.",
            (
                "A lambda, or a function inside a function, with `spawn` or `forkserver` as the start method.",
                "Python 3.14 starts processes with `forkserver` on Linux, where older ones fork.",
            ),
            "Define the function at the top level of a module.",
            "AttributeError: Can't pickle local object ….<locals>.<lambda>…",
            by="data.lambda_in_a_worker",
        ),
        Message(
            "prefetch_factor option could only be specified in multiprocessing",
            "The option is for workers, and this loader has none.",
            ("`num_workers=0` is used for a test, and the other options were left in.",),
            "Leave `prefetch_factor` out where `num_workers` is 0.",
            "ValueError: prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to "
            "enable "
            "multiprocessing, otherwise set prefetch_factor to None.",
            by="data.prefetch_without_workers",
        ),
        Message(
            "persistent_workers option needs num_workers > 0",
            "The option is for workers, and this loader has none.",
            ("`num_workers=0` is used for a test, and the other options were left in.",),
            "Write `persistent_workers=num_workers > 0`.",
            "ValueError: persistent_workers option needs num_workers > 0",
            by="data.persistent_without_workers",
        ),
        Message(
            "Too many open files. Communication with the workers is no longer possible",
            "Each tensor that comes from a worker needs an open file, and the process may not open more.",
            ("The program keeps many batches, for example in a list.", "`ulimit -n` is 1024."),
            "Copy what you keep with `.clone()`, raise `ulimit -n`, or call "
            '`torch.multiprocessing.set_sharing_strategy("file_system")`.',
            "RuntimeError: Too many open files. Communication with the workers is no longer possible.",
            by="data.batches_kept",
            see=WORKERS,
            threads=("https://github.com/pytorch/pytorch/issues/11201",),
        ),
        Message(
            "[Errno 24] Too many open files",
            "The process may not open more files; sockets and tensors from workers count, too.",
            (
                "The program opens files and does not close them.",
                "A data set keeps one open file per shard, in each worker.",
                "`ulimit -n` is 1024, and the job has many ranks, workers or connections.",
            ),
            "`ls /proc/PID/fd | wc -l` counts them, and `ls -l` there shows what they are. Open files below `with`, "
            "and raise `ulimit -n`.",
            "OSError: [Errno 24] Too many open files: …",
            by="data.files_left_open",
            see=WORKERS,
        ),
        Message(
            "unable to open shared memory object",
            "A process could not open the shared memory in which a tensor lies; the words at the end say why.",
            (
                "`Too many open files`: the limit is reached.",
                "`No such file or directory`: the process that owned the tensor has ended.",
            ),
            "Raise `ulimit -n`, and keep the owner alive until all have read the tensor.",
            "RuntimeError: unable to open shared memory object </torch_…> in read-write mode: Too many open files (24)",
            by="data.shared_without_files",
            see=WORKERS,
            threads=("https://github.com/pytorch/pytorch/issues/14768",),
        ),
        Message(
            "unable to allocate shared memory(shm) for file",
            "A tensor should go into shared memory, and there is no room for it.",
            (
                "A container has 64 MB of shared memory, unless it is told otherwise.",
                "Many ranks and workers hold large batches at the same time.",
                "Files of dead jobs fill `/dev/shm`.",
            ),
            "`df -h /dev/shm` shows what is there. Start the container with `--shm-size=8g` or `--ipc=host`, have "
            "fewer workers, or a smaller `prefetch_factor`.",
            "RuntimeError: unable to allocate shared memory(shm) for file </torch_…>: No space left on device (28)",
            by="data.larger_than_shared_memory",
            see=WORKERS,
        ),
    ),
)
