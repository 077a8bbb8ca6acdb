"""Checkpoints."""

from ..entry import Group, Message

ACCEPTS = "data-parallel/checkpoints#What `torch.load` accepts"
SHARDS = "data-parallel/checkpoints#Shards"

GROUP = Group(
    "A checkpoint cannot be saved or loaded",
    "Load on all ranks, or on none: a rank that raises here leaves the others waiting in their next collective.",
    (
        Message(
            "Weights only load failed",
            "Since torch 2.6 `torch.load` takes tensors and plain data only, and this file has something else.",
            (
                "The file holds an object of a class: a configuration, or the whole model.",
                "The file holds a random generator's state from NumPy.",
            ),
            "Save plain data: numbers, strings, lists, dictionaries, tensors. For a file that you trust, "
            "`weights_only=False` loads it; it may run any code that it contains.",
            "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so you have two "
            "options,",
            by="saving.numpy_in_a_checkpoint",
            threads=("https://github.com/speechbrain/speechbrain/issues/2856",),
            see=ACCEPTS,
        ),
        Message(
            "was not an allowed global by default",
            "This part of the message names the class that `torch.load` does not accept.",
            ("An object of your own class was saved.", "A NumPy array or generator was saved."),
            "Save its numbers instead of the object, or name the class in `torch.serialization.add_safe_globals([…])`.",
            "WeightsUnpickler error: Unsupported global: GLOBAL …Settings was not an allowed global by default.",
            by="saving.class_in_a_checkpoint",
            see=ACCEPTS,
        ),
        Message(
            "PytorchStreamReader failed reading zip archive",
            "The file is not whole.",
            (
                "The job was killed while it wrote the file.",
                "Several ranks wrote to the same path.",
                "The disk was full, or a copy was cut short.",
            ),
            "Load the file before this one. Write to another name first, and rename the file when it is whole.",
            "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory.",
            by="saving.cut_short",
            see="data-parallel/checkpoints#The write that is killed",
        ),
        Message(
            "from checkpoint, the shape in current model is",
            "The model that you build now has other sizes than the one that was saved.",
            (
                "Another configuration: width, number of classes, vocabulary.",
                "A shard was loaded as if it were the whole.",
            ),
            "Save the configuration with the weights, and build the model from it.",
            "RuntimeError: Error(s) in loading state_dict for Linear:\n\tsize mismatch for weight: copying a param "
            "with "
            "shape torch.Size([3, 2]) from checkpoint, the shape in current model is torch.Size([2, 2]).",
            by="saving.other_shape",
            see="data-parallel/checkpoints#A file that survives",
        ),
        Message(
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
            "The optimizer was made for another number of parameters than the saved one.",
            ("A layer was added or frozen after the file was saved.",),
            "Make the optimizer from the same parameters, in the same order, before you load.",
            "ValueError: loaded state dict contains a parameter group that doesn't match the size of optimizer's group",
            by="saving.other_optimizer",
            see="data-parallel/checkpoints#Resumes that people copy",
        ),
        Message(
            "loaded state dict has a different number of parameter groups",
            "The optimizer has other groups of parameters than the saved one.",
            ("Groups, for example with and without weight decay, were introduced after the file was saved.",),
            "Make the same groups in the same order before you load.",
            "ValueError: loaded state dict has a different number of parameter groups",
            by="saving.other_number_of_groups",
            see="data-parallel/checkpoints#Resumes that people copy",
        ),
        Message(
            "Missing key in checkpoint state_dict",
            "`dcp.load` was asked for a name that the checkpoint does not have.",
            (
                "The model was saved with the prefix `module.`, and it is loaded without it.",
                "A layer was added, or the optimizer's state was not saved.",
            ),
            "Compare with the names in the checkpoint: "
            "`dcp.FileSystemReader(path).read_metadata().state_dict_metadata`.",
            "RuntimeError: Missing key in checkpoint state_dict: bias.",
            by="saving.key_missing_in_dcp",
            see=SHARDS,
        ),
        Message(
            "CheckpointException ranks:dict_keys",
            "Saving or loading with DCP has failed on the ranks that are named; the reason stands below.",
            ("See the last line of the traceback.",),
            "Read the exception that follows. It is of the first rank that failed.",
            "torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0])",
            by="saving.key_missing_in_dcp",
            see=SHARDS,
        ),
        Message(
            "Size mismatch between saved",
            "A tensor of the checkpoint has another shape than the one that takes it.",
            ("The model has another configuration.",),
            "Another number of ranks is no reason: DCP cuts the parts anew. Compare the shapes of the whole tensors.",
            "ValueError: Size mismatch between saved torch.Size([2]) and current: torch.Size([3]) for weight",
            by="saving.other_shape_in_dcp",
            see=SHARDS,
        ),
        Message(
            "metadata is None; global metadata read failed",
            "The folder has no `.metadata`, so it is not a whole DCP checkpoint.",
            (
                "The path is wrong, or the folder is not mounted on this node.",
                "The job was ended before rank 0 wrote `.metadata`, which comes last.",
            ),
            "Load the checkpoint before this one.",
            "AssertionError: metadata is None; global metadata read failed: [Errno 2] No such file or directory: "
            "'nothing/.metadata'",
            by="saving.no_dcp_there",
            see=SHARDS,
        ),
        Message(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False",
            "The tensors were saved on a GPU, and this process sees none.",
            ("The file is loaded on a laptop or on a login node.",),
            'Write `torch.load(path, map_location="cpu")`, on GPU nodes too: otherwise all ranks load to the GPU that '
            "rank 0 had.",
            source="torch/serialization.py: _validate_device",
        ),
        Message(
            "No space left on device",
            "The disk is full, or your share of it.",
            (
                "Old checkpoints, logs or core dumps fill the disk or your quota; `quota -s` shows the quota.",
                "`/tmp` is small, and the program, a compiler or a container writes there.",
                "`/dev/shm` is full. Then torch prints `unable to allocate shared memory` with it.",
                "No inodes are left: `df -i` shows them.",
            ),
            "`df -h` on the node of the rank shows which disk it is. Delete what is old, set `TMPDIR`, and keep only "
            "the last checkpoints. A file that was being written is lost: write to a new name, and rename it when it "
            "is complete.",
            "OSError: [Errno 28] No space left on device",
            by="saving.disk_full",
            see="data-parallel/checkpoints#A file that survives",
        ),
        Message(
            ". unexpected pos",
            "`torch.save` could not write the whole file. What is on the disk now cannot be loaded.",
            (
                "The disk or your quota is full.",
                "The network file system has failed while it was writing.",
            ),
            "See `No space left on device` above. Keep the checkpoint before this one.",
            "RuntimeError: basic_ios::clear: iostream error\n…RuntimeError: [enforce fail at inline_container.cc:…] . "
            "unexpected pos … vs …",
            by="saving.disk_full_for_torch",
            see="data-parallel/checkpoints#A file that survives",
        ),
    ),
)
