"""Attempts with their ranks' phases and the group's steps (rules 8, 11, 14, 15, 18 and 19)."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headway.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Fault,
    PhaseBegan,
    PhaseEnded,
    RankExited,
    RestartPhase,
    Resumed,
    StopAnnounced,
)
from oracle.evidence import Done, Evidence, Fact
from oracle.scenario import SECOND

MINUTE = 60 * SECOND
BEFORE_STEPS = ("startup", "import", "rendezvous", "model", "warmup")
"""Phases that belong to a start and mean nothing once steps are done."""


@dataclass
class Phase:
    """One stretch of one rank; an open one has no end."""

    rank: int
    name: str
    begin: int
    end: int | None
    failed: bool = False


@dataclass
class RankStep:
    """One completed step of one rank; `span` is the whole record that told of it."""

    rank: int
    step: int
    start: int
    end: int
    wait: int
    span: tuple[int, int]
    coarse: bool


@dataclass
class GroupStep:
    """One step of the group, from the previous group end to its own."""

    attempt: int
    segment: int
    step: int
    begin: int
    end: int
    critical: int = -1
    start: int = 0
    own: int = 0
    usual: int | None = None
    slack: int = SECOND


@dataclass
class Segment:
    """Stretch of an attempt that trains on from one restored state."""

    attempt: int
    number: int
    opened: int
    completed: int | None = None
    checkpoint: str | None = None
    resumed: int | None = None
    steps: list[int] = field(default_factory=list)

    @property
    def counts(self) -> bool:
        """Whether it says anything about the state of the run."""
        return self.resumed is not None or bool(self.steps)


@dataclass
class Attempt:
    """One try of the group to train."""

    name: str
    facts: list[Fact]
    done: list[Done]
    number: int = 0
    layer: str | None = None
    begin: int = 0
    end: int = 0
    exits: dict[int, int] = field(default_factory=dict)
    ranks: set[int] = field(default_factory=set)
    phases: list[Phase] = field(default_factory=list)
    waits: list[Phase] = field(default_factory=list)
    open: list[Phase] = field(default_factory=list)
    steps: dict[tuple[int, int, int], RankStep] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    group: list[GroupStep] = field(default_factory=list)
    periods: list[int] = field(default_factory=list)
    long: list[Done] = field(default_factory=list)

    @property
    def exited(self) -> bool:
        """Whether every rank's exit was recorded."""
        return bool(self.ranks) and self.ranks <= set(self.exits)

    def of(self, *kinds: type) -> list[Fact]:
        """Return its facts of some kinds."""
        return [fact for fact in self.facts if isinstance(fact.event, kinds)]

    def leaf(self, rank: int, time: int, names_off: Iterable[str] = ()) -> Phase | RankStep | None:
        """Return the innermost thing that a rank was in (rule 14).

        A phase that encloses a whole step is outside it; one that only crosses it is inside.
        """
        steps = [
            step
            for (_, _, of), step in self.steps.items()
            if of == rank and step.start <= time < step.end
        ]
        phases = [
            phase
            for phase in self.phases + self.waits
            if phase.rank == rank
            and phase.end is not None
            and phase.begin <= time < phase.end
            and phase.name not in names_off
            and not any(encloses(phase, step) for step in steps)
        ]
        if phases:
            return max(phases, key=lambda phase: (phase.begin, -(phase.end or 0)))
        return steps[0] if steps else None

    def in_vain(self, phase: Phase) -> bool:
        """Say whether a load failed after a load's begin and before the next step was done."""
        if phase.name != "checkpoint_load":
            return False
        failures = [fact.time for fact in self.of(CheckpointLoadFailed)]
        failures += [p.end or 0 for p in self.phases if p.name == phase.name and p.failed]
        until = min((g.end for g in self.group if g.end > phase.begin), default=None)
        return any(phase.begin < t and (until is None or t <= until) for t in failures)

    def edges(self, begin: int, end: int) -> list[int]:
        """Return where a stretch of time must be cut so that no rank's leaf changes within."""
        times = {begin, end}
        for phase in self.phases + self.waits + self.open:
            times |= {phase.begin, phase.begin if phase.end is None else phase.end}
        for step in self.steps.values():
            times |= {step.start, step.end}
        return sorted(time for time in times if begin <= time <= end)


