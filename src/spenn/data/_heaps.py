"""Heaps of an HDF5 file, where words of any length are kept.

The HDF5 library (2.0 and before) walks through a heap by the sizes that stand in it, and for ever
if one of them is zero. So we walk first.
"""

import mmap
import struct
from pathlib import Path

SIGNATURE = b"GCOL\x01\0\0\0"
HEAD = 16  # bytes of the heap's own head, and of the head of each object


def heaps_are_sound(path: Path) -> bool:
    """Whether every heap in a file can be walked through to its end."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = content.find(SIGNATURE)
        while start >= 0:
            if not _is_sound(content, start):
                return False
            start = content.find(SIGNATURE, start + HEAD)
    return True


def _is_sound(content: mmap.mmap, start: int) -> bool:
    if start + HEAD > len(content):
        return False
    (size,) = struct.unpack_from("<8xQ", content, start)
    place, end = start + HEAD, start + size
    if end > len(content):
        return False
    while place + HEAD <= end:
        index, length = struct.unpack_from("<H6xQ", content, place)
        if index == 0 and length < HEAD:
            return False
        # The length of what is free, of index 0, counts its head; that of an object does not.
        place += length if index == 0 else HEAD + (length + 7) // 8 * 8
    return place <= end
