"""Say how many processes Accelerate finds, and what it makes of a model.

accelerate launch --cpu --num_processes 2 launched_by_accelerate.py
torchrun --standalone --nproc-per-node=2 launched_by_accelerate.py
"""

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = accelerator.prepare(torch.nn.Linear(1, 1))
print(f"rank {accelerator.process_index} of {accelerator.num_processes}, model {type(model).__name__}")
accelerator.end_training()
