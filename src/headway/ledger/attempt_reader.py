"""Reads the attempts of a run from its events; one that only goes on is not read again."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

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
from headway.ledger.attempts import Attempt, Opening, Phase, RankLog
from headway.ledger.intake import Bucket, Intake, Stamped
from headway.ledger.steps import STEPS, StepRows, StepRun, append, rows_of


@dataclass(slots=True)
class _Read:
    """An attempt as it was read, and from what; `whole` says that nothing was cut off."""

    bucket: Bucket
    version: int
    num_sorts: int
    adopted: list[Stamped]
    reading: "_Reading"
    attempt: Attempt
    first: int
    last: int
    last_step: int
    whole: bool = False

    def is_known(self, earliest: int | None, steps_until: int, as_of: int) -> bool:
        """Whether nothing in it lies outside of what counts at a time."""
        credible = earliest is None or earliest <= self.first
        return credible and self.last <= as_of and self.last_step <= steps_until

    def goes_on(self, bucket: Bucket, earliest: int | None, steps_until: int, as_of: int) -> bool:
        """Whether what a bucket holds more, if anything, only follows what was read."""
        same = bucket is self.bucket and bucket.num_sorts == self.num_sorts
        return same and self.whole and self.is_known(earliest, steps_until, as_of)


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
                or not known.goes_on(bucket, earliest, steps_until, as_of)
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
        every = bucket.in_order()
        earliest = intake.earliest(as_of)
        known = self._read.get(identity)
        reading = _Reading(identity)
        if known is not None and known.goes_on(bucket, earliest, steps_until, as_of):
            reading = known.reading
        reading.take(intake.sane(every, as_of), steps_until, as_of)
        attempt = reading.result(adopted)
        if attempt is None:
            self._read.pop(identity, None)
            return None
        done = (e.time for e in reversed(every) if isinstance(e.envelope.event, STEPS))
        read = _Read(
            bucket=bucket,
            version=bucket.version,
            num_sorts=bucket.num_sorts,
            adopted=adopted,
            reading=reading,
            attempt=attempt,
            first=every[0].time,
            last=every[-1].time,
            last_step=next(done, 0),
        )
        read.whole = read.is_known(earliest, steps_until, as_of)
        self._read[identity] = read
        return read


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


class _Reading:
    """What the events of one attempt said, as far as they were read."""

    def __init__(self, identity: str) -> None:
        self._attempt = Attempt(identity)
        self._began: dict[int, list[tuple[int, str]]] = defaultdict(list)
        self._first: int | None = None
        self._last: int | None = None
        self._layered = False
        self._position = 0

    def take(self, own: Sequence[Stamped], steps_until: int, as_of: int) -> None:
        """Read the attempt's events after those that were read before."""
        run = StepRun()
        known = min(steps_until, as_of)
        for event in islice(own, self._position, None):
            rank = event.envelope.rank
            if rank is not None and event.time <= known and run.takes(event):
                continue
            self._take_run(run, steps_until, as_of)
            run = StepRun()
            if rank is None or event.time > known or not run.takes(event):
                self._take(event, rows_of(event, steps_until), as_of)
        self._take_run(run, steps_until, as_of)
        self._position = len(own)

    def _take_run(self, run: StepRun, steps_until: int, as_of: int) -> None:
        rows = run.rows(steps_until)
        if rows is not None:
            self._take(run.events[-1], rows, as_of)
            return
        for event in run.events:
            self._take(event, rows_of(event, steps_until), as_of)

    def _take(self, event: Stamped, rows: StepRows | None, as_of: int) -> None:
        if event.time > as_of and rows is None:
            return
        attempt = self._attempt
        time, rank, record = event.time, event.envelope.rank, event.envelope.event
        if rank is None:
            _about(attempt, time, None, record)
            return
        log = attempt.ranks.get(rank)
        if log is None:
            log = attempt.ranks[rank] = RankLog(rank)
        log.node = log.node or event.envelope.node
        if rows is not None:
            append(log.rows, rows)
            time = int(rows.end[-1])
        elif isinstance(record, PhaseEnded):
            begin = time - record.duration
            log.phases.append(Phase(begin, time, record.phase, record.error is not None))
            self._sign(begin)
        elif isinstance(record, PhaseBegan):
            self._began[rank].append((time, record.phase))
        elif isinstance(record, AttemptStarted):
            log.started = time if log.started is None else min(log.started, time)
            if record.world_size is not None:
                attempt.world_size = record.world_size
            if not self._layered:
                attempt.layer, self._layered = record.layer, True
        else:
            _of_rank(attempt, log, time, record)
        self._sign(time)
        log.last_evidence = max(log.last_evidence, time)

    def _sign(self, time: int) -> None:
        self._first = time if self._first is None else min(self._first, time)
        self._last = time if self._last is None else max(self._last, time)

    def result(self, adopted: Sequence[Stamped]) -> Attempt | None:
        """Return the attempt with what it adopted; None if no rank shows in it."""
        if not self._attempt.ranks or self._first is None or self._last is None:
            return None
        attempt = _copy(self._attempt)
        for event in adopted:
            rank = event.envelope.rank
            _about(attempt, event.time, rank, event.envelope.event)
            if rank in attempt.ranks:
                log = attempt.ranks[rank]
                log.last_evidence = max(log.last_evidence, event.time)
        signs = [self._first, self._last]
        signs += [
            min(log.rows, key=lambda rows: (int(rows.start[0]), rows.reach)).reach
            for log in attempt.ranks.values()
            if log.rows
        ]
        started = [log.started for log in attempt.ranks.values() if log.started is not None]
        attempt.begin = min(started or signs)
        attempt.last_evidence = max([*signs, *(event.time for event in adopted)])
        for rank, log in attempt.ranks.items():
            _settle_phases(log, self._began.get(rank, ()), attempt.begin)
        _find_end(attempt)
        attempt.openings = _openings(attempt)
        return attempt


def _copy(attempt: Attempt) -> Attempt:
    """Return an attempt that may be completed while the reading of it goes on."""
    return replace(
        attempt,
        ranks={
            rank: replace(
                log,
                rows=list(log.rows),
                phases=[replace(phase) for phase in log.phases],
                resumed=list(log.resumed),
                saves=list(log.saves),
            )
            for rank, log in attempt.ranks.items()
        },
        faults=list(attempt.faults),
        stops=list(attempt.stops),
        exits=list(attempt.exits),
        said=list(attempt.said),
        load_failures=list(attempt.load_failures),
    )


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
