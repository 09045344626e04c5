"""The reading side of the spools: envelopes in the order in which they were recorded.

A reader never raises on what it finds: damaged blocks are counted and skipped. Once the producer
is dead, what it was doing is told as if it had said so: a step or a wait for data that was open
becomes a `phase.began`, records that found no room a `dropped` event. They carry the sequence
numbers after the last record, so that reading them twice is reading them once.
"""

import fcntl
import os
import shutil
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from headway.events import Dropped, Envelope, Event, PhaseBegan
from headway.exporter.spooling.access import is_open
from headway.exporter.spooling.blocks import blocks
from headway.exporter.spooling.layout import (
    HEADER,
    NO_STEP,
    SEGMENT_SUFFIX,
    SLOTS_AT,
    OpenPhase,
    Position,
    Producer,
    Slot,
    is_header,
    read_phases,
    read_producer,
    salt,
    segment_name,
)
from headway.exporter.spooling.records import JoinedRecords, attempt_name

START = Position()
"""Where a spool that was never read begins."""
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


def spools(folder: Path) -> list[Path]:
    """Return the folders of the producers that have something to read or are still alive.

    Those of other users that this process may not read or may not empty are left out.
    """
    try:
        paths = sorted(folder.iterdir())
    except OSError:
        return []
    return [path for path in paths if not path.name.startswith(".") and is_open(path)]


def clear_unfinished(folder: Path, seconds: float) -> None:
    """Delete what processes left behind that died while they made a spool, so long ago."""
    try:
        hidden = [path for path in folder.iterdir() if path.name.startswith(".") and path.is_dir()]
    except OSError:
        return
    for path in hidden:
        try:
            age = time.time() - path.stat().st_mtime
        except OSError:
            continue  # it is finished by now
        if age > seconds:
            shutil.rmtree(path, ignore_errors=True)


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
        found = JoinedRecords(self.producer)
        damaged = 0
        for segment in segments:
            if segment < position.segment:
                continue
            offset = position.offset if segment == position.segment else 0
            sealed = segment < newest or not alive
            seed = salt(self._folder.name, segment)
            path = self._folder / segment_name(segment)
            position = Position(segment, offset, position.sequence)
            for block, read_to in blocks(path, offset, seed, sealed):
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
            attempt=attempt_name(slots[Slot.ATTEMPT]),
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
                attempt=attempt_name(slots[Slot.ATTEMPT]),
                rank=producer.rank,
                node=producer.node,
                boot_id=producer.boot_id,
                wall=producer.anchor + monotonic,
                monotonic=monotonic,
                event=event,
            )
            for index, (monotonic, event) in enumerate(events)
        ]


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
