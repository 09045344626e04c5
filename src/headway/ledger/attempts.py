"""Which events belong to which attempt, and when each attempt began and ended (rules 5, 8, 9).

An attempt is bounded by its own identity, never inferred from step numbers. Exits, faults, stops
and restart phases without an identity fall to the newest attempt that had begun by then.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headway.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Fault,
    Heartbeat,
    PhaseBegan,
    PhaseEnded,
    RankExited,
    RestartPhase,
    Resumed,
    StopAnnounced,
)
from headway.ledger.intake import Intake, Stamped
from headway.ledger.steps import STEPS, StepRows, rows_of


@dataclass(slots=True)
class Phase:
    """A stretch of one rank; open while `end` is None. `failed` ended by an exception."""

    start: int
    end: int | None
    name: str
    failed: bool = False

    @property
    def is_closed(self) -> bool:
        """Whether it ended and its rank went on; a failed load ends like any other phase."""
        whole = not self.failed or self.name == "checkpoint_load"
        return self.end is not None and self.name != "step" and whole


@dataclass(slots=True)
class RankLog:
    """What one rank of one attempt recorded, in order of time."""

    rank: int
    node: str | None = None
    started: int | None = None
    ended: int | None = None
    last_evidence: int = 0
    rows: list[StepRows] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    resumed: list[tuple[int, Resumed]] = field(default_factory=list)
    saves: list[tuple[int, int]] = field(default_factory=list)
    heartbeat: tuple[int, Heartbeat] | None = None


@dataclass(slots=True)
class Opening:
    """When the attempt began to train from a state, and what `resumed` told of that state."""

    opened: int
    resumed: int | None = None
    completed: int | None = None
    checkpoint: str | None = None


@dataclass(slots=True)
class Attempt:
    """All events of one attempt; times in ns."""

    identity: str
    number: int = 0
    layer: str = "scheduler"
    world_size: int | None = None
    begin: int = 0
    end: int = 0
    ended: bool = False
    last_evidence: int = 0
    ranks: dict[int, RankLog] = field(default_factory=dict)
    openings: list[Opening] = field(default_factory=list)
    faults: list[tuple[int, int | None, Fault]] = field(default_factory=list)
    stops: list[tuple[int, StopAnnounced]] = field(default_factory=list)
    exits: list[tuple[int, int, RankExited | AttemptEnded]] = field(default_factory=list)
    said: list[tuple[int, RestartPhase]] = field(default_factory=list)
    load_failures: list[int] = field(default_factory=list)

    def survivors(self, time: int) -> int:
        """Return how many of its processes were not seen to exit by a time in ns."""
        gone = {
            rank
            for seen, rank, exit_ in self.exits
            if isinstance(exit_, RankExited) and seen <= time
        }
        return len(self.ranks.keys() - gone)


@dataclass(slots=True)
class _Read:
    """An attempt as it was read, and from what; `whole` says that nothing was cut off."""

    version: int
    adopted: list[Stamped]
    attempt: Attempt
    first: int
    last: int
    last_step: int
    whole: bool = False

    def is_known(self, earliest: int | None, steps_until: int, as_of: int) -> bool:
        """Whether nothing in it lies outside of what counts at a time."""
        credible = earliest is None or earliest <= self.first
        return credible and self.last <= as_of and self.last_step <= steps_until


class AttemptReader:
    """Reads the attempts of a run; one that heard nothing new is not read again."""

    def __init__(self) -> None:
        self._read: dict[str, _Read] = {}

    def read(self, intake: Intake, steps_until: int, as_of: int) -> list[Attempt]:
        """Return the attempts in the order in which they began.

        What lies after `as_of` is left out, steps are cut at `steps_until`.
        """
        found: dict[str, Attempt] = {}
        earliest = intake.earliest(as_of)
        for identity, bucket in intake.attempts.items():
            known = self._read.get(identity)
            if (
                known is None
                or known.version != bucket.version
                or not (known.whole and known.is_known(earliest, steps_until, as_of))
            ):
                adopted = [] if known is None else known.adopted
                known = self._again(intake, identity, adopted, steps_until, as_of)
            if known is not None:
                found[identity] = known.attempt
        attempts = sorted(found.values(), key=lambda attempt: (attempt.begin, attempt.identity))
        for identity, events in _adopted(intake, attempts, as_of).items():
            if self._read[identity].adopted != events:
                # begin and ranks do not depend on what an attempt adopts
                known = self._again(intake, identity, events, steps_until, as_of)
                if known is not None:
                    found[identity] = known.attempt
        attempts = [found[attempt.identity] for attempt in attempts]
        for number, attempt in enumerate(attempts, start=1):
            attempt.number = number
        return attempts

    def _again(
        self, intake: Intake, identity: str, adopted: list[Stamped], steps_until: int, as_of: int
    ) -> _Read | None:
        bucket = intake.attempts[identity]
        events = intake.sane(bucket.in_order(), as_of)
        attempt = _read(identity, events, adopted, steps_until, as_of)
        if attempt is None:
            self._read.pop(identity, None)
            return None
        every = bucket.in_order()
        done = (e.time for e in reversed(every) if isinstance(e.envelope.event, STEPS))
        first, last, last_step = every[0].time, every[-1].time, next(done, 0)
        known = _Read(bucket.version, adopted, attempt, first, last, last_step)
        known.whole = known.is_known(intake.earliest(as_of), steps_until, as_of)
        self._read[identity] = known
        return known


def _adopted(
    intake: Intake, attempts: Sequence[Attempt], as_of: int
) -> Mapping[str, list[Stamped]]:
    """Give events without an attempt to the newest one that had begun by then.

    An event that names a rank falls to an attempt that has it. Every attempt is answered for.
    """
    found: dict[str, list[Stamped]] = {attempt.identity: [] for attempt in attempts}
    begins = [attempt.begin for attempt in attempts]
    for event in intake.sane(intake.floating.in_order(), as_of):
        if event.time > as_of:
            break
        rank = event.envelope.rank
        for attempt in reversed(attempts[: bisect_right(begins, event.time)]):
            if rank is None or rank in attempt.ranks:
                found[attempt.identity].append(event)
                break
    return found


def _read(
    identity: str,
    own: Sequence[Stamped],
    adopted: Sequence[Stamped],
    steps_until: int,
    as_of: int,
) -> Attempt | None:
    """Read an attempt from its own events and those it adopted; None if no rank shows in it."""
    attempt = Attempt(identity)
    began: dict[int, list[tuple[int, str]]] = defaultdict(list)
    signs: list[int] = []
    layered = False
    for event in own:
        rows = rows_of(event, steps_until)
        if event.time > as_of and rows is None:
            continue
        time, rank, record = event.time, event.envelope.rank, event.envelope.event
        if rank is None:
            _about(attempt, time, None, record)
            continue
        log = attempt.ranks.get(rank)
        if log is None:
            log = attempt.ranks[rank] = RankLog(rank)
        log.node = log.node or event.envelope.node
        if rows is not None:
            log.rows.append(rows)
            time = int(rows.end[-1])
        elif isinstance(record, PhaseEnded):
            begin = time - record.duration
            log.phases.append(Phase(begin, time, record.phase, record.error is not None))
            signs.append(begin)
        elif isinstance(record, PhaseBegan):
            began[rank].append((time, record.phase))
        elif isinstance(record, AttemptStarted):
            log.started = time if log.started is None else min(log.started, time)
            if record.world_size is not None:
                attempt.world_size = record.world_size
            if not layered:
                attempt.layer, layered = record.layer, True
        else:
            _of_rank(attempt, log, time, record)
        signs.append(time)
        log.last_evidence = max(log.last_evidence, time)
    if not attempt.ranks:
        return None
    for event in adopted:
        rank = event.envelope.rank
        _about(attempt, event.time, rank, event.envelope.event)
        if rank in attempt.ranks:
            log = attempt.ranks[rank]
            log.last_evidence = max(log.last_evidence, event.time)
    signs += [
        min(log.rows, key=lambda rows: (int(rows.start[0]), rows.reach)).reach
        for log in attempt.ranks.values()
        if log.rows
    ]
    started = [log.started for log in attempt.ranks.values() if log.started is not None]
    attempt.begin = min(started or signs)
    attempt.last_evidence = max([*signs, *(event.time for event in adopted)])
    for rank, log in attempt.ranks.items():
        _settle_phases(log, began[rank], attempt.begin)
    _find_end(attempt)
    attempt.openings = _openings(attempt)
    return attempt


def _about(attempt: Attempt, time: int, rank: int | None, record: object) -> None:
    """Note what tells of the attempt as a whole, or of a rank's end."""
    if isinstance(record, Fault):
        attempt.faults.append((time, rank, record))
    elif isinstance(record, StopAnnounced):
        attempt.stops.append((time, record))
    elif isinstance(record, CheckpointLoadFailed):
        attempt.load_failures.append(time)
    elif isinstance(record, RestartPhase):
        attempt.said.append((time, record))
    elif isinstance(record, AttemptEnded | RankExited) and rank in attempt.ranks:
        attempt.exits.append((time, rank, record))
        log = attempt.ranks[rank]
        log.ended = time if log.ended is None else max(log.ended, time)


