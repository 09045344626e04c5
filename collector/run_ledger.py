"""One run's timeline with the ledger that was computed last, for any number of threads that ask.

New events only queue up, so that no commit waits for a ledger that is being computed. A run that
nobody asks about can let go of its events and its ledger, and read them again from the store.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from headway.blocks import Block, Part, earliest, expanded, of_kinds
from headway.collector.node_clocks import NodeClocks
from headway.conditions import Condition, conditions, target_of
from headway.conditions.waiting import is_waiting
from headway.events import (
    Envelope,
    IncidentAcknowledged,
    IncidentCorrected,
    Note,
    RunStarted,
    Steps,
)
from headway.expiry import Expiry
from headway.ledger import Ledger, Timeline
from headway.ledger.heartbeats import thinned
from headway.ledger.segments import FrozenSegment
from headway.report import report, summary
from headway.settings import GOODPUT_TARGET

_LOG = logging.getLogger(__name__)

_LIVE_STEP = 1_000_000_000
"""A live ledger is at most this old, in nanoseconds."""
_DEAR = 150_000_000
"""CPU time in ns from which on a ledger is not computed again for every event that arrives."""

_CATCHING_UP = 180 * 10**9
"""Time in ns within which agents ship what they kept while the collector was away."""
_REACH = 60 * 10**9
"""How far before the newest one, in ns, a ledger may be asked for once more."""
_RECORD = 700
_STEP = 125
"""Bytes of a record, and of each step in it, in a timeline and its ledger (measured)."""
_IN_COLUMNS = 100
"""Bytes of a record that waits in a block."""


class LedgerFailed(RuntimeError):  # noqa: N818  # the condition reads as a name
    """The events of a run are stored, but its ledger could not be computed."""


class StillComputing(RuntimeError):  # noqa: N818  # the condition reads as a name
    """A ledger that is asked for is being computed, and it takes long."""


class _Arrived(NamedTuple):
    """What one commit brought: the number of that change, when in UTC ns, and the records."""

    change: int
    at: int
    parts: Sequence[Part]


class StoredRun(NamedTuple):
    """All that is stored of one run: segments, its own events, those of its nodes."""

    segments: Sequence[FrozenSegment]
    events: Iterable[Envelope]
    of_nodes: Iterable[Envelope]


@dataclass(slots=True, kw_only=True, eq=False)
class Snapshot:
    """What a run's ledger said at one moment (UTC ns); equal versions are equal.

    The ledger itself is held only while there is room; `again` reads it from what is stored.
    """

    run: str
    version: str
    as_of: int
    report: dict[str, Any]
    summary: dict[str, Any]
    newest: int
    conditions: tuple[Condition, ...]
    is_awaited: bool
    """Whether its agents may not have shipped yet what happened while the collector was away."""
    is_waiting: bool
    """Whether it waits for machines, and nothing can be heard of it."""
    held: Ledger | None
    again: Callable[[int], Ledger]
    versions: Mapping[str, Any]
    """Versions of libraries that the run says it uses."""

    @property
    def ledger(self) -> Ledger:
        """Return the ledger; where it was let go, reading it takes as long as at a start."""
        found = self.held
        if found is None:
            found = self.held = self.again(self.as_of)
        return found


class RunLedger:
    """What is known of one run: its events, and the snapshot that was computed last."""

    def __init__(
        self,
        run: str,
        clock: Callable[[], int],
        computed: Callable[[], None],
        stored: Callable[[str], StoredRun] | None = None,
        target: float = GOODPUT_TARGET,
    ) -> None:
        """Start without events; `computed` is called after each new snapshot.

        `stored` reads what was let go; without it nothing can be. `target` is the training
        goodput that the run is to reach, unless it names its own.
        """
        self.name = run.rpartition("-")[0] or run
        self.started: int | None = None
        self.cost = 0
        """CPU time in ns that the newest snapshot took."""
        self.as_of = 0
        """When the newest snapshot was computed, UTC ns."""
        self.latest: Snapshot | None = None
        self.used = 0.0
        """When somebody last asked for the ledger, in seconds of the monotonic clock."""
        self.restored: int | None = None
        """When it was read from the store at the start of the collector, UTC ns."""
        self._run = run
        self._stored = stored
        self._target = target
        self._clock = clock
        self._on_computed = computed
        self._queue_lock = threading.Lock()
        self._queue: deque[_Arrived] = deque()
        self._waiting = 0
        self._num_changes = 0
        self._clocks = NodeClocks()
        self._is_said = False
        self._is_lacking = False
        self._compute_lock = threading.Lock()
        self._timeline: Timeline | None = Timeline(run)
        self._defect: Exception | None = None
        self._failure: Exception | None = None
        self._computed = -1

    @property
    def weight(self) -> int:
        """About how many bytes its events and its ledger take."""
        timeline = self._timeline
        if timeline is None:
            return 0
        return _RECORD * timeline.num_records + _STEP * timeline.num_steps + self._waiting

    def restore(self, segments: Sequence[FrozenSegment]) -> None:
        """Take what is left of expired steps, before any event."""
        if self._timeline is not None:
            self._timeline.add_segments(segments)

    def expire(self, found: Expiry) -> None:
        """Let go of raw records that are no longer stored; what the ledger says stays."""
        with self._compute_lock:
            if self._stored is not None and self._defect is None:
                # It may have been read just before or just after the records went.
                self._drop()
            elif self._timeline is not None:
                self._timeline = self._timeline.without(found.removed, found.kept, found.segments)
        with self._queue_lock:
            self._num_changes += 1

    def read_anew(self) -> None:
        """Read all from the store before the next ledger: more is there than is added now."""
        with self._queue_lock:
            self._is_lacking = True
            self._num_changes += 1

    def let_go(self) -> bool:
        """Hold neither events nor ledger until somebody asks; return whether that was possible.

        What was last said of the run stays.
        """
        if self._stored is None or self._defect is not None:
            return False
        if not self._compute_lock.acquire(blocking=False):
            return False
        try:
            self._drop()
            return True
        finally:
            self._compute_lock.release()

    def _drop(self) -> None:
        with self._queue_lock:
            self._timeline, self._queue, self._waiting = None, deque(), 0
        if self.latest is not None:
            self.latest.held = None

    def add(self, parts: Sequence[Part]) -> None:
        """Take stored events of the run."""
        with self._queue_lock:
            self._hold(parts)
            self._clocks.add(parts)
            told = min(map(earliest, parts))
            self.started = told if self.started is None else min(self.started, told)
            self._is_said |= any(of_kinds(parts, Note, IncidentAcknowledged, IncidentCorrected))
            for envelope in of_kinds(parts, RunStarted):
                if isinstance(envelope.event, RunStarted):
                    self.name = envelope.event.run_name

    def add_of_nodes(self, envelopes: Sequence[Envelope]) -> None:
        """Take events of the run's nodes, which are no sign of the run itself."""
        with self._queue_lock:
            self._hold(envelopes)

    def _hold(self, parts: Sequence[Part]) -> None:
        """Keep parts for the timeline; what was let go finds them in the store."""
        self._num_changes += 1
        if self._timeline is not None:
            self._queue.append(_Arrived(self._num_changes, self._clock(), parts))
            self._waiting += sum(map(_weight, parts))

    @property
    def settled(self) -> bool:
        """Whether only new events can change what is said of it."""
        latest = self.latest
        return self._is_computed(self._num_changes) and not (
            latest is not None and latest.report["provisional"]
        )

    def is_stale(self, now: int) -> bool:
        """Whether a snapshot at a time in UTC ns would be another than the newest."""
        return not self._answers(self._num_changes, now)

    def recent(self, patience: float) -> Snapshot:
        """Return the current ledger; if it takes long to compute, as it was up to a second ago.

        While another thread computes such a one, it is as old as that takes. What people said is
        in it. Raises what `snapshot` does.
        """
        self.used = time.monotonic()
        latest = self.latest
        if latest is None or self.cost < _DEAR or self._is_said:
            return self.snapshot(patience)
        if abs(self._clock() - self.as_of) >= _LIVE_STEP:
            with suppress(StillComputing):
                return self.snapshot(0.0)
        return latest

    def snapshot(self, patience: float | None = None) -> Snapshot:
        """Return the current ledger; of those who ask at once, one computes it for all.

        Waits as long as it takes, or `patience` seconds.

        Raises:
            LedgerFailed: a defect of the ledger.
            StillComputing: another thread was at it for the whole time.
        """
        asked, now = self._num_changes, self._clock()
        if not self._compute_lock.acquire(timeout=-1 if patience is None else patience):
            raise StillComputing(f"the ledger of {self._run!r} is being computed, which takes long")
        try:
            if not self._answers(asked, now):
                self._compute()
            if self._failure is not None:
                raise LedgerFailed(
                    f"the ledger of {self._run!r} could not be computed: {self._failure!r}"
                ) from self._failure
            assert self.latest is not None  # noqa: S101  # it is computed now
            return self.latest
        finally:
            self._compute_lock.release()

    def take_in(self, most: int) -> bool:
        """Take in about so many of the records that wait for the ledger; return whether more do.

        So that a ledger is not computed at one go where many came; what was let go stays so.
        """
        with self._compute_lock:
            if self._timeline is None or self._defect is not None:
                return False
            with self._queue_lock:
                some = self._some(most)
            if some:
                with suppress(Exception):  # a defect is told by who computes
                    self._add(self._timeline, some, self._clock())
            return bool(self._queue)

    def _some(self, most: int) -> list[Part]:
        """Remove about so many records from the queue, the first ones."""
        found: list[Part] = []
        while self._queue and most > 0:
            change, at, parts = self._queue.popleft()
            fitting = 0
            while fitting < len(parts) and most > 0:
                most -= _num_held(parts[fitting])
                fitting += 1
            found += parts[:fitting]
            self._waiting -= sum(map(_weight, parts[:fitting]))
            if fitting < len(parts):
                self._queue.appendleft(_Arrived(change, at, parts[fitting:]))
        return found

    def refresh(self) -> None:
        """Compute the ledger from what was taken in: as it was before the first record that waits.

        What was let go is read again, whole.

        Raises:
            LedgerFailed: it could not be read again.
        """
        with self._compute_lock:
            self._compute(whole=self._timeline is None)

    def _is_computed(self, num_changes: int) -> bool:
        return self._computed >= num_changes

    def _answers(self, num_changes: int, now: int) -> bool:
        """Whether the newest snapshot answers who asked after so many changes at a time."""
        if not self._is_computed(num_changes):
            return False
        latest = self.latest
        live = latest is not None and latest.report["provisional"]
        return not live or abs(now - self.as_of) < _LIVE_STEP

    def _compute(self, *, whole: bool = True) -> None:
        """Compute the ledger of now, or of when the first record came that waits."""
        now, begun = self._clock(), time.thread_time_ns()
        timeline = self._read_again()
        with self._queue_lock:
            queue = self._emptied() if whole else []
            num_changes, newest = self._num_changes, self._clocks.newest()
            version = f"{num_changes}-{now}"
            if self._queue:
                waiting = self._queue[0]
                num_changes, now = waiting.change - 1, min(now, waiting.at)
            else:
                self._is_said = False
        try:
            ledger = self._ledger(timeline, queue, now)
            built = report(ledger)
            found = Snapshot(
                run=ledger.run,
                version=version,
                as_of=now,
                report=built,
                summary=summary(built),
                newest=newest,
                conditions=self._conditions(ledger, built),
                is_awaited=self._is_awaited(built["last_event"], now),
                is_waiting=is_waiting(ledger, built["incidents"]),
                held=ledger,
                again=self._ledger_again,
                versions=_versions(ledger),
            )
        except Exception as error:
            # A defect met by one run's events must not hide the other runs.
            _LOG.exception("the ledger of %r could not be computed", self._run)
            self.latest, self._failure = None, error
        else:
            self.latest, self._failure = found, None
        self.as_of, self.cost = now, time.thread_time_ns() - begun
        self._computed = num_changes
        self._on_computed()

    def _is_awaited(self, heard: int | None, now: int) -> bool:
        restored = self.restored
        if restored is None or not restored <= now < restored + _CATCHING_UP:
            return False
        return heard is None or heard < restored

    def _conditions(self, ledger: Ledger, built: dict[str, Any]) -> tuple[Condition, ...]:
        try:
            return tuple(conditions(ledger, built, target_of(built["labels"], self._target)))
        except Exception:  # a defect there must not hide the run
            _LOG.exception("the conditions of %r for alerts could not be computed", self._run)
            return ()

    def _ledger(self, timeline: Timeline, new: Sequence[Part], now: int) -> Ledger:
        self._add(timeline, new, now)
        found = timeline.ledger(now)
        timeline.thin(now - _REACH)
        return found

    def _add(self, timeline: Timeline, new: Sequence[Part], now: int) -> None:
        if self._defect is not None:
            raise self._defect
        try:
            timeline.add(expanded(thinned(new, now)))
        except Exception as error:
            self._defect = error  # half of the events are in, so no later ledger would be right
            raise

    def _emptied(self) -> list[Part]:
        """Return what waits, which the caller takes in."""
        queue, self._queue, self._waiting = self._queue, deque(), 0
        return [part for arrived in queue for part in arrived.parts]

    def _ledger_again(self, as_of: int) -> Ledger:
        """Return the ledger of a time in UTC ns from what is stored by now."""
        with self._compute_lock:
            self.used = time.monotonic()
            timeline = self._read_again()
            with self._queue_lock:
                queue = self._emptied()
            return self._ledger(timeline, queue, as_of)

    def _read_again(self) -> Timeline:
        """Return the timeline, read from what is stored if it was let go or lacks anything."""
        if self._is_lacking:
            self._is_lacking = False
            self._drop()
        if self._timeline is not None:
            return self._timeline
        if self._stored is None:
            raise AssertionError("only what can be read again is let go")
        timeline = Timeline(self._run)
        with self._queue_lock:
            # What arrives from here on is queued; what of it is read, too, is taken once.
            self._timeline = timeline
        try:
            stored = self._stored(self._run)
            timeline.add_segments(stored.segments)
            timeline.add(stored.events)
            timeline.add(stored.of_nodes)
        except Exception as error:
            with self._queue_lock:
                self._timeline, self._queue, self._waiting = None, deque(), 0
            raise LedgerFailed(
                f"the events of {self._run!r} could not be read again: {error}"
            ) from error
        return timeline


def _versions(ledger: Ledger) -> Mapping[str, Any]:
    configured = ledger.book.configured
    return {} if configured is None else configured.versions or {}


def _num_held(part: Part) -> int:
    """Return how many records become objects of their own."""
    return part.count if isinstance(part, Block) else 1


def _weight(part: Part) -> int:
    """Return about how many bytes a part takes while it waits."""
    if isinstance(part, Block):
        return _IN_COLUMNS * part.count
    if isinstance(part.event, Steps):
        return _RECORD + _STEP * (part.last_sequence - part.first_sequence + 1)
    return _RECORD
