"""Read NCCL's log aloud: its version, its network, and the path from this rank to others. Run by *cost-of-talking*.

NCCL_DEBUG=INFO torchrun --standalone --nproc-per-node=4 nccl_says.py
"""

import os
import re
import tempfile
from pathlib import Path

PATHS = {
    "P2P": "from GPU to GPU, over NVLink or PCIe",
    "SHM": "through the memory of the host",
    "NET/Socket": "TCP",
    "NET/IB": "RDMA",
}


def read_aloud(log: str) -> list[str]:
    """Return what a log of one rank says, a sentence per line."""
    said = [f"NCCL {version}" for version in re.findall(r"NCCL version (\d+\.\d+\.\d+)", log)[:1]]
    said += [f"network {name}" for name in re.findall(r"Using network (\S+)", log)[:1]]
    channels = re.findall(r"Channel \d+(?:/\d+)? : (\d+)\[\w+\] -> (\d+)\[\w+\] (?:\[send\] )?via (\S+)", log)
    for sender, receiver, path in sorted(set(channels)):
        means = next((f": {words}" for name, words in PATHS.items() if path.startswith(name)), "")
        direct = ", and the network card reads GPU memory" if "GDRDMA" in path else ""
        said.append(f"{sender} -> {receiver} via {path}{means}{direct}")
    return list(dict.fromkeys(said))


def main() -> None:
    """Add once with NCCL, and print what its log says of this rank."""
    import torch
    import torch.distributed as dist

    import ranklab

    log = Path(tempfile.mkdtemp()) / "nccl.log"
    os.environ.setdefault("NCCL_DEBUG", "INFO")
    os.environ["NCCL_DEBUG_FILE"] = str(log)  # without it NCCL writes between the lines of the program
    device = ranklab.device()
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    total = torch.ones(1, device=device)
    dist.all_reduce(total)
    torch.cuda.synchronize()
    print(*read_aloud(log.read_text()), sep="\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