def _of_rank(attempt: Attempt, log: RankLog, time: int, record: object) -> None:
    if isinstance(record, Resumed):
        log.resumed.append((time, record))
    elif isinstance(record, CheckpointScheduled):
        if record.blocking:
            log.saves.append((time - record.blocking, time))
    elif isinstance(record, Heartbeat):
        log.heartbeat = (time, record)
    else:
        _about(attempt, time, log.rank, record)


def _settle_phases(log: RankLog, began: Sequence[tuple[int, str]], begin: int) -> None:
    """Join begins and ends; of phases that begin together the one that ended first is inner."""
    closed = {(phase.start, phase.name) for phase in log.phases}
    log.phases += [Phase(time, None, name) for time, name in began if (time, name) not in closed]
    for phase in log.phases:
        phase.start = max(phase.start, begin)
    log.phases.sort(key=lambda phase: phase.start)
    log.saves = [(max(start, begin), end) for start, end in log.saves]


def _find_end(attempt: Attempt) -> None:
    """Find the attempt's end (rule 8): the last exit, for ranks without one their last record."""
    logs = attempt.ranks.values()
    attempt.ended = all(log.ended is not None for log in logs)
    ends = [attempt.begin]
    for log in logs:
        ends.append(log.last_evidence if log.ended is None else log.ended)
        ends += [int(rows.end[-1]) for rows in log.rows]
        ends += [phase.end for phase in log.phases if phase.is_closed and phase.end is not None]
    attempt.end = max(ends)


