"""The blocks of a segment as they lie on disk, whatever happened to them."""

import contextlib
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from headway.exporter.spooling.layout import (
    BLOCK,
    FRAME_HEAD,
    FRAME_KIND,
    FRAME_START,
    STEP_BODY,
    STEP_KIND,
    STEP_READ,
    step_checksum,
)

_PIECE = 16 * 1024
_ZEROS = bytes(BLOCK)
"""No block ends in as many: a step has a checksum, a frame its JSON."""


class StepBlock(NamedTuple):
    """One completed step; `packed` is its record in `headway.step_blocks`."""

    sequence: int
    step: int
    attempt: int
    packed: bytes


def blocks(
    path: Path, offset: int, seed: int, sealed: bool
) -> Iterator[tuple[StepBlock | Mapping[str, Any] | None, int]]:
    """Yield each block of a segment, `None` for a damaged stretch, and the offset after it.

    In the segment that is still being written, what cannot be read at the end is not yet damaged.
    """
    data = _tail(path, offset, sealed)
    base = offset
    while len(data) - (offset - base) >= BLOCK:
        at = offset - base
        block = _block(data, at, seed)
        if block is not None:
            found, size = block
            offset += size
            yield found, offset
            continue
        if not data[at] and not sealed:
            return
        following = _following(data, at + BLOCK, seed)
        if following is None:
            if sealed and data.count(0, at) < len(data) - at:
                yield None, base + len(data)
            return
        # A store of the writer may become visible after a later one: look again before judging.
        fresh = _tail(path, offset, sealed)
        if _block(fresh, 0, seed) is None:
            offset = base + following
            yield None, offset
        else:
            data, base = fresh, offset


def _tail(path: Path, offset: int, sealed: bool) -> bytes:
    """Return what lies behind an offset; of what is still written no more than the first zeros.

    Most of such a segment is zeros, and reading them is most of what following it costs.
    """
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            data = file.read() if sealed else file.read(_PIECE)
            while not sealed and not data.endswith(_ZEROS):
                more = file.read(_PIECE)
                if not more:
                    break
                data += more
            return data
    except OSError:
        return b""


def _following(data: bytes, at: int, seed: int) -> int | None:
    for candidate in range(at, len(data) - BLOCK + 1, BLOCK):
        if data[candidate] and _block(data, candidate, seed) is not None:
            return candidate
    return None


def _block(data: bytes, at: int, seed: int) -> tuple[StepBlock | Mapping[str, Any], int] | None:
    """Return the block at `at` and its size, unless it is damaged or not there."""
    if len(data) - at < BLOCK:
        return None
    kind, sequence, step, attempt, packed, checksum = STEP_READ.unpack_from(data, at)
    if kind == STEP_KIND:
        if step_checksum(data[at : at + STEP_BODY.size], seed) != checksum:
            return None
        return StepBlock(sequence, step, attempt, packed), BLOCK
    if kind != FRAME_KIND:
        return None
    _, length, payload_checksum, head_checksum = FRAME_START.unpack_from(data, at)
    if zlib.crc32(data[at : at + FRAME_HEAD.size], seed) != head_checksum:
        return None
    begin = at + FRAME_START.size
    payload = data[begin : begin + length]
    if len(payload) < length or zlib.crc32(payload, seed) != payload_checksum:
        return None
    with contextlib.suppress(ValueError):
        values = json.loads(payload)
        if isinstance(values, dict):
            return values, -(-(FRAME_START.size + length) // BLOCK) * BLOCK
    return None
