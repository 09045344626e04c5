"""The reading side of the spools: envelopes in the order in which they were recorded.

A reader never raises on what it finds: damaged blocks are counted and skipped. Once the producer
is dead, what it was doing is told as if it had said so: a step or a wait for data that was open
becomes a `phase.began`, records that found no room a `dropped` event. They carry the sequence
numbers after the last record, so that reading them twice is reading them once.
"""

import contextlib
import fcntl
import json
import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from headway import step_blocks
from headway.events import Dropped, Envelope, Event, PhaseBegan, Steps
from headway.exporter.spool_layout import (
    BLOCK,
    FRAME_HEAD,
    FRAME_KIND,
    FRAME_START,
    HEADER,
    NO_STEP,
    SEGMENT_SUFFIX,
    SLOTS_AT,
    STEP_BODY,
    STEP_KIND,
    STEP_READ,
    OpenPhase,
    Position,
    Producer,
    Slot,
    is_header,
    read_phases,
    read_producer,
    salt,
    segment_name,
    step_checksum,
)
from headway.wire import WireError, build, decode_fields

START = Position()
"""Where a spool that was never read begins."""
MOST_STEPS = 1000
"""Most steps in one envelope."""
_SLOTS = struct.Struct(f"={len(Slot)}q")
_SLOTS_SPAN = slice(SLOTS_AT, SLOTS_AT + _SLOTS.size)
_ACTIVITIES = (Slot.ACTIVITY, Slot.STEP_START, Slot.STEP_END, Slot.WAIT_START, Slot.WAIT_END)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What one look at a spool found."""

    envelopes: list[Envelope]
    position: Position
    damaged: int
    finished: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What a producer was doing when the header was read; times are monotonic ns."""

    process_id: int | None
    alive: bool
    closed: bool
    last_activity: int
    last_step: int | None
    attempt: str | None
    open_phases: tuple[OpenPhase, ...]
    dropped: int


class _Step(NamedTuple):
    sequence: int
    step: int
    attempt: int
    packed: bytes


def spools(folder: Path) -> list[Path]:
    """Return the folders of the producers that have something to read or are still alive."""
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if not path.name.startswith(".") and (path / HEADER).is_file()
        )
    except OSError:
        return []


