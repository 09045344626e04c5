"""A live ledger for a training that records nothing itself: its output is read as its log.

The relay hands over a copy of what the command writes and never waits: what this thread cannot keep
up with is dropped and counted. A line counts when it arrives; each rank that the lines name has a
spool of its own, as if it recorded.
"""

import logging
import os
import queue
import threading
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from headway.events import Dropped, Envelope, Event, RankExited, StepsSummary
from headway.exporter.identity import boot_id, clock_anchor, launch, node, run_id
from headway.exporter.spooling.layout import Producer, Slot
from headway.exporter.spooling.writer import SpoolWriter
from headway.importing.log import LogImport
from headway.importing.reader import LineReader
from headway.importing.rules import Format
from headway.importing.sayings import Saying
from headway.importing.stamps import Moment, Stamps

_log = logging.getLogger(__name__)

_MOST_WAITING = 256
"""Chunks of up to 64 KiB that wait to be read."""
_LIMIT = 32 * 1024**2
"""Bytes of one rank's spool."""
_LOOK = 0.5
"""Seconds between two looks for what was written."""
_LOOK_AHEAD = 2
"""Lines of progress after which the interval between them is decided on."""
_UNKNOWN_SAMPLES = -1


class LiveLog:
    """Reads what one command writes with some formats, into spools in `folder`."""

    def __init__(self, folder: Path, formats: Sequence[Format], interval: int | None) -> None:
        configured = os.environ.get("HEADWAY_RUN_ID") or None
        self.run, _ = run_id(configured, None, launch(os.environ))
        self._folder = folder
        self._anchor = clock_anchor(time.monotonic_ns, time.time_ns)
        self._log = LogImport(
            self.run, interval=interval, scope=uuid.uuid4().hex, look_ahead=_LOOK_AHEAD
        )
        self._reader = LineReader(formats, Stamps(), self._take)
        self._chunks: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._dropped = 0
        self._written: dict[str, int] = {}
        """Envelopes of each run that are in a spool."""
        self._writers: dict[tuple[str, int | None], SpoolWriter] = {}
        self._code: int | None = None
        self._thread = threading.Thread(target=self._run, name="headway live log", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def hear(self, chunk: bytes) -> None:
        """Take what the command wrote; never waits, may be called by any thread."""
        try:
            self._chunks.put_nowait(chunk)
        except queue.Full:
            self._dropped += 1

    def finish(self, code: int, seconds: float) -> None:
        """Record how the command ended, after all that it wrote, within so many seconds."""
        self._code = code
        try:
            self._chunks.put(None, timeout=seconds)
        except queue.Full:
            return
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _take(self, saying: Saying, moment: Moment | None, rank: int | None, text: str) -> None:
        self._log.take(saying, Moment(time.time_ns(), 1), rank, text)

    def _run(self) -> None:
        over = False
        while not over:
            try:
                over = self._look()
            except Exception:
                _log.exception("the output of the command could not be read; the command goes on")

    def _look(self) -> bool:
        """Read what waits; return whether the command is over."""
        try:
            chunk = self._chunks.get(timeout=_LOOK)
        except queue.Empty:
            chunk = b""
        over = chunk is None
        if chunk:
            self._reader.feed(chunk.decode("utf-8", "replace"))
        if over:
            self._reader.feed("", final=True)
            self._end()
        for chronicle in self._log.chronicles:
            for lane in chronicle.course.lanes.values():
                chronicle.course.flush(lane)
            if chronicle.course.attempts:
                chronicle.configure()
            self._write(chronicle.course.journal.envelopes, chronicle.run)
        if over:
            for writer in self._writers.values():
                writer.close(0.0)
        return over

    def _end(self) -> None:
        """Tell how the command ended, and what was lost of its output."""
        course = self._log.chronicles[-1].course
        self._log.finish()
        code = self._code
        if not course.attempts or code is None:
            return
        now = time.time_ns()
        signal = -code if code < 0 else None
        for rank in sorted({lane.rank or 0 for lane in course.lanes.values()}):
            event = RankExited(exit_code=None if signal else code, signal=signal)
            course.tell(event, now, rank=rank)
        if self._dropped:
            reason = "the output of the command came faster than it was read"
            course.journal.add(now, Dropped(count=self._dropped, reason=reason))

    def _write(self, envelopes: Sequence[Envelope], run: str) -> None:
        done = self._written.get(run, 0)
        for envelope in envelopes[done:]:
            self._record(envelope, run)
        self._written[run] = len(envelopes)

    def _record(self, envelope: Envelope, run: str) -> None:
        writer = self._writer(run, envelope.rank)
        event, monotonic = envelope.event, envelope.wall - self._anchor
        if envelope.attempt is not None:
            _show(writer, envelope.attempt, monotonic, event)
        if not isinstance(event, StepsSummary):
            writer.event(event, envelope.attempt, envelope.rank, monotonic, envelope.wall)
            return
        attempt = int(envelope.attempt or "0", 16)
        start, count = monotonic - event.duration, event.num_steps
        for place in range(count):
            begin = start + event.duration * place // count
            end = start + event.duration * (place + 1) // count
            last = place == count - 1
            loss = event.loss if last and event.loss is not None else float("nan")
            samples = event.samples if last and event.samples is not None else _UNKNOWN_SAMPLES
            writer.step(event.first_step + place, attempt, begin, end - begin, 0, loss, samples)

    def _writer(self, run: str, rank: int | None) -> SpoolWriter:
        known = self._writers.get((run, rank))
        if known is None:
            producer = Producer(
                producer=uuid.uuid4().hex,
                anchor=self._anchor,
                run=run,
                rank=rank,
                node=node(os.environ),
                boot_id=boot_id(),
                process_id=os.getpid(),
            )
            known = self._writers[run, rank] = SpoolWriter(self._folder, producer, _LIMIT)
        return known


def _show(writer: SpoolWriter, attempt: str, monotonic: int, event: Event) -> None:
    """Show the agent where a rank stands, so that it can say of a silent one what it is doing."""
    writer.slots[Slot.ATTEMPT] = (int(attempt, 16) + 2**63) % 2**64 - 2**63
    writer.slots[Slot.ACTIVITY] = max(writer.slots[Slot.ACTIVITY], monotonic)
    if isinstance(event, StepsSummary):
        writer.slots[Slot.LAST_STEP] = event.first_step + event.num_steps - 1
