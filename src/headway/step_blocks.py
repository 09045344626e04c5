"""The packed layout in which completed steps travel and are stored.

One record per step, little-endian, 40 bytes: start (monotonic ns), duration (ns), data wait that
ended at the start (ns), loss (NaN: unknown), samples consumed after the step (-1: unknown). A
summary of five numbers per step costs a thousandth of five attributes per step.

On the wire the same numbers travel in columns (version 2): differences, their bytes sorted by
significance. A general compressor then finds what is left to say, a third of the packed records.
"""

import math
import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

VERSION = 1
COLUMNS = 2
"""Version of the layout in columns."""
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


def to_columns(packed: bytes) -> bytes:
    """Return packed records in columns: version 2, of the same length.

    Columns of 64 bits: time between the step before and the wait (the first: its start), duration,
    wait, loss as its bits, samples since the step before. Differences are modulo 2**64, their sign
    in the lowest bit. Each column holds all lowest bytes first, the highest last.
    """
    starts, durations, waits, losses, samples = zip(*LAYOUT.iter_unpack(packed), strict=True)
    idle = []
    before = 0
    for start, duration, wait in zip(starts, durations, waits, strict=True):
        idle.append(_folded(start - wait - before))
        before = start + duration
    gained = [
        _folded(one - earlier) for one, earlier in zip(samples, (0, *samples[:-1]), strict=True)
    ]
    number = len(starts)
    packer = f"<{number}Q"
    columns = (
        struct.pack(packer, *idle),
        struct.pack(packer, *map(_folded, durations)),
        struct.pack(packer, *map(_folded, waits)),
        struct.pack(f"<{number}d", *losses),
        struct.pack(packer, *gained),
    )
    return b"".join(column[byte::8] for column in columns for byte in range(8))


def from_columns(columns: bytes) -> bytes:
    """Return the packed records that `to_columns` turned into columns.

    Raises:
        ValueError: a length that is no multiple of a record's.
    """
    number = check(VERSION, columns)
    width = 8 * number
    found = []
    for begin in range(0, 5 * width, width):
        column = bytearray(width)
        for byte in range(8):
            column[byte::8] = columns[begin + byte * number : begin + (byte + 1) * number]
        found.append(bytes(column))
    idle, durations, waits, gained = (
        [_unfolded(value) for value in struct.unpack(f"<{number}Q", found[index])]
        for index in (0, 1, 2, 4)
    )
    losses = struct.unpack(f"<{number}d", found[3])
    records = []
    before = taken = 0
    for step in range(number):
        start = _signed(before + idle[step] + waits[step])
        before = start + durations[step]
        taken = _signed(taken + gained[step])
        records.append(LAYOUT.pack(start, durations[step], waits[step], losses[step], taken))
    return b"".join(records)


def _folded(number: int) -> int:
    number = _signed(number)
    return 2 * number if number >= 0 else -2 * number - 1


def _unfolded(number: int) -> int:
    return number // 2 if number % 2 == 0 else -(number // 2) - 1


def _signed(number: int) -> int:
    """Return a number modulo 2**64 as one with a sign."""
    return (number + 2**63) % 2**64 - 2**63


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
