"""Try nine operations with twelve dtypes on the backend of the device at hand, and print what it refuses.

torchrun --standalone --nproc-per-node=4 capabilities.py

The chapter *meeting-up* tries gloo by these functions, and NCCL by this program.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.distributed as dist

FLOATS = ["float32", "float64", "float16", "bfloat16", "float8_e4m3fn"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8"]
DTYPES = [*FLOATS, *INTEGERS, "bool", "complex64"]
WRONG = "wrong result"


def one_tensor(name, x):
    """Call an operation that takes one tensor."""
    rank = dist.get_rank()
    if name == "send, recv" and rank ^ 1 < dist.get_world_size():  # the last of three ranks has no partner
        swap = dist.recv if rank % 2 else dist.send
        swap(x, rank ^ 1)  # 0 and 1, 2 and 3
    if name == "broadcast":
        dist.broadcast(x, src=0)
    if name == "all_reduce":
        dist.all_reduce(x)
    if name == "reduce":
        dist.reduce(x, dst=0)


def with_a_list(name, x, each, room):
    """Call an operation that takes a list as well."""
    rank = dist.get_rank()
    if name == "all_gather":
        dist.all_gather(room, x)
    if name == "gather":
        dist.gather(x, room if rank == 0 else None)
    if name == "scatter":
        dist.scatter(x, each if rank == 0 else None)
    if name == "reduce_scatter":
        dist.reduce_scatter(x, each)
    if name == "all_to_all":
        dist.all_to_all(room, each)


def wanted():
    """Return what each operation has to leave in x and in room; None: anything."""
    rank, size = dist.get_rank(), dist.get_world_size()
    everyone, own, sent = list(range(1, size + 1)), rank + 1, rank + 5
    return {
        "send, recv": (rank // 2 * 2 + 1, None),  # without a partner it keeps its own, which is the same
        "broadcast": (1, None),
        "all_reduce": (sum(everyone), None),
        "reduce": (sum(everyone) if rank == 0 else None, None),
        "all_gather": (own, everyone),
        "gather": (own, everyone if rank == 0 else None),
        "scatter": (sent, None),
        "reduce_scatter": (size * sent, None),
        "all_to_all": (own, [sent] * size),
    }


def call(device, name, x, each, room):
    """Call an operation, on a GPU in a thread of its own.

    With torch 2.11 on an H100, what followed a refused dtype in the same thread left its tensors as they were, and said
    nothing. Here each trial has to start afresh.
    """
    if device.type == "cpu":
        one_tensor(name, x)
        with_a_list(name, x, each, room)
    else:
        with ThreadPoolExecutor(1, initializer=torch.cuda.set_device, initargs=[device]) as thread:
            thread.submit(one_tensor, name, x).result()
            thread.submit(with_a_list, name, x, each, room).result()


def trial(name, dtype, device="cpu"):
    """Try one operation with one dtype; return "" where it is right, else what was wrong."""

    def tensor(value):
        return torch.full((2,), value).to(device, dtype)

    x, each = tensor(dist.get_rank() + 1), [tensor(other + 5) for other in range(dist.get_world_size())]
    room = [tensor(0) for _ in each]
    try:
        call(torch.device(device), name, x, each, room)
    except Exception as error:  # whatever a backend says is an answer
        return str(error).splitlines()[0]
    in_x, in_room = wanted()[name]
    right = in_x is None or torch.equal(x.cpu(), tensor(in_x).cpu())
    for got, value in zip(room, in_room or [], strict=in_room is not None):
        right = right and torch.equal(got.cpu(), tensor(value).cpu())
    return "" if right else WRONG


def main():
    """Print the dtypes that the backend refuses, a line per operation, and the trials that gave a wrong result."""
    import ranklab

    device = ranklab.device()
    if device.type == "cuda":
        torch.cuda.set_device(device)
    backend = dist.get_default_backend_for_device(device)
    dist.init_process_group(backend, device_id=device if device.type == "cuda" else None)
    wrong = []
    for name in wanted():
        said = {dtype: trial(name, getattr(torch, dtype), device) for dtype in DTYPES}
        refused = [dtype for dtype, words in said.items() if words not in ("", WRONG)]
        wrong += [f"{name} {dtype}" for dtype, words in said.items() if words == WRONG]
        print(f"{name:15} refuses {', '.join(refused) or 'nothing'}")
    print(f"{backend}: wrong results: {', '.join(wrong) or 'none'}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
