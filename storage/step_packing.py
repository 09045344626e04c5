"""Packed steps as the database holds them: their bytes sorted by place, then compressed.

A third of the bytes go through the write-ahead log, and a checkpoint of it stalls a third as long.
What an earlier version stored as it came is read as ever: only that is a multiple of a record long.
"""

import struct

import numpy as np
import pyarrow  # type: ignore[import-untyped]  # ships no types

from headway.step_blocks import LAYOUT

_CODEC = pyarrow.Codec("lz4_raw")
_HEAD = struct.Struct("<BI")
"""Bytes to be left out at the end, and the number of steps."""


def pack(packed: bytes) -> bytes:
    """Return the stored form of packed steps; what it would not make smaller stays as it is."""
    count, rest = divmod(len(packed), LAYOUT.size)
    if rest or not count:
        return packed
    by_place = np.frombuffer(packed, np.uint8).reshape(count, LAYOUT.size).T
    content: bytes = _CODEC.compress(by_place.tobytes(), asbytes=True)
    padded = (_HEAD.size + len(content)) % LAYOUT.size == 0
    if _HEAD.size + len(content) + padded >= len(packed):
        return packed
    return _HEAD.pack(padded, count) + content + bytes(padded)


def unpack(stored: bytes) -> bytes:
    """Return the packed steps of a stored form.

    Raises:
        ValueError: it is damaged.
    """
    if len(stored) % LAYOUT.size == 0:
        return stored
    try:
        padded, count = _HEAD.unpack_from(stored)
        content = memoryview(stored)[_HEAD.size : len(stored) - padded]
        size = LAYOUT.size * count
        by_place = _CODEC.decompress(content, decompressed_size=size, asbytes=True)
    except (struct.error, OSError, MemoryError) as error:
        raise ValueError(f"{len(stored)} bytes of stored steps are damaged: {error}") from error
    return np.frombuffer(by_place, np.uint8).reshape(LAYOUT.size, count).T.tobytes()
