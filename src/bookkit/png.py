"""PNG images without what differs between machines: program versions, texts, times."""

import struct

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Who made the picture and when; nothing of it is drawn.
UNDRAWN = {b"tEXt", b"zTXt", b"iTXt", b"tIME", b"eXIf"}


def strip(image):
    """The same picture without its metadata chunks; pixels are not touched.

    Raises:
        ValueError: the bytes are not a complete PNG image.
    """
    if not image.startswith(SIGNATURE):
        raise ValueError("not a PNG image")
    kept, place = [SIGNATURE], len(SIGNATURE)
    while place < len(image):
        if place + 12 > len(image):
            raise ValueError("the PNG image is cut off")
        length, kind = struct.unpack(">I4s", image[place : place + 8])
        end = place + 12 + length  # length, kind, data, checksum
        if end > len(image):
            raise ValueError("the PNG image is cut off")
        if kind not in UNDRAWN:
            kept.append(image[place:end])
        place = end
    return b"".join(kept)
