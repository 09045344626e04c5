"""The packed layout in which completed steps travel and are stored.

One record per step, little-endian, 40 bytes: start (monotonic ns), duration (ns), data wait that
ended at the start (ns), loss (NaN: unknown), samples consumed after the step (-1: unknown). A
summary of five numbers per step costs a thousandth of five attributes per step.
"""

import math
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

VERSION = 1
LAYOUT = struct.Struct("<qqqdq")
UNKNOWN_SAMPLES = -1


class Step(NamedTuple):
    """One completed step of one rank; times in nanoseconds of the producer's monotonic clock."""

    start: int
    duration: int
    data_wait: int = 0
    loss: float = math.nan
    samples: int = UNKNOWN_SAMPLES


def pack(steps: Iterable[Step]) -> bytes:
    """Pack steps in the current version of the layout."""
    return b"".join(LAYOUT.pack(*step) for step in steps)


def unpack(version: int, packed: bytes) -> Iterator[Step]:
    """Yield the steps of a packed block.

    Raises:
        ValueError: unknown version, or a length that is no multiple of the record's.
    """
    check(version, packed)
    return (Step(*values) for values in LAYOUT.iter_unpack(packed))


def check(version: int, packed: bytes) -> int:
    """Return the number of steps in a block.

    Raises:
        ValueError: unknown version, or a length that is no multiple of the record's.
    """
    if version != VERSION:
        raise ValueError(
            f"unknown step layout {version!r}; known: {VERSION}; upgrade the collector"
        )
    num_steps, rest = divmod(len(packed), LAYOUT.size)
    if rest or not num_steps:
        raise ValueError(f"{len(packed)} bytes of steps are no multiple of {LAYOUT.size}")
    return num_steps


def cut(packed: bytes, first: int, last: int) -> bytes:
    """Return the records `first` to `last`, counted from 0, both included."""
    return packed[first * LAYOUT.size : (last + 1) * LAYOUT.size]
