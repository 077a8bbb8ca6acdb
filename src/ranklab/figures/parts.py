"""What ``owners`` is given, read: pictures, shapes, and which elements of a tensor a part covers."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any

from ..errors import WorldError

if TYPE_CHECKING:
    from numpy import ndarray

Held = Sequence[Mapping[str, Any]]


def read_pictures(whole: Any, held: Any) -> Mapping[str, Held]:
    """Return for each caption what its ranks hold; the caption of a picture that stands alone is empty.

    Raises:
        WorldError: no tensor or no rank, or no mapping where one is needed.
    """
    if not isinstance(whole, Mapping):
        raise WorldError('owners() needs a name for each tensor: give {"A": A} first, and then what the ranks hold.')
    pictures = held if isinstance(held, Mapping) else {"": held}
    for ranks in pictures.values():
        # Not a sequence by its type: an array of mappings will do.
        alike = isinstance(ranks, Sized) and isinstance(ranks, Iterable) and not isinstance(ranks, Mapping)
        if not alike or not all(isinstance(parts, Mapping) for parts in ranks):
            raise WorldError(
                'owners() needs a list with one mapping a rank, [{"A": (0, part)}, {"A": (3, part)}]; for several '
                "pictures, a mapping from captions to such lists."
            )
    if not whole or not pictures or not all(map(len, pictures.values())):
        raise WorldError('owners() needs at least one tensor and one rank: owners({"A": (6, 8)}, [{"A": (0, part)}]).')
    return {str(caption): ranks for caption, ranks in pictures.items()}


def read_shape(name: str, tensor: Any) -> tuple[int, ...]:
    """Return the shape of a tensor, or the one that was given in its place.

    Raises:
        WorldError: it is neither, or has no element.
    """
    try:
        shape = tuple(int(size) for size in getattr(tensor, "shape", tensor))
    except (TypeError, ValueError) as error:
        raise WorldError(f"owners(): {name!r} is neither a tensor nor a shape such as (6, 8).") from error
    if not shape or min(shape) < 1:
        raise WorldError(f"owners() cannot draw a tensor of shape {list(shape)}; it needs an element to own.")
    return shape


def covered(part: Any, shape: Sequence[int], whose: str) -> ndarray:
    """Return which elements of the whole a part covers.

    Args:
        part: ``(offset, tensor)``, a list of indices along the first dimension, or None.
        shape: of the whole.
        whose: the name of the tensor and its rank, in words.

    Raises:
        WorldError: it is none of these, or not inside the whole.
    """
    import numpy

    mask = numpy.zeros(shape, bool)
    if part is None:
        return mask
    if isinstance(part, tuple) and len(part) == 2 and hasattr(part[1], "shape"):
        extent = tuple(part[1].shape)
        offset = _offset(part[0], len(shape), whose)
        ends = [first + size for first, size in zip(offset, extent, strict=False)]
        fits = len(offset) == len(extent) == len(shape) and all(first >= 0 for first in offset)
        if not fits or any(end > size for end, size in zip(ends, shape, strict=True)):
            raise WorldError(f"owners(): {whose} has shape {list(extent)} at {list(offset)}, outside {list(shape)}.")
        mask[tuple(slice(first, end) for first, end in zip(offset, ends, strict=True))] = True
        return mask
    try:
        indices = _whole_numbers(part)
    except (TypeError, ValueError, RuntimeError) as error:  # the last from a tensor without numbers, on "meta"
        told = f"owners(): {whose} is neither (offset, tensor) nor a list of indices"
        if hasattr(part, "shape"):
            told += ": before a tensor, give the place of its first element in the whole, as in (4, part)"
            if "bool" in str(getattr(part, "dtype", "")):
                told += "; of a mask, give the indices where it is True"
        raise WorldError(f"{told}.") from error
    if outside := [index for index in indices if not 0 <= index < shape[0]]:
        raise WorldError(f"owners(): {whose} has index {outside[0]}; there are {shape[0]} in the first dimension.")
    mask[indices] = True
    return mask


def _offset(offset: Any, dimensions: int, whose: str) -> tuple[int, ...]:
    """Return the place of a part's first element, with one number a dimension."""
    try:
        offset = offset.tolist() if hasattr(offset, "tolist") else offset
        if isinstance(offset, Iterable):
            return tuple(_whole_numbers(offset))
        return (*_whole_numbers([offset]), *[0] * (dimensions - 1))
    except (TypeError, ValueError, RuntimeError) as error:
        raise WorldError(
            f"owners(): the offset of {whose} is {offset!r}; give a whole number, or a tuple with one a dimension."
        ) from error


def _whole_numbers(given: Any) -> list[int]:
    """Return whole numbers as they are: what int() would make of 0.7 or of a mask's True is no place in a tensor."""
    numbers = list(given.tolist() if hasattr(given, "tolist") else given)
    if any(isinstance(number, bool) or "bool" in str(getattr(number, "dtype", "")) for number in numbers):
        raise TypeError("True and False are no places")
    return [operator.index(number) for number in numbers]
