"""DistributedDataParallel, its hooks, mixed precision."""

from ..entry import Group, Message

UNUSED = "data-parallel/ddp#A parameter without a gradient"
PREFIX = "data-parallel/ddp#The prefix"
SAYS = "data-parallel/ddp#What DDP says, and when"
HOOK = "data-parallel/talking-less#Fewer bits: a hook"
SCALER = "data-parallel/mixed-precision#Unscale before you clip"

GROUP = Group(
    "DDP refuses a model, or stops in its second step",
    "`DistributedDataParallel` compares the model of all ranks once, when it is built. After that it trusts you: each "
    "rank has to use the same parameters in every step.",
    (
        Message(
            "Expected to have finished reduction in the prior iteration before starting a new one",
            "In the last step some parameters got no gradient, so DDP still waits for them.",
            (
                "A layer is made in `__init__` and not used in `forward`.",
                "A branch in `forward` leaves out a part of the model for some batches.",
                "A part of the output is not in the loss.",
            ),
            "Remove the layer, or give `find_unused_parameters=True`, which costs a walk through the graph in each "
            "step. "
            "The optimizer step before this message has already used gradients that were not averaged.",
            "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This "
            "error indicates that your module has parameters that were not used in producing loss.",
            by="parallel.unused_parameter",
            see=UNUSED,
            threads=("https://github.com/pytorch/pytorch/issues/43259",),
        ),
        Message(
            "Parameter indices which did not receive grad for rank",
            "This line of the message above gives the positions of these parameters, counting those that are trained.",
            ("See the message above.",),
            "`[name for name, each in model.named_parameters() if each.requires_grad]` gives the names. "
            "`TORCH_DISTRIBUTED_DEBUG=INFO` makes torch print the names.",
            "Parameter indices which did not receive grad for rank 0: 2 3",
            by="parallel.unused_parameter",
            see=UNUSED,
        ),
        Message(
            "your training graph has changed in this iteration",
            "With `static_graph=True` every step has to use the same parameters as the first, and this one did not.",
            ("A branch in `forward` depends on the batch or on the step.",),
            "Leave `static_graph=True` out, or use all parameters in every step.",
            "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one. This "
            "error indicates that your training graph has changed in this iteration",
            by="parallel.static_graph_changes",
            see=UNUSED,
        ),
        Message(
            "Expected to mark a variable ready only once",
            "A parameter got its gradient twice in one backward.",
            (
                "A layer is used twice inside `checkpoint(…, use_reentrant=True)`.",
                "A parameter is used outside of `forward`, for example in the loss.",
            ),
            "Write `use_reentrant=False`. If the graph never changes, `static_graph=True` helps too.",
            "RuntimeError: Expected to mark a variable ready only once.",
            by="parallel.recomputed_twice",
            threads=(
                "https://github.com/pytorch/pytorch/issues/46166",
                "https://github.com/huggingface/accelerate/issues/389",
            ),
        ),
        Message(
            "DDP expects same model across all ranks",
            "The ranks have built models with different numbers of parameters.",
            (
                "A condition on the rank, or an option, adds a layer on some ranks.",
                "The ranks read different configurations, or some parameters are frozen on some ranks only.",
            ),
            "Print `len(list(model.parameters()))` on all ranks before you wrap the model.",
            "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 2 params, while rank 1 has "
            "inconsistent 1 params.",
            by="parallel.other_number_of_parameters",
            see=SAYS,
        ),
        Message(
            "appears not to match sizes of the same param in process 0",
            "The models of two ranks differ in the shape of a parameter.",
            ("A size depends on the rank's own data, for example the number of classes or of words.",),
            "Compute such sizes on rank 0 and broadcast them.",
            "RuntimeError: [1]: params[0] in this process with sizes [3, 2] appears not to match sizes of the same "
            "param "
            "in process 0.",
            by="parallel.other_shape_of_a_parameter",
            see=SAYS,
        ),
        Message(
            "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient",
            "No parameter of the module is trained, so DDP has nothing to do.",
            ("The module is frozen, for example a teacher or a loss network.", "It was frozen before it was wrapped."),
            "Do not wrap this module.",
            "RuntimeError: DistributedDataParallel is not needed when a module doesn't have any parameter that "
            "requires "
            "a gradient.",
            by="parallel.all_frozen",
            see=SAYS,
        ),
        Message(
            "Modules with uninitialized parameters can't be used with `DistributedDataParallel`",
            "A lazy layer does not know its shape before its first forward, and DDP needs the shapes.",
            ("The model has `nn.LazyLinear` or another lazy layer.",),
            "Call the model once with a batch before you wrap it.",
            "RuntimeError: Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a "
            "dummy forward pass to correctly initialize the modules",
            by="parallel.lazy",
        ),
        Message(
            "device_ids and output_device arguments only work with single-device/multiple-device GPU modules or CPU "
            "modules",
            "`device_ids` was given for a model that lies on the CPU.",
            ("The model was not moved to the GPU before it was wrapped.", "The program was written for GPUs only."),
            "Call `model.to(device)` first. On a CPU leave `device_ids` out.",
            "ValueError: DistributedDataParallel device_ids and output_device arguments only work with "
            "single-device/multiple-device GPU modules or CPU modules, but got device_ids [0], output_device None, and "
            "module parameters {device(type='cpu')}.",
            by="parallel.device_ids_on_a_cpu",
            see="data-parallel/ddp#On GPUs",
        ),
        Message(
            "DistributedDataParallel's input module must be on the same type of devices",
            "The parameters of the model lie on devices of different kinds.",
            ("A layer was added after `model.to(device)`.", "A part of the model is still on `meta`."),
            "Call `model.to(device)` as the last thing before you wrap the model.",
            "ValueError: DistributedDataParallel's input module must be on the same type of devices, but input module "
            "parameters locate in {…}.",
            by="parallel.two_kinds_of_device",
        ),
        Message(
            "'DistributedDataParallel' object has no attribute",
            "Your model is inside the wrapper now, and the wrapper does not pass its attributes on.",
            ("The program uses `model.layer` after `model = DistributedDataParallel(model)`.",),
            "Write `model.module.layer`. Call `model(…)` itself and not `model.module(…)` for a training step.",
            "AttributeError: 'DistributedDataParallel' object has no attribute 'first'",
            by="parallel.attribute_of_the_module",
            see=PREFIX,
        ),
        Message(
            'Unexpected key(s) in state_dict: "module.weight"',
            "The file was saved from the wrapped model, and it is loaded into a plain one.",
            ("`ddp.state_dict()` was saved, whose names begin with `module.`.",),
            "Save `ddp.module.state_dict()`. For a file that exists: "
            '`torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")`.',
            'RuntimeError: Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "weight", '
            '"bias". '
            '\n\tUnexpected key(s) in state_dict: "module.weight", "module.bias".',
            by="parallel.prefix",
            see=PREFIX,
        ),
        Message(
            "did not find any unused parameters in the forward pass",
            "`find_unused_parameters=True` costs time in each step, and in this step it found nothing to skip.",
            (
                "The option was copied from another project.",
                "The model leaves parameters out in some steps only, and this was not one of them.",
            ),
            "If every forward uses all parameters, leave the option out. If a branch skips some, keep it.",
            "Warning: find_unused_parameters=True was specified in DDP constructor, but did not find any unused "
            "parameters in the forward pass.",
            by="parallel.nothing_unused",
            see=UNUSED,
        ),
        Message(
            "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead",
            "The option has a new name since torch 2.13, and a slightly other meaning when the model is wrapped.",
            ("The program was written for an older torch.",),
            "Write `forward_sync_buffers`, if no older torch has to run the program.",
            "FutureWarning: `broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead.",
            by="parallel.broadcast_buffers",
            see="data-parallel/ddp#The history of the buffers",
        ),
        Message(
            "KeyError: 'bucket'",
            "The second parameter of a communication hook has to be named `bucket`.",
            ("The hook was written as `def hook(state, gradients)`.",),
            "Name it `bucket`.",
            by="parallel.hook_with_another_name",
            see=HOOK,
        ),
        Message(
            "Communication hook: bucket annotation should be dist.GradBucket.",
            "The hook says that its bucket is a tensor, and it is a `dist.GradBucket`.",
            ("A wrong type stands in the hook's signature.",),
            "Write `bucket: dist.GradBucket`, and use `bucket.buffer()` for the tensor.",
            "ValueError: Communication hook: bucket annotation should be dist.GradBucket.",
            by="parallel.hook_with_another_type",
            see=HOOK,
        ),
        Message(
            "register_comm_hook or register_builtin_comm_hook can only be called once.",
            "This model already has a communication hook.",
            ("A cell of a notebook was run again.", "A library has registered one."),
            "Wrap the model anew, and register one hook.",
            "RuntimeError: register_comm_hook or register_builtin_comm_hook can only be called once.",
            by="parallel.hook_twice",
            see=HOOK,
        ),
        Message(
            "BF16 all reduce communication hook required CUDA 11+ and NCCL 2.10+",
            "torch's bfloat16 hook wants a GPU with NCCL, and this job runs on gloo.",
            ("The program was written for GPUs.",),
            "Write the hook yourself, in three lines: gloo does reduce bfloat16.",
            "TypeError: BF16 all reduce communication hook required CUDA 11+ and NCCL 2.10+ or XPU and XCCL",
            by="parallel.hook_of_gpus",
            see=HOOK,
        ),
        Message(
            "SyncBatchNorm layers only work with GPU modules",
            "DDP found a `SyncBatchNorm` in a model on the CPU, and torch has none for CPUs.",
            ("The model was converted for GPUs, and is tested on a CPU.",),
            "Convert the model on GPUs only.",
            "ValueError: SyncBatchNorm layers only work with GPU modules",
            by="parallel.sync_batch_norm_on_a_cpu",
        ),
        Message(
            "Expected more than 1 value per channel when training",
            "BatchNorm cannot compute a variance from one row.",
            ("The last batch of a rank has one row.", "The batch was cut into micro-batches of one row."),
            "Give the loader `drop_last=True`, or a batch size that leaves no rest of one.",
            "ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 4])",
            by="parallel.batch_of_one",
            see="model-parallel/pipeline-schedules#A layer that looks at other rows",
        ),
        Message(
            "Optimizer state has not been consolidated on this rank",
            "With `ZeroRedundancyOptimizer` each rank has a part of the state, and nobody has collected it.",
            ("`state_dict()` was called without `consolidate_state_dict()`.",),
            "Call `optimizer.consolidate_state_dict(to=0)` on all ranks, then `optimizer.state_dict()` on rank 0.",
            "RuntimeError: Optimizer state has not been consolidated on this rank. Please call "
            "`consolidate_state_dict(to=0)` on all ranks beforehand if you meant to save the global state.",
            by="parallel.not_consolidated",
        ),
        Message(
            "GradScaler is enabled, but CUDA is not available",
            "The loss scaler was made for CUDA, there is none, and so it does nothing.",
            ("A program for GPUs runs on a CPU.",),
            "Write `torch.amp.GradScaler(device.type)`. bfloat16 needs no scaler.",
            "UserWarning: torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
            by="parallel.half_precision_without_a_scaler",
            see="data-parallel/mixed-precision#Gradients that vanish",
        ),
        Message(
            "unscale_() has already been called on this optimizer since the last update()",
            "The gradients of one step would be divided by the scale twice.",
            ("`scaler.unscale_` stands in the loop over micro-batches.", "`scaler.update()` is missing."),
            "Call `unscale_`, clip, `step` and `update` once for each step of the optimizer, in this order.",
            "RuntimeError: unscale_() has already been called on this optimizer since the last update().",
            by="parallel.unscaled_twice",
            see=SCALER,
        ),
        Message(
            "one of the variables needed for gradient computation has been modified by an inplace operation",
            "`backward` needs a value from the forward pass, and something has written into it since.",
            (
                "`optimizer.step()` runs between a forward and its `backward`, as with two losses or in a GAN.",
                "Your own `x += 1`, `x[0] = 0` or `relu_` changes a tensor that is needed later.",
                "The model ran twice before `backward`, and its `forward` changes a buffer in place.",
                "DDP ran twice before `backward`, and copied rank 0's buffers in between. torch 2.13 does not count "
                "this copy any more.",
            ),
            "The shape in the message is that of the changed tensor. Call all `backward` before any `step`, write "
            "`x = x + 1`, or use `buffer.clone()` in `forward`. `torch.autograd.set_detect_anomaly(True)` names the "
            "line of the forward pass.",
            "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace "
            "operation: [torch.FloatTensor [2]] is at version …; expected version … instead.",
            by="parallel.buffer_changed_between",
            see="breaking/silently-wrong#A loss that is only logged",
            threads=(
                "https://github.com/pytorch/pytorch/issues/22095",
                "https://github.com/pytorch/pytorch/issues/175024",
            ),
        ),
        Message(
            "Trying to backward through the graph a second time",
            "`backward` was called twice on one graph, and the first call has freed it.",
            (
                "A loss is added up over steps without `detach()`.",
                "The hidden state of the last step is used again in this one.",
            ),
            "Add up `loss.detach()`, and detach states that live longer than a step.",
            "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after "
            "they have already been freed).",
            by="parallel.backward_twice",
        ),
        Message(
            "element 0 of tensors does not require grad and does not have a grad_fn",
            "The loss depends on no trained parameter, so there is nothing to go back through.",
            ("The forward ran inside `torch.no_grad()`.", "All parameters are frozen.", "The loss was detached."),
            "Print `loss.requires_grad` after each line of the step, and find where it becomes `False`.",
            "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
            by="parallel.graph_ended",
        ),
    ),
)
