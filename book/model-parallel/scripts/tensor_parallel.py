"""Tensor parallelism with torch's DTensor. The chapter *tensor-parallel* imports the block, and runs the program.

torchrun --standalone --nproc-per-node=4 tensor_parallel.py        # or, on one process: python tensor_parallel.py
"""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)


class Attention(nn.Module):
    """Attention of heads 16 wide; a rank that has one row in four of q, k and v has one head in four."""

    def __init__(self):
        super().__init__()
        self.q = nn.Linear(64, 64, bias=False)
        self.k = nn.Linear(64, 64, bias=False)
        self.v = nn.Linear(64, 64, bias=False)
        self.out = nn.Linear(64, 64, bias=False)

    def forward(self, x):
        """Take tokens and return as many; x is (tokens, 64)."""
        q, k, v = (part(x).unflatten(1, (-1, 16)).transpose(0, 1) for part in (self.q, self.k, self.v))
        mixed = (q @ k.mT / 4).softmax(-1) @ v
        return self.out(mixed.transpose(0, 1).flatten(1))


class MLP(nn.Module):
    """Up, GELU, down."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(64, 256, bias=False)
        self.down = nn.Linear(256, 64, bias=False)

    def forward(self, x):
        """Take tokens and return as many; x is (tokens, 64)."""
        return self.down(F.gelu(self.up(x)))


class Block(nn.Module):
    """A transformer block, as one process would write it."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(64, bias=False), nn.LayerNorm(64, bias=False)
        self.attention, self.mlp = Attention(), MLP()

    def forward(self, x):
        """Take tokens and return as many; x is (tokens, 64)."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def plan():
    """Cut by features; between the parts each rank has some of the tokens."""
    share, everything = Shard(0), Replicate()
    gather = {"input_layouts": share, "desired_input_layouts": everything}
    return {
        "norm1": SequenceParallel(sequence_dim=0),
        "norm2": SequenceParallel(sequence_dim=0),
        "attention": PrepareModuleInput(**gather),
        "attention.[qkv]": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=share),
        "mlp": PrepareModuleInput(**gather),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(output_layouts=share),
    }


def main():
    """Learn a small task, and let rank 0 say how it went."""
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    device = torch.device("cpu")
    if torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", "1")):
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.manual_seed(0)  # all ranks build the same model, read the same tokens
    model, tokens, rank = Block().to(device), torch.randn(64, 64).to(device), 0
    if ranks > 1:
        if device.type == "cuda":
            torch.cuda.set_device(device)
        # This makes the process group, too.
        mesh = init_device_mesh(device.type, (ranks,))
        model, rank = parallelize_module(model, mesh, plan()), dist.get_rank()
    # After parallelize_module, which replaces the parameters.
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    mine = tokens.chunk(ranks)[rank]
    goal = tokens.roll(1, 0).chunk(ranks)[rank]

    norms = []
    for _ in range(20):
        # This rank's term of the mean over all tokens.
        loss = (model(mine) - goal).square().sum() / tokens.numel()
        optimizer.zero_grad()
        loss.backward()
        # The norm of whole gradients: all are DTensors.
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        norms.append(norm.full_tensor() if ranks > 1 else norm)
        optimizer.step()

    loss = loss.detach()
    if ranks > 1:
        dist.all_reduce(loss)
    # Whole matrices on rank 0, with the names of one process.
    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_model_state_dict(model, options=whole)
    if rank == 0:
        torch.save(state, os.environ.get("CHECKPOINT", "checkpoint.pt"))
        told = f"first norm {norms[0].item():.3f}"
        print(f"loss after 20 steps: {loss.item():.4f}, {told}")
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
