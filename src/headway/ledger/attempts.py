"""Which events belong to which attempt, and when each attempt began and ended (rules 5, 8, 9).

An attempt is bounded by its own identity, never inferred from step numbers. Events without an
identity fall to the newest attempt that had begun by then.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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
    Steps,
    StepsSummary,
    StopAnnounced,
)
from headway.ledger.intake import Intake, Stamped
from headway.ledger.steps import StepRows, rows_of


@dataclass(slots=True)
class Phase:
    """A stretch of one rank; open while `end` is None. `failed` ended by an exception."""

    start: int
    end: int | None
    name: str
    failed: bool = False


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
class Attempt:
    """All events of one attempt; times in ns."""

    identity: str
    number: int = 0
    layer: str = "scheduler"
    world_size: int | None = None
    begin: int = 0
    end: int = 0
    ended: bool = False
    ranks: dict[int, RankLog] = field(default_factory=dict)
    faults: list[tuple[int, int | None, Fault]] = field(default_factory=list)
    stops: list[tuple[int, StopAnnounced]] = field(default_factory=list)
    exits: list[tuple[int, int, RankExited | AttemptEnded]] = field(default_factory=list)
    load_failures: list[int] = field(default_factory=list)

    def survivors(self, time: int) -> int:
        """Return how many of its processes were not seen to exit by a time in ns."""
        gone = {
            rank
            for seen, rank, exit_ in self.exits
            if isinstance(exit_, RankExited) and seen <= time
        }
        return len(self.ranks.keys() - gone)


class AttemptReader:
    """Reads the attempts of a run; one that heard nothing new is not read again."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[int, int, Attempt | None]] = {}

    def read(self, intake: Intake, steps_until: int, as_of: int) -> list[Attempt]:
        """Return the attempts in the order in which they began.

        What lies after `as_of` is left out, steps are cut at `steps_until`.
        """
        floating = _settled(intake, as_of)
        names = dict.fromkeys([*intake.attempts, *floating])
        attempts = [
            attempt
            for name in names
            if (attempt := self._one(name, intake, floating, steps_until, as_of)) is not None
        ]
        attempts.sort(key=lambda attempt: (attempt.begin, attempt.identity))
        for number, attempt in enumerate(attempts, start=1):
            attempt.number = number
        return attempts

    def _one(
        self,
        identity: str,
        intake: Intake,
        floating: Mapping[str, list[Stamped]],
        steps_until: int,
        as_of: int,
    ) -> Attempt | None:
        bucket = intake.attempts.get(identity)
        loose = floating.get(identity, [])
        version = 0 if bucket is None else bucket.version
        known = self._read.get(identity)
        if known is not None and known[:2] == (version, len(loose)):
            return known[2]
        events = intake.sane([] if bucket is None else bucket.in_order(), as_of)
        if loose:
            events = sorted([*events, *loose], key=lambda event: event.time)
        attempt = _read(identity, events, steps_until, as_of) if events else None
        if events and events[-1].time <= min(steps_until, as_of):
            self._read[identity] = version, len(loose), attempt
        else:
            self._read.pop(identity, None)
        return attempt


def _settled(intake: Intake, as_of: int) -> Mapping[str, list[Stamped]]:
    """Give events without an attempt to the newest attempt that had begun by then."""
    found: dict[str, list[Stamped]] = defaultdict(list)
    events = intake.sane(intake.floating.in_order(), as_of)
    if not events:
        return found
    begins = sorted(
        (bucket.in_order()[0].time, identity) for identity, bucket in intake.attempts.items()
    )
    times = [time for time, _ in begins]
    for event in events:
        if begins:
            position = max(bisect_right(times, event.time) - 1, 0)
            found[begins[position][1]].append(event)
        else:
            found[event.envelope.producer].append(event)
    return found


def _read(identity: str, events: Sequence[Stamped], steps_until: int, as_of: int) -> Attempt | None:
    attempt = Attempt(identity)
    began: dict[int, list[tuple[int, str]]] = defaultdict(list)
    layered = False
    for event in events:
        rows = rows_of(event, steps_until)
        if rows is None and (
            event.time > as_of or isinstance(event.envelope.event, Steps | StepsSummary)
        ):
            continue
        rank = event.envelope.rank if event.envelope.rank is not None else 0
        log = attempt.ranks.get(rank)
        if log is None:
            log = attempt.ranks[rank] = RankLog(rank)
        log.node = log.node or event.envelope.node
        time, record = event.time, event.envelope.event
        if rows is not None:
            log.rows.append(rows)
            time = int(rows.end[-1])
        elif isinstance(record, AttemptStarted):
            log.started = time if log.started is None else min(log.started, time)
            if record.world_size is not None:
                attempt.world_size = record.world_size
            if not layered:
                attempt.layer, layered = record.layer, True
        elif isinstance(record, PhaseBegan):
            began[rank].append((time, record.phase))
        elif isinstance(record, PhaseEnded):
            log.phases.append(
                Phase(time - record.duration, time, record.phase, record.error is not None)
            )
        elif isinstance(record, Resumed):
            log.resumed.append((time, record))
        elif isinstance(record, CheckpointScheduled):
            if record.blocking:
                log.saves.append((time - record.blocking, time))
        elif isinstance(record, Fault):
            attempt.faults.append((time, event.envelope.rank, record))
        elif isinstance(record, StopAnnounced):
            attempt.stops.append((time, record))
        elif isinstance(record, CheckpointLoadFailed):
            attempt.load_failures.append(time)
        elif isinstance(record, Heartbeat):
            log.heartbeat = (time, record)
        elif isinstance(record, AttemptEnded | RankExited):
            attempt.exits.append((time, rank, record))
            log.ended = time
        log.last_evidence = max(log.last_evidence, time)
    if not attempt.ranks:
        return None
    for rank, opened in began.items():
        _open_phases(attempt.ranks[rank], opened)
    _bound_by_evidence(attempt, events)
    return attempt


def _open_phases(log: RankLog, began: list[tuple[int, str]]) -> None:
    closed = {(phase.start, phase.name) for phase in log.phases}
    log.phases += [Phase(time, None, name) for time, name in began if (time, name) not in closed]
    log.phases.sort(key=lambda phase: phase.start)


def _bound_by_evidence(attempt: Attempt, events: Sequence[Stamped]) -> None:
    """Find begin and end (rule 8): first process start, last exit, else the last evidence."""
    logs = list(attempt.ranks.values())
    started = [log.started for log in logs if log.started is not None]
    signs = [rows.begin for log in logs for rows in log.rows]
    signs += [phase.start for log in logs for phase in log.phases]
    signs += [event.time for event in events[:1] if not signs or event.time < min(signs)]
    attempt.begin = min(started or signs)
    attempt.ended = all(log.ended is not None for log in logs)
    ends = [attempt.begin]
    for log in logs:
        ends.append(log.last_evidence if log.ended is None else log.ended)
        ends += [int(rows.end[-1]) for rows in log.rows]
        for phase in log.phases:
            phase.start = max(phase.start, attempt.begin)
            ends.append(phase.start if phase.end is None else phase.end)
    attempt.end = max(ends)


def launcher_states(facts: Iterable[Stamped], as_of: int) -> list[tuple[int, str, RestartPhase]]:
    """Return time, producer and words of launchers and wrappers about restarts, in order."""
    return [
        (fact.time, fact.envelope.producer, fact.envelope.event)
        for fact in facts
        if isinstance(fact.envelope.event, RestartPhase) and fact.time <= as_of
    ]
