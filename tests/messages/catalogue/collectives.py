"""What a collective refuses."""

from ..entry import Group, Message

GATHER = "talking/collectives#From all to one"
ALL = "talking/collectives#From all to all"
TRAVEL = "talking/collectives#What does not travel"
PAIR = "talking/point-to-point#What a receive does not check"

GROUP = Group(
    "A collective refuses its arguments",
    "These come at once, on the rank that made the call. The other ranks may already wait for it, so stop the whole "
    "job "
    "and fix the call.",
    (
        Message(
            "Invalid function argument. Expected parameter `tensor` of type torch.Tensor",
            "A collective was given something that is not a tensor.",
            (
                "A number, such as `loss.item()`, was passed.",
                "The gradient is `None`, because the parameter is frozen.",
            ),
            "Make a tensor of it: `torch.tensor(value, device=device)`. Skip parameters whose `grad` is `None`, on all "
            "ranks alike.",
            "TypeError: Invalid function argument. Expected parameter `tensor` of type torch.Tensor",
            by="collectives.not_a_tensor",
            see=ALL,
        ),
        Message(
            "Expected parameter `tensor_list` of type List[torch.Tensor]",
            "`all_gather` wants a list with one tensor for each rank, and was given one tensor.",
            ("The call was meant for the function that fills one large tensor.",),
            "Pass a list of tensors, or call `dist.all_gather_single(output, input)`.",
            "TypeError: Invalid function argument. Expected parameter `tensor_list` of type List[torch.Tensor]",
            by="collectives.loss_not_a_list",
            see=ALL,
        ),
        Message(
            "ProcessGroupGloo::allgather: invalid tensor size at index",
            "The tensors that take the result have another size than the tensor of this rank.",
            ("The list was made with a wrong shape.", "The last batch is smaller than the others."),
            "Make the list from the input: `[torch.empty_like(x) for _ in range(world_size)]`.",
            "RuntimeError: ProcessGroupGloo::allgather: invalid tensor size at index 0 (expected (2), got (3))",
            by="collectives.gathered_other_size",
            see=ALL,
        ),
        Message(
            "invalid output tensor list at index",
            "The list that takes the result has not one tensor for each rank.",
            ("The length of the list is fixed in the program, and the number of ranks has changed.",),
            "Make the list with `dist.get_world_size()` tensors.",
            "RuntimeError: ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length 2, got "
            "1)",
            by="collectives.gathered_short_list",
            see=ALL,
        ),
        Message(
            "Invalid usage of tensors with different dtypes",
            "The tensors of one call have different types of numbers.",
            ("The list was made without `dtype`, and the input is of another type.",),
            "Make the list with `torch.empty_like(x)`.",
            "ValueError: Invalid usage of tensors with different dtypesFound torch.int64 and  torch.float32",
            by="collectives.gathered_other_dtype",
            see=ALL,
        ),
        Message(
            "Argument ``scatter_list`` must be specified on source rank.",
            "The rank that scatters did not say what it scatters.",
            ("The list is made on another rank than `src`.",),
            "Pass the list on the rank `src`, and `None` on all others.",
            "ValueError: Argument ``scatter_list`` must be specified on source rank.",
            by="collectives.list_on_the_wrong_rank",
            see="talking/collectives#From one to all",
        ),
        Message(
            "Argument ``scatter_list`` must NOT be specified on non-source ranks.",
            "A rank that only receives has passed a list as well.",
            ("The call is the same on all ranks, with the list made everywhere.",),
            "Write `parts if rank == src else None`.",
            "ValueError: Argument ``scatter_list`` must NOT be specified on non-source ranks.",
            by="collectives.scatter_list_given_everywhere",
            see="talking/collectives#From one to all",
        ),
        Message(
            "Argument ``gather_list`` must NOT be specified on non-destination ranks.",
            "A rank that only sends has passed a list for the result.",
            ("The call is the same on all ranks, with the list made everywhere.",),
            "Write `parts if rank == dst else None`.",
            "ValueError: Argument ``gather_list`` must NOT be specified on non-destination ranks.",
            by="collectives.list_on_the_wrong_rank",
            see=GATHER,
        ),
        Message(
            "ProcessGroupGloo::scatter: invalid tensor size at index",
            "The parts that a rank scatters are not all of one size.",
            ("The rows do not divide evenly by the number of ranks.",),
            "Pad the last part, or send the parts with `send` and `recv`.",
            "RuntimeError: ProcessGroupGloo::scatter: invalid tensor size at index 1 (expected (2), got (3))",
            by="collectives.scatter_sizes",
            see="talking/collectives#From one to all",
        ),
        Message(
            "Split sizes doesn't match total dim 0 size",
            "The split sizes of `all_to_all_single` do not add up to the number of rows.",
            ("The counts belong to another batch.", "Input and output splits are exchanged."),
            "Input splits add up to the rows of the input, output splits to those of the output.",
            "RuntimeError: Split sizes doesn't match total dim 0 size",
            by="collectives.to_all_splits",
            see=ALL,
        ),
        Message(
            "invalid root rank",
            "`src` or `dst` is not a rank of this job.",
            ("The number was written for a larger job.", "Ranks were counted from 1."),
            "Ranks go from 0 to `dist.get_world_size()` − 1.",
            "RuntimeError: ProcessGroupGloo::broadcast: invalid root rank: 7",
            by="collectives.to_nobody",
            see="talking/collectives#From one to all",
        ),
        Message(
            "destination rank should not be the same as the rank of the current process",
            "A rank sends to itself.",
            ("The neighbour in a ring is computed wrongly.", "The job has one rank, so the next rank is rank 0 again."),
            "Compute `(rank + 1) % world_size`, and skip the exchange when there is one rank.",
            "ValueError: Invalid destination rank: destination rank should not be the same as the rank of the current "
            "process.",
            by="collectives.to_itself",
            see="talking/point-to-point#Chains and rings",
        ),
        Message(
            "input tensor has to be contiguous",
            "The tensor is a view whose numbers do not lie in one piece of memory.",
            ("It comes from `.t()`, `.permute()`, or a slice of columns.",),
            "Send `x.contiguous()`. To receive, make a contiguous tensor and copy it into the view.",
            "RuntimeError: input tensor has to be contiguous",
            by="collectives.sent_not_contiguous",
            see=PAIR,
        ),
        Message(
            "RuntimeError: Invalid scalar type",
            "gloo cannot reduce numbers of this type.",
            ("The tensor is float8.",),
            "Convert it, for example with `x.to(torch.float32)`, reduce, and convert it back.",
            by="collectives.float8",
            see=TRAVEL,
        ),
        Message(
            "Cannot use ReduceOp.BAND with non-integral dtype",
            "Bitwise operations are for integers and booleans.",
            ("A mask was stored as floats.",),
            "Convert the mask with `.to(torch.bool)`, or use `ReduceOp.MIN` and `ReduceOp.MAX`.",
            "RuntimeError: Cannot use ReduceOp.BAND with non-integral dtype",
            by="collectives.bitwise_on_floats",
            see="talking/collectives#Every ReduceOp",
        ),
        Message(
            "No backend type associated with device type",
            "The group carries tensors of one kind of device, and this tensor lies on another.",
            (
                "The group was made with `nccl`, and the tensor lies in the CPU's memory.",
                "Objects or a barrier use the CPU, and the group has no backend for it.",
            ),
            'Move the tensor to the GPU, or make the group with `"cpu:gloo,cuda:nccl"`.',
            "RuntimeError: No backend type associated with device type cpu",
            by="collectives.no_backend_for_the_device",
            see="ranks/meeting-up#What a backend carries",
        ),
        Message(
            "an autograd kernel was not registered to the Autograd key(s)",
            "A collective stands inside the part of the program that `backward` goes through, and it has no gradient.",
            ("`dist.all_reduce` was called on a tensor that depends on the parameters.",),
            "Reduce `loss.detach()` if you want to log it. If the gradient has to pass, use "
            "`torch.distributed._functional_collectives`. The gradients that you have now are wrong.",
            "UserWarning: c10d::allreduce_: an autograd kernel was not registered to the Autograd key(s) but we are "
            "trying to backprop through it. This may lead to silently incorrect behavior.",
            by="collectives.through_backward",
        ),
        Message(
            "cannot pickle 'generator' object",
            "Objects travel as pickles, and this object cannot be pickled.",
            ("It is a generator, an open file, a lock, a lambda, or it holds one.",),
            "Send plain data: numbers, strings, lists, dictionaries.",
            "TypeError: cannot pickle 'generator' object",
            by="collectives.object_that_cannot_travel",
            see="talking/collectives#Objects",
        ),
        Message(
            "`torch.distributed.all_gather_into_tensor` is deprecated",
            "The function has a new name since torch 2.13; the old one still works.",
            ("The program was written for an older torch.",),
            "Write `all_gather_single`, if no older torch has to run the program.",
            "FutureWarning: `torch.distributed.all_gather_into_tensor` is deprecated. Please use "
            "`torch.distributed.all_gather_single` instead.",
            by="collectives.old_names",
            see="talking/collectives#Old names",
        ),
        Message(
            "`torch.distributed.reduce_scatter_tensor` is deprecated",
            "The function has a new name since torch 2.13; the old one still works.",
            ("The program was written for an older torch.",),
            "Write `reduce_scatter_single`, if no older torch has to run the program.",
            "FutureWarning: `torch.distributed.reduce_scatter_tensor` is deprecated. Please use "
            "`torch.distributed.reduce_scatter_single` instead.",
            by="collectives.old_names",
            see="talking/collectives#Old names",
        ),
    ),
)
