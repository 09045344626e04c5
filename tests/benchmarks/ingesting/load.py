"""Requests of agents, encoded before they are sent, and quickly: copies of one with other numbers.

Whole numbers are given a fixed length on the wire, so that the bytes of many records can be written
at once with numpy. Every record is new: its producer's sequence goes on from request to request.
"""

import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from headway import step_blocks, wire
from headway.events import (
    AttemptStarted,
    Envelope,
    Event,
    GpuSample,
    Heartbeat,
    PhaseEnded,
    RunEnded,
    RunStarted,
    Steps,
)
from otlp_requests import request

SECOND = 10**9
RANKS = 8
EACH = {"records": 125, "steps": 1000}
"""Records of a rank in one request, or steps of a rank in one record."""
_MONOTONIC = 2**46
"""Times from here to 2**49 ns, six days, are seven bytes long."""
_AGO = 3600 * SECOND
_FIRST = 2**28
"""Sequence numbers from here to 2**35 are five bytes long."""
_PACE = 100_000
"""Time from one record of a rank to its next, and of a step, in ns: a fast clock, so that a run of
a minute has what a real one has in a day."""
_LASTED = 80_000
_PHASE = PhaseEnded(phase="checkpoint_save", duration=_LASTED)
_HEARTBEAT = Heartbeat(open_phases=("step",))
_SAMPLE = GpuSample(
    device="GPU-5c2b1f0e-0000-0000-0000-000000000001",
    temperature=61.0,
    power=640.5,
    memory_used=70 * 2**30,
    utilization=0.97,
)


@dataclass(frozen=True, slots=True)
class Body:
    """One request: gzipped, its records, its steps, its size before."""

    content: bytes
    records: int
    steps: int
    size: int