def _openings(attempt: Attempt) -> list[Opening]:
    """Return the states trained from: a `resumed` of a rank that did steps opens another."""
    found = [Opening(attempt.begin)]
    resumed = [
        (time, rank, record) for rank, log in attempt.ranks.items() for time, record in log.resumed
    ]
    for time, rank, record in sorted(resumed, key=lambda item: item[:2]):
        if _stepped(attempt.ranks[rank], found[-1].opened, time):
            found.append(Opening(time))
        newest = found[-1]
        newest.resumed, newest.completed, newest.checkpoint = (
            time,
            record.completed,
            record.checkpoint,
        )
    return found


def _stepped(log: RankLog, since: int, until: int) -> bool:
    """Whether a rank began a step that it completed, between two times."""
    for rows in log.rows:
        starts = rows.start if rows.detail else rows.start[:1]
        low, high = np.searchsorted(starts, [since, until])
        if low < high:
            return True
    return False


def launcher_states(facts: Iterable[Stamped], as_of: int) -> list[tuple[int, str, RestartPhase]]:
    """Return time, producer and words of launchers and wrappers about restarts, in order."""
    return [
        (fact.time, fact.envelope.producer, fact.envelope.event)
        for fact in facts
        if isinstance(fact.envelope.event, RestartPhase) and fact.time <= as_of
    ]
