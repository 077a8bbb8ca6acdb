"""When the weights of each block are on the cable, and when it computes. The chapter *sharded* draws what it prints.

torchrun --nproc-per-node=1 --nnodes=2 ... prefetch.py        # one process on each of two hosts
"""

import json
import time
from itertools import pairwise

import torch
import torch.distributed as dist
from residual import network
from torch.distributed.fsdp import fully_shard

BLOCKS, WIDTH, ROWS = 4, 512, 2048  # a matrix of 1 MiB, half of which comes over the cable


def by_default(blocks):
    """Leave it to fully_shard."""


def by_setting(blocks):
    """Let fully_shard gather the next block, too."""
    for block, following in pairwise(blocks):
        block.set_modules_to_forward_prefetch([following])


def by_hand(blocks):
    """Let a hook start to gather the next block."""
    for block, following in pairwise(blocks):

        def prefetch(*_, following=following):
            following.unshard(async_op=True)

        block.register_forward_pre_hook(prefetch)


class Notes:
    """What this rank did when: a list [start, end] for each gather and each block, and the calls in their order."""

    def __init__(self):
        """Stand in the place of two collectives, which fully_shard looks up at every call."""
        self.gathers, self.blocks, self.calls = [], [], []
        self.all_gather, self.reduce_scatter = dist.all_gather_single, dist.reduce_scatter_single
        dist.all_gather_single, dist.reduce_scatter_single = self.gather, self.reduce

    def gather(self, *args, async_op=False, **options):
        """Call all_gather; gloo's thread notes the end before anybody's wait returns."""
        entry = [time.time()]
        self.gathers.append(entry)
        self.calls.append("gather")
        work = self.all_gather(*args, async_op=True, **options)
        work.get_future().add_done_callback(lambda _: entry.append(time.time()))
        if async_op:
            return work
        work.wait()

    def reduce(self, *args, **options):
        """Call reduce_scatter."""
        self.calls.append("reduce")
        return self.reduce_scatter(*args, **options)

    def watch(self, blocks):
        """Note when each block begins and ends; the hooks of before, which gather, come first."""
        for block in blocks:
            block.register_forward_pre_hook(lambda *_: self.blocks.append([time.time()]))
            block.register_forward_hook(lambda *_: self.blocks[-1].append(time.time()))

    def clear(self):
        """Begin anew."""
        self.gathers, self.blocks, self.calls = [], [], []


def main():
    """Make a step and one more forward in each of three ways; print what was noted as JSON."""
    dist.init_process_group("gloo")
    torch.set_num_threads(1)  # the hosts share this machine's cores
    x, told, notes = torch.randn(ROWS, WIDTH), {}, Notes()
    for way in (by_default, by_setting, by_hand):
        blocks = list(model := network(BLOCKS, WIDTH))
        for part in [*blocks, model]:
            fully_shard(part)
        way(blocks)
        notes.watch(blocks)
        notes.clear()
        model(x).square().mean().backward()  # the first one connects
        calls = notes.calls[BLOCKS:]
        notes.clear()
        dist.barrier()
        with torch.no_grad():
            model(x)
        told[way.__name__] = {"gathers": notes.gathers, "blocks": notes.blocks, "backward": calls}
    print(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