def encloses(phase: Phase, step: RankStep) -> bool:
    """Say whether a phase began before and ended after a whole record of steps."""
    begin, end = step.span
    if phase.end is None or (phase.begin, phase.end) == (begin, end):
        return False
    return phase.begin <= begin and end <= phase.end


def pieces(edges: Sequence[int]) -> list[tuple[int, int]]:
    """Return the stretches between neighbouring edges."""
    return [(a, b) for a, b in itertools.pairwise(edges) if a < b]


def lower_median(values: Sequence[int]) -> int:
    """Return the middle value, the lower one of two."""
    return sorted(values)[(len(values) - 1) // 2]


def attempts(evidence: Evidence) -> list[Attempt]:
    """Return the attempts in the order in which they began, all but their ends."""
    names = {fact.attempt for fact in evidence.facts if fact.rank is not None}
    names |= {step.attempt for step in evidence.done}
    found = []
    for name in names - {None}:
        assert name is not None
        attempt = Attempt(
            name,
            [fact for fact in evidence.facts if fact.attempt == name],
            [step for step in evidence.done if step.attempt == name],
        )
        _lifetime(attempt)
        found.append(attempt)
    found.sort(key=lambda attempt: (attempt.begin, attempt.name))
    for number, attempt in enumerate(found):
        attempt.number = number
    _adopt(evidence, found)
    for attempt in found:
        _exits(attempt)
        _build(attempt, found)
        while long := _long_summaries(attempt, found):
            attempt.long += long
            _build(attempt, found)
    return found


def _build(attempt: Attempt, found: Sequence[Attempt]) -> None:
    attempt.phases, attempt.waits, attempt.open, attempt.group = [], [], [], []
    _phases(attempt)
    _segments(attempt)
    _rank_steps(attempt)
    _close_phases(attempt)
    _save_without_phase(attempt)
    _waits(attempt)
    _group(attempt)
    for number, g in enumerate(attempt.group):
        g.usual = usual(attempt, found, number) if number else None
        g.slack = slack(attempt, found, number)


def _long_summaries(attempt: Attempt, found: Sequence[Attempt]) -> list[Done]:
    """Return summaries whose longest step is over the limit and not yet treated as one step."""
    long = []
    for done in attempt.done:
        if done in attempt.long or done.longest is None or done.longest_step is None:
            continue
        numbers = [n for n, g in enumerate(attempt.group) if g.step == done.longest_step]
        firsts = [n for n, g in enumerate(attempt.group) if g.step == done.first]
        if not numbers or not firsts or numbers == [0] or done.longest > done.end - done.start:
            continue
        most = limit(usual(attempt, found, firsts[-1]))
        if most is not None and done.longest > most:
            long.append(done)
    return long


def _lifetime(attempt: Attempt) -> None:
    """Begin at the first process start, else at the first sign of life (rule 8)."""
    mine = [fact for fact in attempt.facts if fact.rank is not None]
    attempt.ranks = {fact.rank for fact in mine if fact.rank is not None}
    attempt.ranks |= {step.rank for step in attempt.done}
    started = [fact for fact in mine if isinstance(fact.event, AttemptStarted)]
    if started:
        attempt.begin = min(fact.time for fact in started)
        event = min(started, key=lambda fact: fact.order).event
        assert isinstance(event, AttemptStarted)
        attempt.layer = event.layer
        return
    signs = [fact.time for fact in mine]
    for rank in attempt.ranks:  # the wait of a later step is clipped to the gap before it
        reaches = [
            (step.start, step.start - step.wait if step.detail else step.start)
            for step in attempt.done
            if step.rank == rank
        ]
        if reaches:
            signs.append(min(reaches)[1])
    for fact in mine:
        if isinstance(fact.event, PhaseEnded):
            signs.append(fact.time - fact.event.duration)
    attempt.begin = min(signs)


def _adopt(evidence: Evidence, found: Sequence[Attempt]) -> None:
    """Give exits, faults, stops and teardown without an attempt to the newest one by then."""
    for fact in evidence.facts:
        if fact.attempt is not None:
            continue
        if not isinstance(fact.event, RankExited | Fault | StopAnnounced | RestartPhase):
            continue
        fits = [
            attempt
            for attempt in found
            if attempt.begin <= fact.time and (fact.rank is None or fact.rank in attempt.ranks)
        ]
        if fits:
            fits[-1].facts.append(fact)
            fits[-1].facts.sort(key=lambda fact: fact.order)


def _exits(attempt: Attempt) -> None:
    for fact in attempt.of(AttemptEnded, RankExited):
        if fact.rank is not None:
            attempt.exits[fact.rank] = max(fact.time, attempt.exits.get(fact.rank, fact.time))


def last_evidence(attempt: Attempt) -> int:
    """Return the last exit, or where a rank has none its last record (rule 8)."""
    times = [attempt.begin, *attempt.exits.values(), *(step.end for step in attempt.done)]
    for fact in attempt.facts:
        if fact.rank is not None and fact.rank not in attempt.exits:
            times.append(fact.time)
    times += [phase.end for phase in attempt.phases if phase.end is not None]
    return max(times)


def _phases(attempt: Attempt) -> None:
    ended = attempt.of(PhaseEnded)
    closed = set()
    for fact in ended:
        event = fact.event
        assert isinstance(event, PhaseEnded)
        begin = fact.time - event.duration
        closed.add((fact.rank, event.phase, begin))
        if fact.rank is None:
            continue
        phase = Phase(
            fact.rank, event.phase, max(begin, attempt.begin), fact.time, event.error is not None
        )
        if event.phase == "step" or (phase.failed and event.phase != "checkpoint_load"):
            if phase.failed:
                attempt.open.append(phase)
        else:
            attempt.phases.append(phase)
    for fact in attempt.of(PhaseBegan):
        event = fact.event
        assert isinstance(event, PhaseBegan)
        if fact.rank is not None and (fact.rank, event.phase, fact.time) not in closed:
            attempt.open.append(Phase(fact.rank, event.phase, max(fact.time, attempt.begin), None))


def _segments(attempt: Attempt) -> None:
    """A second `resumed` of a rank that has done steps since the first opens a new segment."""
    current = Segment(attempt.number, 0, attempt.begin)
    attempt.segments = [current]
    for fact in attempt.of(Resumed):
        event = fact.event
        assert isinstance(event, Resumed)
        stepped = any(
            step.rank == fact.rank and current.opened <= step.start < fact.time
            for step in attempt.done
        )
        if stepped:
            current = Segment(attempt.number, len(attempt.segments), fact.time)
            attempt.segments.append(current)
        current.completed = event.completed
        current.checkpoint = event.checkpoint
        current.resumed = fact.time


def _rank_steps(attempt: Attempt) -> None:
    """Expand every record to single steps; per rank and step the finest record wins (rule 3)."""
    chosen: dict[tuple[int, int, int], tuple[tuple[bool, int, int], RankStep]] = {}
    for done in attempt.done:
        segment = max((s.number for s in attempt.segments if s.opened <= done.start), default=0)
        for number, (start, end) in enumerate(_expand(attempt, done)):
            share = done.wait * (number + 1) // done.total - done.wait * number // done.total
            step = RankStep(
                done.rank,
                done.first + number,
                start,
                end,
                share,
                (done.start, done.end),
                not done.detail,
            )
            key = (segment, step.step, done.rank)
            fineness = (done.detail, -done.count, done.end)
            if key not in chosen or fineness > chosen[key][0]:
                chosen[key] = (fineness, step)
    attempt.steps = {key: step for key, (_, step) in sorted(chosen.items())}


def _expand(attempt: Attempt, done: Done) -> list[tuple[int, int]]:
    """Return start and end of each step of a record; a summary spreads them evenly."""
    duration = done.whole - done.start
    if done in attempt.long:
        assert done.longest is not None
        assert done.longest_step is not None
        before, rest = done.longest_step - done.first, duration - done.longest
        edges = [done.start + rest * n // max(1, done.count - 1) for n in range(before + 1)]
        edges += [
            done.start + done.longest + rest * n // max(1, done.count - 1)
            for n in range(before, done.count)
        ]
        return list(itertools.pairwise(edges))
    edges = [done.start + duration * n // done.total for n in range(done.count + 1)]
    return list(itertools.pairwise(edges))


def _close_phases(attempt: Attempt) -> None:
    """Close phases that were left open or failed before their rank went on (rule 14)."""
    still = []
    for phase in attempt.open:
        steps = [step for (_, _, rank), step in attempt.steps.items() if rank == phase.rank]
        if phase.end is not None:
            ends = [step.end for step in steps]
            ends += [p.end or 0 for p in attempt.phases if p.rank == phase.rank]
            if max(ends, default=0) <= phase.end:
                still.append(phase)
            elif phase.name != "step":
                attempt.phases.append(phase)
            continue
        later = [step for step in steps if step.end > phase.begin]
        if not later:
            still.append(phase)
            continue
        step = min(later, key=lambda step: step.end)
        end = step.end if step.start <= phase.begin else step.start
        if phase.name != "step" and end > phase.begin:
            attempt.phases.append(Phase(phase.rank, phase.name, phase.begin, end))
    attempt.open = still


def _save_without_phase(attempt: Attempt) -> None:
    """Where no save phase was recorded, the checkpoint's blocking time is one (rule 18)."""
    saves = [p for p in attempt.phases + attempt.open if p.name == "checkpoint_save"]
    for fact in attempt.of(CheckpointScheduled):
        event = fact.event
        assert isinstance(event, CheckpointScheduled)
        if not event.blocking or fact.rank is None:
            continue
        begin, end = max(attempt.begin, fact.time - event.blocking), fact.time
        recorded = any(
            p.rank == fact.rank and p.begin < end and (p.end is None or p.end > begin)
            for p in saves
        )
        if begin < end and not recorded:
            attempt.phases.append(Phase(fact.rank, "checkpoint_save", begin, end))


def _waits(attempt: Attempt) -> None:
    """Place the packed data waits (rule 14); those of a summary are spread over its steps."""
    for step in attempt.steps.values():
        if not step.wait:
            continue
        phases = [
            p
            for p in attempt.phases
            if p.rank == step.rank and p.begin < (p.end or 0) and not encloses(p, step)
        ]
        if step.coarse:
            left = step.wait
            taken = [(p.begin, p.end or 0) for p in phases]
            for (_, _, rank), other in attempt.steps.items():
                if rank == step.rank and other is not step:
                    taken.append((other.start, other.end))
            edges = {step.start, step.end, *itertools.chain(*taken)}
            for begin, end in pieces(sorted(e for e in edges if step.start <= e <= step.end)):
                if left and not any(a <= begin < b for a, b in taken):
                    end = min(end, begin + left)
                    left -= end - begin
                    attempt.waits.append(Phase(step.rank, "data_wait", begin, end))
            continue
        floor = max(attempt.begin, step.start - step.wait)
        for p in phases:
            if p.begin < step.start:
                floor = max(floor, min(p.end or 0, step.start))
        for (_, _, rank), other in attempt.steps.items():
            if rank == step.rank and (other.start, other.end) < (step.start, step.end):
                floor = max(floor, min(other.end, step.start))
        if floor < step.start:
            attempt.waits.append(Phase(step.rank, "data_wait", floor, step.start))


def _group(attempt: Attempt) -> None:
    """Group step n ends when the last rank that reports it ends it (rule 15)."""
    keys = sorted({(segment, step) for segment, step, _ in attempt.steps})
    previous: int | None = None
    for segment, number in keys:
        reports = [s for k, s in attempt.steps.items() if k[:2] == (segment, number)]
        if previous is None:
            backwards = sorted(attempt.steps.items(), reverse=True)
            firsts = {rank: step for (_, _, rank), step in backwards}
            previous = max(attempt.begin, min(_reach(attempt, s) for s in firsts.values()))
        end = max(previous, max(step.end for step in reports))
        attempt.group.append(GroupStep(attempt.number, segment, number, previous, end))
        attempt.segments[segment].steps.append(number)
        previous = end
    for block in _blocks(attempt):
        ranks = {r for g in block for s, n, r in attempt.steps if (s, n) == (g.segment, g.step)}
        total = {
            rank: sum(
                _other_time(attempt, g, rank)
                for g in block
                if (g.segment, g.step, rank) in attempt.steps
            )
            for rank in ranks
        }
        for g in block:
            for rank in sorted(ranks, key=lambda rank: (-total[rank], rank)):
                if (g.segment, g.step, rank) in attempt.steps:
                    g.critical = rank
                    break
            own = attempt.steps[g.segment, g.step, g.critical]
            g.start = min(max(own.start, g.begin), g.end)
            g.own = sum(
                b - a
                for a, b in pieces(attempt.edges(g.begin, g.end))
                if group_leaf(attempt, g, g.critical, a) == "step"
            )
    steady = attempt.group[1:]
    attempt.periods = [_period(attempt, a, b) for a, b in itertools.pairwise(steady)]


def _reach(attempt: Attempt, step: RankStep) -> int:
    """Return the start of a step or of the wait before it."""
    waits = [w.begin for w in attempt.waits if w.rank == step.rank and w.end == step.start]
    return min([step.start, *waits])


def group_leaf(attempt: Attempt, g: GroupStep, rank: int, time: int) -> Phase | str:
    """Return what a rank was in during a group step: a phase, its step, or a gap before it.

    A rank that has ended its step and is in no phase waits for the others: that is the step.
    """
    found = attempt.leaf(rank, time, BEFORE_STEPS)
    if isinstance(found, Phase):
        return found
    step = attempt.steps.get((g.segment, g.step, rank))
    if found is not None or (step is not None and time >= step.start):
        return "step"
    return "gap"


def _other_time(attempt: Attempt, g: GroupStep, rank: int) -> int:
    return sum(
        b - a
        for a, b in pieces(attempt.edges(g.begin, g.end))
        if group_leaf(attempt, g, rank, a) != "step"
    )


def _blocks(attempt: Attempt) -> list[list[GroupStep]]:
    """Return the group steps that are judged together: each alone, or a summary's as one."""
    spans: dict[tuple[int, int, tuple[int, int]], set[int]] = {}
    for (segment, number, rank), step in attempt.steps.items():
        if step.coarse:
            spans.setdefault((segment, rank, step.span), set()).add(number)
    blocks: list[list[GroupStep]] = []
    for g in attempt.group:
        tied = blocks and any(
            segment == g.segment
            and g.step in numbers
            and any(other.segment == segment and other.step in numbers for other in blocks[-1])
            for (segment, _, _), numbers in spans.items()
        )
        if tied:
            blocks[-1].append(g)
        else:
            blocks.append([g])
    return blocks


def usual(attempt: Attempt, found: Sequence[Attempt], before: int) -> int | None:
    """Return the usual step ahead of the attempt's step at index `before` (rule 19)."""
    own = [g.own for g in attempt.group[1:before]]
    earlier = [[g.own for g in other.group[1:]] for other in reversed(found[: attempt.number])]
    return _median_of_enough(own, earlier)


def _median_of_enough(own: Sequence[int], earlier: Sequence[Sequence[int]]) -> int | None:
    """Return the median of up to 100 values, if 5, else of the newest attempt that has any."""
    for values in [own] if len(own) >= 5 else earlier:
        if values:
            return lower_median(values[-100:])
    return None


def limit(usual_step: int | None) -> int | None:
    """Return how long a step may take (rule 19); None where nothing is usual."""
    return None if usual_step is None else max(MINUTE, 10 * usual_step)


def slack(attempt: Attempt, found: Sequence[Attempt], before: int) -> int:
    """Return how much of a gap a step may own (rule 16), from the periods before it."""
    own = attempt.periods[: max(0, before - 2)]
    earlier = [other.periods for other in reversed(found[: attempt.number])]
    return max(SECOND, _median_of_enough(own, earlier) or 0)


def _period(attempt: Attempt, a: GroupStep, b: GroupStep) -> int:
    """Return the time from one start to the next, net of phases."""
    total = 0
    for g in (a, b):
        begin, end = max(a.start, g.begin), min(b.start, g.end)
        if begin < end:
            total += sum(
                q - p
                for p, q in pieces(attempt.edges(begin, end))
                if isinstance(group_leaf(attempt, g, g.critical, p), str)
            )
    return total
