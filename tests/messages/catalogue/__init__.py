"""What the page says of each message, a module for what the reader sees."""

from . import collectives, data, ddp, gpus, launching, meeting, nccl, ranklab, saving, sharding, slurm, waiting

GROUPS = tuple(
    module.GROUP
    for module in (meeting, launching, waiting, collectives, ddp, data, saving, sharding, nccl, gpus, slurm, ranklab)
)
MESSAGES = tuple(message for group in GROUPS for message in group.messages)
