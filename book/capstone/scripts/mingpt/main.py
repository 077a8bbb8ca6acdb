"""Train a GPT on the text of this book, on any number of ranks.

python main.py
torchrun --standalone --nproc-per-node=2 main.py steps=300
torchrun --standalone --nproc-per-node=2 main.py strategy=sharded size=hour

Words such as `steps=300` change a key of config.yaml. The variable MINGPT may hold further words.
"""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
import torch.distributed as dist
import yaml
from data import Characters, Shares, book_text
from model import GPT, GPTConfig
from torch.distributed.elastic.multiprocessing.errors import record
from trainer import Trainer

HERE = Path(__file__).parent
SIZES = "context", "width", "layers", "heads", "dropout"
CHOICES = {
    "device": ["cpu", "cuda"],
    "strategy": ["ddp", "sharded"],
    "precision": ["float32", "bfloat16", "float16"],
}


def read_config(*changes):
    """Return config.yaml as attributes, changed by words such as `steps=300`."""
    changes = [*os.environ.get("MINGPT", "").split(), *changes]
    config = yaml.safe_load((HERE / "config.yaml").read_text())
    changed = {name: yaml.safe_load(value) for name, value in (change.split("=", 1) for change in changes)}
    for name, allowed in (CHOICES | {"size": config["sizes"]}).items():
        if (value := changed.get(name, config[name])) not in allowed:
            raise SystemExit(f"{name} is {value}, and has to be {' or '.join(allowed)}.")
    config |= config["sizes"][changed.get("size", config["size"])]
    if unknown := changed.keys() - config.keys():
        raise SystemExit(f"config.yaml has no {', '.join(sorted(unknown))}.")
    config |= changed
    for name in "rate", "clip", "dropout":
        config[name] = float(config[name])  # YAML takes 1e-3 for a text
    return SimpleNamespace(**config)


def meet(config):
    """Return this rank's device, and join the group, if there is one."""
    device = torch.device("cpu")
    if config.device == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    if "RANK" in os.environ and not dist.is_initialized():
        dist.init_process_group(dist.get_default_backend_for_device(device))
    return device


def build(config, device, make=Trainer):
    """Return a trainer with its data and its model."""
    path, rank, world_size = HERE / config.text, 0, 1
    if dist.is_initialized():
        rank, world_size = dist.get_rank(), dist.get_world_size()
    text = path.read_text(encoding="utf-8") if path.is_file() else book_text(path)
    data = Characters(text, config.context)
    sampler = Shares(len(data), config.batch, rank, world_size, config.seed)
    sizes = {name: getattr(config, name) for name in SIZES}
    torch.manual_seed(config.seed)  # equal weights on all ranks
    model = GPT(GPTConfig(len(data.vocabulary), **sizes))
    return make(config, model, data, sampler, device)


def train(make):
    """Train, and say what was done; the model is gone when this returns."""
    config = read_config(*sys.argv[1:])
    trainer = build(config, meet(config), make)
    steps = len([loss for _, loss in trainer.train()])
    if trainer.rank == 0:
        print(f"{trainer.done} steps on {trainer.world_size} ranks, {steps} of them since this start")


@record
def main(make=Trainer):
    """Meet, train, leave."""
    train(make)
    if dist.is_initialized():
        dist.destroy_process_group()  # after the model: DDP would free the group with the GIL held


if __name__ == "__main__":
    main()
