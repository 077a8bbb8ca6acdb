"""What nvidia-smi prints on machines with 1, 2, 4 and 8 GPUs."""

CUT = """GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-a)
  MIG 3g.20gb     Device  0: (UUID: MIG-1)
  MIG 2g.10gb     Device  1: (UUID: MIG-2)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-b)
"""
LEGEND = "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"


def matrix(*rows, extra=""):
    """What `nvidia-smi topo -m` prints of GPUs, given the words of each row."""
    count = len(rows)
    header = "\t".join(["", *(f"\x1b[4mGPU{number}" for number in range(count)), *extra.split(), "CPU Affinity"])
    lines = [header + "\tNUMA Affinity\tGPU NUMA ID\x1b[0m"]
    lines += [
        f"GPU{number}\t" + "\t".join([*row.split(), *extra.split(), "0-55", "0", "N/A"])
        for number, row in enumerate(rows)
    ]
    return "\n".join(lines) + LEGEND


ALL_NVLINK = matrix(*(" ".join("X" if a == b else "NV18" for a in range(8)) for b in range(8)), extra="NIC0 NIC1")
TWO_PIX = matrix("X PIX", "PIX X")
TWO_SYS = matrix("X SYS", "SYS X")
PAIRS = matrix("X NV4 SYS SYS", "NV4 X SYS SYS", "SYS SYS X NV4", "SYS SYS NV4 X")
ONE = matrix("X")