class SpoolReader:
    """Reads the spool of one producer."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.producer = read_producer(self._header())
        """Who writes; `None` where the header is damaged, and then nothing can be read."""

    def read(self, position: Position = START, limit: int = 5000) -> Batch:
        """Return up to `limit` records from `position` on and where to go on reading."""
        alive = self._alive()  # asked first: what a dead producer wrote is all there
        segments = self._segments()
        newest = segments[-1] if segments else 0
        end = Position(max(newest, position.segment - 1) + 1, 0, position.sequence)
        if self.producer is None:
            return Batch(
                envelopes=[],
                position=position if alive else end,
                damaged=0 if alive or position.segment > newest else 1,
                finished=not alive,
            )
        found = _Joined(self.producer)
        damaged = 0
        for segment in segments:
            if segment < position.segment:
                continue
            offset = position.offset if segment == position.segment else 0
            sealed = segment < newest or not alive
            seed = salt(self._folder.name, segment)
            path = self._folder / segment_name(segment)
            position = Position(segment, offset, position.sequence)
            for block, read_to in _blocks(path, offset, seed, sealed):
                if not found.add(block):
                    damaged += 1
                position = Position(segment, read_to, max(position.sequence, found.sequence))
                if found.records >= limit:
                    return Batch(
                        envelopes=found.envelopes(),
                        position=position,
                        damaged=damaged,
                        finished=False,
                    )
        if alive:
            return Batch(
                envelopes=found.envelopes(), position=position, damaged=damaged, finished=False
            )
        envelopes = found.envelopes()
        if position.segment <= newest:
            envelopes += self._last_words(self.producer, position.sequence)
        return Batch(
            envelopes=envelopes,
            position=end._replace(sequence=position.sequence),
            damaged=damaged,
            finished=True,
        )

    def status(self) -> Status:
        """Return what the producer is doing, or was when it died."""
        header = self._header()
        slots = _read_slots(header)
        phases = read_phases(header)
        phases += _open_slots(slots)
        phases.sort(key=lambda phase: phase.began)
        return Status(
            process_id=self.producer.process_id if self.producer else None,
            alive=self._alive(),
            closed=bool(slots[Slot.CLOSED]),
            last_activity=max(slots[slot] for slot in _ACTIVITIES),
            last_step=None if slots[Slot.LAST_STEP] == NO_STEP else slots[Slot.LAST_STEP],
            attempt=_attempt(slots[Slot.ATTEMPT]),
            open_phases=tuple(phases),
            dropped=slots[Slot.DROPPED],
        )

    def release(self, position: Position) -> None:
        """Delete the segments wholly before `position`, and a dead producer's read folder."""
        segments = self._segments()
        for segment in segments:
            if segment < position.segment:
                (self._folder / segment_name(segment)).unlink(missing_ok=True)
        if not any(segment >= position.segment for segment in segments) and not self._alive():
            shutil.rmtree(self._folder, ignore_errors=True)

    def _header(self) -> bytes:
        try:
            return (self._folder / HEADER).read_bytes()
        except OSError:
            return b""

    def _segments(self) -> list[int]:
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        numbers = (name.removesuffix(SEGMENT_SUFFIX) for name in names)
        return sorted(int(number) for number in numbers if number.isdigit() and number.isascii())

    def _alive(self) -> bool:
        try:
            descriptor = os.open(self._folder / HEADER, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    def _last_words(self, producer: Producer, sequence: int) -> list[Envelope]:
        slots = _read_slots(self._header())
        untold = slots[Slot.DROPPED] - slots[Slot.DROPPED_WRITTEN]
        events: list[tuple[int, Event]] = [
            (opened.began, PhaseBegan(phase=opened.phase)) for opened in _open_slots(slots)
        ]
        if untold > 0:
            reason = "no room in the spool until the process ended"
            events.append((slots[Slot.ACTIVITY], Dropped(count=untold, reason=reason)))
        return [
            Envelope(
                producer=producer.producer,
                anchor=producer.anchor,
                first_sequence=sequence + index,
                last_sequence=sequence + index,
                run=producer.run,
                attempt=_attempt(slots[Slot.ATTEMPT]),
                rank=producer.rank,
                node=producer.node,
                boot_id=producer.boot_id,
                wall=producer.anchor + monotonic,
                monotonic=monotonic,
                event=event,
            )
            for index, (monotonic, event) in enumerate(events)
        ]


class _Joined:
    """Collects blocks into envelopes and joins consecutive steps."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._envelopes: list[Envelope] = []
        self._steps: list[_Step] = []
        self.records = 0
        self.sequence = 0
        """The sequence number after the last record."""

    def add(self, block: "_Step | Mapping[str, Any] | None") -> bool:
        """Take a block; return whether it could be understood."""
        if block is None:
            return False
        if isinstance(block, _Step):
            self._add_step(block)
        else:
            try:
                envelope = self._event(block)
            except WireError:
                return False
            self._join()
            self._envelopes.append(envelope)
            self.sequence = envelope.last_sequence + 1
        self.records += 1
        return True

    def envelopes(self) -> list[Envelope]:
        """Return everything taken so far."""
        self._join()
        return self._envelopes

    def _add_step(self, block: _Step) -> None:
        if self._steps:
            last = self._steps[-1]
            follows = (last.sequence + 1, last.step + 1, last.attempt)
            if follows != block[:3] or len(self._steps) == MOST_STEPS:
                self._join()
        self._steps.append(block)
        self.sequence = block.sequence + 1

    def _join(self) -> None:
        if not self._steps:
            return
        first, last = self._steps[0], self._steps[-1]
        newest = step_blocks.Step(*step_blocks.LAYOUT.unpack(last.packed))
        end = newest.start + newest.duration
        event = Steps(
            first_step=first.step,
            version=step_blocks.VERSION,
            packed=b"".join(step.packed for step in self._steps),
        )
        self._steps = []
        self._envelopes.append(
            Envelope(
                producer=self._producer.producer,
                anchor=self._producer.anchor,
                first_sequence=first.sequence,
                last_sequence=last.sequence,
                run=self._producer.run,
                attempt=_attempt(last.attempt),
                rank=self._producer.rank,
                node=self._producer.node,
                boot_id=self._producer.boot_id,
                wall=self._producer.anchor + end,
                monotonic=end,
                event=event,
            )
        )

    def _event(self, values: Mapping[str, Any]) -> Envelope:
        name, fields = values.get("name"), values.get("fields")
        if not isinstance(name, str) or not isinstance(fields, dict):
            raise WireError("a frame needs 'name' and 'fields'")
        envelope = {
            **self._producer.to_json(),
            **{key: values.get(key) for key in ("attempt", "rank", "monotonic", "wall")},
            "first_sequence": values.get("sequence"),
            "last_sequence": values.get("sequence"),
        }
        return build(envelope, name, decode_fields(name, fields))


def _blocks(
    path: Path, offset: int, seed: int, sealed: bool
) -> Iterator[tuple[_Step | Mapping[str, Any] | None, int]]:
    """Yield each block of a segment, `None` for a damaged stretch, and the offset after it.

    In the segment that is still being written, what cannot be read at the end is not yet damaged.
    """
    data = _tail(path, offset)
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
        fresh = _tail(path, offset)
        if _block(fresh, 0, seed) is None:
            offset = base + following
            yield None, offset
        else:
            data, base = fresh, offset


def _tail(path: Path, offset: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read()
    except OSError:
        return b""


def _following(data: bytes, at: int, seed: int) -> int | None:
    for candidate in range(at, len(data) - BLOCK + 1, BLOCK):
        if data[candidate] and _block(data, candidate, seed) is not None:
            return candidate
    return None


def _block(data: bytes, at: int, seed: int) -> tuple[_Step | Mapping[str, Any], int] | None:
    """Return the block at `at` and its size, unless it is damaged or not there."""
    if len(data) - at < BLOCK:
        return None
    kind, sequence, step, attempt, packed, checksum = STEP_READ.unpack_from(data, at)
    if kind == STEP_KIND:
        if step_checksum(data[at : at + STEP_BODY.size], seed) != checksum:
            return None
        return _Step(sequence, step, attempt, packed), BLOCK
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


def _read_slots(header: bytes) -> tuple[int, ...]:
    if not is_header(header):
        return tuple(NO_STEP if slot is Slot.LAST_STEP else 0 for slot in Slot)
    return _SLOTS.unpack(header[_SLOTS_SPAN])


def _open_slots(slots: tuple[int, ...]) -> list[OpenPhase]:
    spans = (
        ("step", Slot.STEP_START, Slot.STEP_END),
        ("data_wait", Slot.WAIT_START, Slot.WAIT_END),
    )
    return [
        OpenPhase(phase, slots[start]) for phase, start, end in spans if slots[start] > slots[end]
    ]


def _attempt(number: int) -> str | None:
    return f"{number % 2**64:016x}" if number else None
