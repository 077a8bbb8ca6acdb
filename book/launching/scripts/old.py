"""Read the local rank as programs did before 2023: from an argument with an underscore.

python -m torch.distributed.launch --standalone --nproc-per-node=2 old.py
"""

import argparse

parser = argparse.ArgumentParser(prog="old.py")
parser.add_argument("--local_rank", type=int)
print("local rank", parser.parse_args().local_rank)
