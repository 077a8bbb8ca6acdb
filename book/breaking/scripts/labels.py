"""Ten class names, numbered from a set on each rank. The chapter *silently-wrong* runs it under torchrun.

torchrun --standalone --nproc-per-node=3 labels.py
"""

import torch.distributed as dist

names = ["six", "two", "nine", "zero", "one", "four", "two", "five", "three", "seven", "six", "eight"]
number = {name: place for place, name in enumerate(set(names))}
fixed = {name: place for place, name in enumerate(sorted(set(names)))}

dist.init_process_group("gloo")
found = [None] * dist.get_world_size()
dist.all_gather_object(found, (number, fixed))
if dist.get_rank() == 0:
    for words, lists in (("from a set", 0), ("sorted", 1)):
        different = {tuple(of_rank[lists].items()) for of_rank in found}
        plural = "s" if len(different) > 1 else ""
        print(f"{words}: {len(different)} numbering{plural} on {len(found)} ranks")
dist.destroy_process_group()