@dataclass(slots=True)
class Node:
    """A node whose agent ships the records of its ranks; `place` is its place in the run."""

    run: str
    place: int
    anchor: int
    """Wall clock of its boot, in UTC ns."""
    level: int = 1
    _sent: int = 0
    """Records and steps of each rank so far."""
    _steps_done: int = 0
    _sampled: int = 0
    """Samples of the node's GPUs so far."""
    _templates: dict[tuple[int | None, str], tuple[NDArray[np.uint8], dict[str, list[int]]]] = (
        field(default_factory=dict)
    )

    def begin(self) -> Body:
        """Return the start of the run, where it is the first node, and of its ranks."""
        told: list[tuple[int, Event]] = [
            (rank, AttemptStarted(layer="scheduler")) for rank in range(RANKS)
        ]
        if self.place == 0:
            told.insert(0, (0, RunStarted(run_name=self.run.rpartition("-")[0])))
        return self._rare(told)

    def end(self) -> Body:
        """Return the end of the run."""
        return self._rare([(0, RunEnded(reason="completed"))])

    def records(self, each: int) -> Body:
        """Return the next `each` closed phases of every rank."""
        return self._body(self._next({_PHASE: each}), RANKS * each, 0)

    def mixed(self, each: int) -> Body:
        """Return the next `each` records of every rank as agents send them.

        Two in five are samples of the node's GPUs, which no ledger reads, one in twenty is a phase
        and the rest are heartbeats.
        """
        samples, phases = each * 2 // 5, each // 20
        groups = self._next({_HEARTBEAT: each - samples - phases, _PHASE: phases})
        first, self._sampled = self._sampled, self._sampled + RANKS * samples
        groups.append(self._group(None, {_SAMPLE: RANKS * samples}, first))
        return self._body(groups, RANKS * each, 0)

    def _next(self, kinds: Mapping[Event, int]) -> list[bytes]:
        """Return the next records of every rank, so many of each kind."""
        first, self._sent = self._sent, self._sent + sum(kinds.values())
        return [self._group(rank, kinds, first) for rank in range(RANKS)]

    def _group(self, rank: int | None, kinds: Mapping[Event, int], first: int) -> bytes:
        content = b""
        for event, each in kinds.items():
            numbers = _FIRST + first + np.arange(each, dtype=np.int64)
            times = _MONOTONIC + (1 + first + np.arange(each, dtype=np.int64)) * _PACE
            first += each
            template, places = self._template(rank, event)
            rows = np.tile(template, (each, 1))
            for place in places["sequence"]:
                _write_varint(rows, place, numbers, 5)
            for place in places["monotonic"]:
                _write_varint(rows, place, times, 7)
            (place,) = places["wall"]
            walls = (self.anchor + times).astype("<u8").view(np.uint8).reshape(each, 8)
            rows[:, place : place + 8] = walls
            content += rows.tobytes()
        (found,) = request([self._envelope(rank, _PHASE, 0, 0, 0)]).resource_logs
        return _group(found.resource.SerializeToString(), content)

    def steps(self, each: int) -> Body:
        """Return one record with the next `each` steps of every rank."""
        first, self._sent = self._sent, self._sent + each
        done, self._steps_done = self._steps_done, self._steps_done + each
        starts = _MONOTONIC + _PACE * (first + np.arange(each, dtype=np.int64))
        groups = []
        for rank in range(RANKS):
            rows = np.empty((each, 5), "<i8")
            rows[:, 0] = starts + 10_000 + (starts + rank) % 991
            rows[:, 1] = _LASTED + (starts + rank) % 1_009
            rows[:, 2] = 5_000
            rows[:, 3] = (2.0 + np.sin(starts + rank)).astype("<f8").view("<i8")
            rows[:, 4] = 1024 * (done + 1 + np.arange(each))
            event = Steps(first_step=done + 1, version=step_blocks.VERSION, packed=rows.tobytes())
            number, end = _FIRST + first, int(rows[-1, 0] + rows[-1, 1])
            told = self._envelope(rank, wire.in_columns(event), number, number + each - 1, end)
            groups.append(request([told]).SerializeToString())
        return self._body(groups, RANKS, RANKS * each)

    def _rare(self, told: list[tuple[int, Event]]) -> Body:
        """Return one record of each rank or several, by themselves."""
        groups = []
        for number, (rank, event) in enumerate(told):
            sequence, time = _FIRST + self._sent + number, _MONOTONIC + self._sent * _PACE
            envelope = self._envelope(rank, event, sequence, sequence, time)
            groups.append(request([envelope]).SerializeToString())
        self._sent += len(told)
        return self._body(groups, len(told), 0)

    def _envelope(
        self, rank: int | None, event: Event, first: int, last: int, time: int
    ) -> Envelope:
        """Return a record of a rank, or of the node's agent."""
        name = uuid.uuid5(uuid.NAMESPACE_OID, f"{self.run} {self.place} {rank}")
        return Envelope(
            producer=name.hex,
            anchor=self.anchor,
            first_sequence=first,
            last_sequence=last,
            run=None if rank is None else self.run,
            attempt=None if rank is None else "0123456789abcdef",
            rank=None if rank is None else RANKS * self.place + rank,
            node=f"node-{self.place:04d}",
            boot_id=f"{self.anchor:032x}",
            wall=self.anchor + time,
            monotonic=time,
            event=event,
        )

    def _template(
        self, rank: int | None, event: Event
    ) -> tuple[NDArray[np.uint8], dict[str, list[int]]]:
        """Return one record as bytes, and where in it each number stands."""
        key = (rank, event.name)
        if key not in self._templates:
            sequence, monotonic = _FIRST + 77_777, _MONOTONIC + 123_456_789
            message = request([self._envelope(rank, event, sequence, sequence, monotonic)])
            record = message.resource_logs[0].scope_logs[0].log_records[0].SerializeToString()
            framed = b"\x12" + _varint(len(record)) + record
            wall = int(self.anchor + monotonic).to_bytes(8, "little")
            places = {
                "sequence": _places(framed, _varint(sequence)),
                "monotonic": _places(framed, _varint(monotonic)),
                "wall": _places(framed, wall),
            }
            self._templates[key] = (np.frombuffer(framed, np.uint8), places)
        return self._templates[key]

    def _body(self, groups: list[bytes], records: int, steps: int) -> Body:
        content = b"".join(groups)
        packer = zlib.compressobj(self.level, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        packed = packer.compress(content) + packer.flush()
        return Body(packed, records, steps, len(content))


def nodes(count: int, run: str = "llama-8b-20261129") -> list[Node]:
    """Return the nodes of a run that begins an hour ago."""
    anchor = time.time_ns() - _AGO - _MONOTONIC
    return [Node(run, place, anchor) for place in range(count)]


def in_turn(found: list[Node], kind: str, each: int) -> Iterator[Body]:
    """Yield requests of all nodes without end."""
    while True:
        for node in found:
            yield node.records(each) if kind == "records" else node.steps(each)


def fleet(live: int, size: int, requests: int) -> Iterator[Body]:
    """Yield requests of a fleet without end: nine of mixed records, then one of steps, a node.

    `live` runs of `size` nodes train at a time; when the nodes of one have sent about `requests`
    requests it ends and another begins, and so that not all end at once they begin in turn.
    """
    numbers = count()
    runs = [_run(next(numbers), size, requests * (place + 1) // live) for place in range(live)]
    while True:
        for place, run in enumerate(runs):
            for _ in range(10 * size):
                body = next(run, None)
                if body is None:
                    runs[place] = _run(next(numbers), size, requests)
                    break
                yield body


def _run(number: int, size: int, requests: int) -> Iterator[Body]:
    members = nodes(size, f"llama-{number}-20261129")
    for node in members:
        yield node.begin()
    for _ in range(max(requests // (10 * size), 1)):
        for node in members:
            for _ in range(9):
                yield node.mixed(EACH["records"])
            yield node.steps(EACH["steps"])
    yield members[0].end()


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
