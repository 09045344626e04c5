"""What the events of one attempt say, read bit by bit, and when it began and ended (rule 8)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from headway.ledger.intake import Stamped
from headway.ledger.longest import Longest, LongestPhases
from headway.ledger.steps import StepRows, StepRun, append, rows_of


class Reading:
    """What the events of one attempt said, as far as they were read."""

    def __init__(self, identity: str) -> None:
        self._attempt = Attempt(identity)
        self._began: dict[int, list[tuple[int, str]]] = defaultdict(list)
        self._longest = LongestPhases()
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
            self._longest.steps(rank, rows, first=not log.rows)
            append(log.rows, rows)
            time = int(rows.end[-1])
        elif isinstance(record, PhaseEnded):
            begin = time - record.duration
            log.phases.append(Phase(begin, time, record.phase, record.error is not None))
            if record.error is None:
                self._longest.phase(record.phase, rank, begin, time)
            self._sign(begin)
        elif isinstance(record, PhaseBegan):
            self._began[rank].append((time, record.phase))
        elif isinstance(record, AttemptStarted):
            log.started = time if log.started is None else min(log.started, time)
            self._longest.began(rank, time)
            if record.world_size is not None:
                attempt.world_size = record.world_size
            if not self._layered:
                attempt.layer, self._layered = record.layer, True
        else:
            if isinstance(record, CheckpointScheduled) and record.blocking:
                self._longest.phase("checkpoint_save", rank, time - record.blocking, time)
            elif isinstance(record, RestartPhase):
                self._regroup(rank, time, record)
            _of_rank(attempt, log, time, record)
        self._sign(time)
        log.last_evidence = max(log.last_evidence, time)

    def _regroup(self, rank: int, time: int, record: RestartPhase) -> None:
        if (record.layer, record.phase) == ("in_process", "rendezvous"):
            self._longest.regrouping(rank, time, ended=record.state == "ended")

    def _sign(self, time: int) -> None:
        self._first = time if self._first is None else min(self._first, time)
        self._last = time if self._last is None else max(self._last, time)

    def result(self, adopted: Sequence[Stamped]) -> Attempt | None:
        """Return the attempt with what it adopted; None if no rank shows in it."""
        if not self._attempt.ranks or self._first is None or self._last is None:
            return None
        attempt = _copy(self._attempt, self._longest.found)
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


def _copy(attempt: Attempt, longest: Mapping[str, Longest]) -> Attempt:
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
        longest=dict(longest),
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
