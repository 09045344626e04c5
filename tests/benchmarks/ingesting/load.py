"""Requests of agents, encoded before they are sent, and quickly: copies of one with other numbers.

Whole numbers are given a fixed length on the wire, so that the bytes of many records can be written
at once with numpy. Every record is new: its producer's sequence goes on from request to request.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headway import step_blocks, wire
from headway.events import Envelope, PhaseEnded, Steps
from otlp_requests import request

SECOND = 10**9
ANCHOR = 1_700_000_000 * SECOND
RANKS = 8
_FIRST = 2**28
"""Sequence numbers from here to 2**35 are five bytes long."""
_MONOTONIC = 2**46
"""Times from here to 2**49 ns, six days, are seven bytes long."""
_PACE = 10_000_000
"""Time from one record of a rank to its next, in ns."""


@dataclass(frozen=True, slots=True)
class Body:
    """One request: gzipped, its records, its steps, its size before."""

    content: bytes
    records: int
    steps: int
    size: int


@dataclass(slots=True)
class Node:
    """A node whose agent ships the records of its ranks; `name` tells it from others."""

    name: int
    level: int = 1
    _sent: int = 0
    _templates: dict[int, tuple[bytes, NDArray[np.uint8], dict[str, list[int]]]] = field(
        default_factory=dict
    )

    def records(self, each: int) -> Body:
        """Return the next `each` closed phases of every rank."""
        numbers = _FIRST + self._sent + np.arange(each, dtype=np.int64)
        times = _MONOTONIC + (self._sent + np.arange(each, dtype=np.int64)) * _PACE
        self._sent += each
        groups = []
        for rank in range(RANKS):
            resource, template, places = self._template(rank)
            rows = np.tile(template, (each, 1))
            for place in places["sequence"]:
                _write_varint(rows, place, numbers, 5)
            for place in places["monotonic"]:
                _write_varint(rows, place, times, 7)
            (place,) = places["wall"]
            walls = (ANCHOR + times).astype("<u8").view(np.uint8).reshape(each, 8)
            rows[:, place : place + 8] = walls
            groups.append(_group(resource, rows.tobytes()))
        return self._body(groups, RANKS * each, 0)

    def steps(self, each: int) -> Body:
        """Return one record with the next `each` steps of every rank."""
        first, self._sent = self._sent, self._sent + each
        groups = []
        for rank in range(RANKS):
            envelope = self._steps(rank, first, each)
            groups.append(request([envelope]).SerializeToString())
        return self._body(groups, RANKS, RANKS * each)

    def _steps(self, rank: int, first: int, each: int) -> Envelope:
        starts = _MONOTONIC + _PACE * (first + np.arange(each, dtype=np.int64))
        rows = np.empty((each, 5), "<i8")
        rows[:, 0] = starts + 1_000_000 + starts % 99_991
        rows[:, 1] = 8_000_000 + starts % 100_003
        rows[:, 2] = 500_000
        rows[:, 3] = (2.0 + np.sin(starts)).astype("<f8").view("<i8")
        rows[:, 4] = 1024 * (first + 1 + np.arange(each))
        event = Steps(first_step=first + 1, version=step_blocks.VERSION, packed=rows.tobytes())
        end = int(rows[-1, 0] + rows[-1, 1])
        return self._envelope(rank, wire.in_columns(event), first, first + each - 1, end)

    def _envelope(self, rank: int, event: Any, first: int, last: int, time: int) -> Envelope:
        return Envelope(
            producer=f"{self.name:024x}{rank:08x}",
            anchor=ANCHOR,
            first_sequence=first,
            last_sequence=last,
            run="llama-8b-20261129",
            attempt="0123456789abcdef",
            rank=RANKS * self.name + rank,
            node=f"node-{self.name:04d}",
            boot_id=f"{self.name:032x}",
            wall=ANCHOR + time,
            monotonic=time,
            event=event,
        )

    def _template(self, rank: int) -> tuple[bytes, NDArray[np.uint8], dict[str, list[int]]]:
        """Return the resource, one record as bytes, and where in it each number stands."""
        if rank not in self._templates:
            sequence, monotonic = _FIRST + 77_777, _MONOTONIC + 123_456_789
            event = PhaseEnded(phase="checkpoint_save", duration=123_456_789)
            message = request([self._envelope(rank, event, sequence, sequence, monotonic)])
            (group,) = message.resource_logs
            record = group.scope_logs[0].log_records[0].SerializeToString()
            framed = b"\x12" + _varint(len(record)) + record
            wall = int(ANCHOR + monotonic).to_bytes(8, "little")
            places = {
                "sequence": _places(framed, _varint(sequence)),
                "monotonic": _places(framed, _varint(monotonic)),
                "wall": _places(framed, wall),
            }
            template = np.frombuffer(framed, np.uint8)
            self._templates[rank] = (group.resource.SerializeToString(), template, places)
        return self._templates[rank]

    def _body(self, groups: list[bytes], records: int, steps: int) -> Body:
        content = b"".join(groups)
        packer = zlib.compressobj(self.level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        packed = packer.compress(content) + packer.flush()
        return Body(packed, records, steps, len(content))


def nodes(count: int) -> list[Node]:
    """Return some nodes."""
    return [Node(number) for number in range(count)]


def in_turn(found: list[Node], kind: str, each: int) -> Iterator[Body]:
    """Yield requests of all nodes without end."""
    while True:
        for node in found:
            yield node.records(each) if kind == "records" else node.steps(each)


def _group(resource: bytes, records: bytes) -> bytes:
    scope = b"\x12" + _varint(len(records)) + records
    group = b"\x0a" + _varint(len(resource)) + resource + scope
    return b"\x0a" + _varint(len(group)) + group


def _places(framed: bytes, wanted: bytes) -> list[int]:
    found, at = [], framed.find(wanted)
    while at >= 0:
        found.append(at)
        at = framed.find(wanted, at + 1)
    return found


def _varint(number: int) -> bytes:
    found = []
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def _write_varint(
    rows: NDArray[np.uint8], place: int, numbers: NDArray[np.int64], size: int
) -> None:
    for at in range(size):
        more = 0x80 if at < size - 1 else 0
        rows[:, place + at] = (numbers >> (7 * at) & 0x7F) | more
