"""One producer's spool as the agent follows it: what was read, acknowledged and seen alive."""

import logging
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from headway.events import Envelope
from headway.exporter.spooling.layout import Position, Producer, segment_name
from headway.exporter.spooling.reader import Batch, SpoolReader, Status
from headway.wire import trim

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Records that a batch should hold and does not, because their blocks are damaged."""

    producer: Producer
    records: int
    blocks: int


class Tail:
    """Follows one spool; reading again from an unacknowledged position gives the same records."""

    def __init__(self, folder: Path, position: Position) -> None:
        self.name = folder.name
        self.position = position
        """How far the collector has acknowledged."""
        self.was_alive = False
        """Whether this agent saw the producer alive; what died before tells no time of death."""
        self._folder = folder
        self._reader = SpoolReader(folder)
        # Where earlier segments are gone and nobody remembers them, nothing counts as missing.
        self._from_start = position != Position() or (folder / segment_name(1)).exists()
        self.is_finished = False
        """Whether the collector has acknowledged all that a producer wrote that is gone."""
        self._alive = False
        self._seen = position
        self._seen_all = False
        self._told = position.sequence
        self._last_sign = 0

    @property
    def producer(self) -> Producer | None:
        """Who writes; `None` where the header is damaged."""
        return self._reader.producer

    @property
    def run(self) -> str | None:
        """Run of the producer."""
        return None if self.producer is None else self.producer.run

    @property
    def is_rank(self) -> bool:
        """Whether the producer is a rank, not an agent."""
        return self.producer is not None and self.producer.rank is not None

    def read(self, limit: int) -> Batch | None:
        """Return the next records after the acknowledged ones; `None` where nothing is new."""
        if self.is_finished or self._is_idle(self.position):
            return None
        batch = self._reader.read(self.position, limit)
        return batch if batch.finished or batch.position != self.position else None

    def look(self, limit: int) -> Batch | None:
        """Return the next records that no look returned, acknowledged or not."""
        if self._seen_all or self._is_idle(self._seen):
            return None
        batch = self._reader.read(self._seen, limit)
        self._seen, self._seen_all = batch.position, batch.finished
        return batch

    def news(self, batch: Batch) -> list[Envelope]:
        """Return those records of a batch that no batch before held, be it looked at or read."""
        found = []
        for envelope in batch.envelopes:
            first, last = max(envelope.first_sequence, self._told), envelope.last_sequence
            if first <= last:
                found.append(trim(envelope, first, last))
                self._told = last + 1
        if batch.position > self._seen:
            self._seen, self._seen_all = batch.position, batch.finished
        return found

    def status(self) -> Status:
        """Return what the producer is doing."""
        status = self._reader.status()
        self._alive = status.alive
        self.was_alive |= status.alive
        return status

    def is_silent(self, status: Status, now: int, seconds: float) -> bool:
        """Return whether neither the rank nor a heartbeat showed for so long that it lives.

        `now` is monotonic ns. Each `True` counts as the heartbeat that it asks for.
        """
        self._last_sign = max(self._last_sign, status.last_activity) or now
        if now - self._last_sign < seconds * 1e9:
            return False
        self._last_sign = now
        return True

    def acknowledge(self, batch: Batch) -> Gap | None:
        """Move on behind a batch; return the records that it lacks."""
        missing = num_missing(batch, self.position.sequence if self._from_start else None)
        self._from_start |= bool(batch.envelopes)
        self.position = batch.position
        self.is_finished = batch.finished
        if self.producer is None or not (missing or (batch.finished and batch.damaged)):
            return None
        # A damaged end leaves no gap behind it to count.
        return Gap(producer=self.producer, records=missing or batch.damaged, blocks=batch.damaged)

    def release(self, refused: Path) -> bool:
        """Delete what was acknowledged, and return whether the whole spool is gone.

        A spool that does not say whose it is moves to the folder `refused` instead.
        """
        if self.producer is None and self.is_finished:
            self._keep_in(refused)
        elif self.producer is not None:
            self._reader.release(self.position)
        return not self._folder.exists()

    def _keep_in(self, refused: Path) -> None:
        try:
            refused.mkdir(parents=True, exist_ok=True)
            shutil.move(self._folder, refused / self.name)
        except OSError as error:
            _log.error("cannot read the header of %s, nor move it: %s", self._folder, error)
        else:
            _log.error("cannot read the header of %s; it is kept in %s", self._folder, refused)

    def _is_idle(self, position: Position) -> bool:
        """Return whether a living producer wrote nothing behind a position.

        Most looks at most spools find nothing, and this costs a few bytes read.
        """
        if not self._alive:
            return False
        try:
            with (self._folder / segment_name(position.segment)).open("rb") as segment:
                if os.pread(segment.fileno(), 1, position.offset) != b"\0":
                    return False
        except OSError:
            return False
        return not (self._folder / segment_name(position.segment + 1)).exists()


def num_missing(batch: Batch, expected: int | None) -> int:
    """Count the sequence numbers that a batch leaves out, from `expected` on if that is known.

    Example: expected 5, envelopes 6-9, 12-12 and 13-20: 3 are missing.
    """
    missing = 0
    for envelope in batch.envelopes:
        if expected is not None:
            missing += max(envelope.first_sequence - expected, 0)
        expected = envelope.last_sequence + 1
    return missing
