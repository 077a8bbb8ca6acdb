"""What torch sees of the GPUs; run as ``python -m ranklab.rank.cards``, it prints a :class:`ranklab.system.seen.Seen`.

The doctor asks, and ``make record``, which notes what a cell was recorded with.
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import json
import operator
import sys

from ..system.backends import ON_GPUS
from ..system.seen import Seen


def see() -> Seen:
    """Look at each GPU, and compute a number on it."""
    import torch

    built = Seen(torch=str(torch.__version__), cuda=torch.version.cuda or "")
    if not built.cuda:
        return built
    built = dataclasses.replace(built, driver=_driver(), library=_library())
    if not torch.cuda.is_available():
        return built
    numbers = range(torch.cuda.device_count())
    pairs = itertools.combinations(numbers, 2)
    return dataclasses.replace(
        built,
        names=tuple(torch.cuda.get_device_name(number) for number in numbers),
        apart=tuple(pair for pair in pairs if not torch.cuda.can_device_access_peer(*pair)),
        problem=next(filter(None, map(_try, numbers)), ""),
    )


def dotted(version: int) -> str:
    """Return CUDA's own number of a version as one reads it, 13000 as "13.0"; "" for 0, where there is no driver."""
    return f"{version // 1000}.{version % 1000 // 10}" if version else ""


def _driver() -> str:
    """Return the newest CUDA that the driver knows, as its own library says it; torch has no name for the question."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:  # there is none
        return ""
    version = ctypes.c_int()
    return "" if driver.cuDriverGetVersion(ctypes.byref(version)) else dotted(version.value)


def _library() -> str:
    import torch

    try:
        version = operator.attrgetter(ON_GPUS.version)(torch)()
    except AttributeError:  # a torch with CUDA and without the library: Windows has it
        return ""
    return ".".join(map(str, version))


def _try(number: int) -> str:
    """Compute on one GPU; what torch says where it cannot, for example that it has no code for so old a GPU."""
    import torch

    try:
        torch.ones(1, device=torch.device(ON_GPUS.device, number)).add(1).item()
    except RuntimeError as error:
        return f"GPU {number}: {str(error).splitlines()[0]}"
    return ""


if __name__ == "__main__":
    print(json.dumps(dataclasses.asdict(see())))
    sys.exit(0)
