"""FSDP, DTensor, the meta device."""

from ..entry import Group, Message

SHARDED = "ranks/why-distribute#Sharded"

GROUP = Group(
    "A sharded model refuses",
    "In a sharded model every parameter is a `DTensor`: each rank has a part of it. Most of these messages say that a "
    "plain tensor and a `DTensor` have met, or that a part was not ready.",
    (
        Message(
            "got mixed torch.Tensor and DTensor",
            "One operand is cut over the ranks, and the other is an ordinary tensor.",
            (
                "A mask, a position table or a buffer was made by hand, beside sharded weights.",
                "A part of the model was left out of `parallelize_module`.",
                "A method other than `forward` was called on a module after `fully_shard`, for example `generate`.",
            ),
            "Make a `DTensor` of the other one, with `distribute_tensor(x, mesh, [Replicate()])`, or take "
            "`x.full_tensor()` of the first. Name such a method in `register_fsdp_forward_method`.",
            "RuntimeError: aten.add.Tensor got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to "
            "DTensor before calling distributed operators!",
            by="saving.mixed_with_dtensor",
            threads=("https://github.com/pytorch/pytorch/issues/153354",),
            see=SHARDED,
        ),
        Message(
            "While copying the parameter named",
            "A plain state dictionary was loaded into a sharded model.",
            ("The file was saved from a model that was not sharded, and loaded after `fully_shard`.",),
            "Load it before `fully_shard`, or with `set_model_state_dict` and "
            "`StateDictOptions(full_state_dict=True)`.",
            'While copying the parameter named "weight", whose dimensions in the model are … an exception occurred : '
            "('aten.copy_.default got mixed torch.Tensor and DTensor,",
            by="saving.plain_state_into_shards",
            see=SHARDED,
        ),
        Message(
            "FSDP needs a non-CPU accelerator device, but no accelerator device is detected.",
            "The older `FullyShardedDataParallel` looks for a GPU, and there is none.",
            ("A program for GPUs is tested on a CPU.",),
            'Give `device_id=torch.device("cpu")`, or use `fully_shard`, which runs on a CPU without further words.',
            "RuntimeError: FSDP needs a non-CPU accelerator device, but no accelerator device is detected.",
            by="saving.fsdp1_on_a_cpu",
            see=SHARDED,
        ),
        Message(
            "Cannot access accelerator device when none is available.",
            "Something asked for the GPU of this process, and there is none.",
            ("`CPUOffloadPolicy()` pins memory for a GPU by default.",),
            "On a CPU write `CPUOffloadPolicy(pin_memory=False)`, or leave the policy out.",
            "RuntimeError: Cannot access accelerator device when none is available.",
            by="saving.offload_without_a_gpu",
        ),
        Message(
            "fully_shard does not support containers that do not implement forward",
            "`fully_shard` acts before and after a module's forward, and a `ModuleList` has none.",
            ("The list of blocks was sharded instead of each block.",),
            "Write `for block in model.blocks: fully_shard(block)`, and then `fully_shard(model)`.",
            "ValueError: fully_shard does not support containers that do not implement forward: ModuleList(",
            by="saving.container",
        ),
        Message(
            "FSDP expects uniform original parameter dtype",
            "The parameters of one `fully_shard` call have different types of numbers.",
            ("A layer was kept in float32, and the rest was converted to bfloat16.",),
            "Keep all parameters in float32 and give `MixedPrecisionPolicy(param_dtype=torch.bfloat16)`, or shard that "
            "layer by itself.",
            "AssertionError: FSDP expects uniform original parameter dtype but got {…}",
            by="saving.sharded_in_two_dtypes",
        ),
        Message(
            "Each distinct composable distributed API can only be applied to a module once",
            "`fully_shard` was called twice on the same module.",
            ("A cell of a notebook was run again.", "Two blocks of the model are the same object."),
            "Build the model anew before you shard it.",
            "AssertionError: Each distinct composable distributed API can only be applied to a module once. "
            "fully_shard "
            "has already been applied to the following module:",
            by="saving.sharded_twice",
        ),
        Message(
            "FSDP parameters should be materialized from meta device before training",
            "The model was made on `meta`, where tensors have a shape and no numbers.",
            ("`to_empty` or the loading of the weights is missing.",),
            "Call `model.to_empty(device=device)` after `fully_shard`, and then load or initialise the weights.",
            "RuntimeError: FSDP parameters should be materialized from meta device before training, but the following "
            "were still on meta device: ['weight', 'bias']",
            by="saving.on_meta",
        ),
        Message(
            "Cannot copy out of meta tensor; no data!",
            "A tensor on `meta` has no numbers that could be copied.",
            ("`model.to(device)` was called on a model that was made on `meta`.",),
            "Call `model.to_empty(device=device)`, and then load the weights.",
            "NotImplementedError: Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() "
            "instead "
            "of torch.nn.Module.to() when moving module from meta to a different device.",
            by="saving.meta_to_cpu",
            see="model-parallel/splitting-layers#Two devices, one process",
        ),
        Message(
            "CPU process group does not support alltoall yet, falling back with allgather + chunk!",
            "A `DTensor` is cut anew along another dimension, and on a CPU torch sends more than it would have to.",
            ("`redistribute` from `Shard(0)` to `Shard(1)` on a CPU mesh.",),
            "Nothing is wrong: the result is right. On GPUs an all-to-all is used.",
            by="saving.shards_of_a_cpu",
        ),
        Message(
            "a leaf Variable that requires grad is being used in an in-place operation",
            "A parameter was changed in place, and autograd would lose track of it.",
            ("`weight += …` or `dist.broadcast(weight, 0)` stands outside of `torch.no_grad()`.",),
            "Put the change below `with torch.no_grad():`.",
            "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.",
            by="saving.backward_of_a_view",
        ),
    ),
)
