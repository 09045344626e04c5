"""A second, deliberately naive ledger: one exact sweep over every boundary of a run.

Every rule claims stretches of time; all time is cut at every edge of every claim, and each
elementary piece goes to the claim with the highest precedence. Nothing here is shared with the
product, and nothing is fast. `naive_ledger(envelopes, as_of)` is the whole of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headway.events import (
    Allocation,
    AttemptStarted,
    CheckpointFinalized,
    CheckpointScheduled,
    Envelope,
    IncidentAcknowledged,
    IncidentCorrected,
    Note,
    PhaseEnded,
    RankExited,
    RestartPhase,
    RunEnded,
)
from oracle.attempts import (
    BEFORE_STEPS,
    Attempt,
    GroupStep,
    Phase,
    attempts,
    group_leaf,
    last_evidence,
    limit,
    pieces,
)
from oracle.evidence import DAY, Evidence, gather
from oracle.survival import Lineage, lineage, restored
from oracle.tails import State, Tail, tail

STEP, FAILED_WATCHDOG, FAILED, DONE, STOP, STALL, OPEN, PREPARE, CUT, GAP, NOTHING = range(11)
"""Precedence of the claims (rule 13); completed steps come first in overlaps (rule 9)."""

WORDS = (IncidentAcknowledged, IncidentCorrected, Note)
LAUNCHER_PARTS = {
    "abort": "teardown",
    "stop_workers": "teardown",
    "finalize": "teardown",
    "rendezvous": "rendezvous",
    "spawn": "other",
    "health_check": "other",
}
WAITING = ("backoff", "wait_nodes")


@dataclass(frozen=True)
class Claim:
    """One rule's claim on a stretch of time; a claim on steps gets its category later."""

    begin: int
    end: int
    level: int
    category: str
    part: str | None = None
    attempt: int = -1
    key: tuple[int, int, int] | None = None


@dataclass
class NaiveLedger:
    """Time per leaf category, and the counts that people ask for first."""

    start: int | None
    end: int | None
    categories: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    intervals: Sequence[tuple[int, int, str, str | None]] = ()
    highest_step: int = 0
    executed_steps: int = 0
    surviving_steps: int = 0
    attempts: int = 0
    failed_starts: int = 0
    rollbacks: Sequence[tuple[str, int]] = ()


def naive_ledger(envelopes: Iterable[Envelope], as_of: int) -> NaiveLedger:
    """Return the ledger of one run as it was known at `as_of`."""
    evidence = gather(envelopes, as_of)
    found = attempts(evidence)
    start = _start(evidence, found)
    if start is None:
        return NaiveLedger(None, None)
    run = _Run(evidence, found, start, as_of)
    return run.ledger()


def _start(evidence: Evidence, found: Sequence[Attempt]) -> int | None:
    """Return T0 (rule 5)."""
    times = [attempt.begin for attempt in found]
    for fact in evidence.of(Allocation):
        assert isinstance(fact.event, Allocation)
        if fact.event.gpus_held:
            times.append(fact.time)
    for fact in evidence.of(RestartPhase):
        assert isinstance(fact.event, RestartPhase)
        if fact.event.layer != "in_process":
            times.append(fact.time)
    return min(times, default=None)


class _Run:
    def __init__(self, evidence: Evidence, found: list[Attempt], start: int, as_of: int) -> None:
        self.evidence = evidence
        self.attempts = found
        self.start = start
        self.times = self._evidence_times()
        begun = [fact.time for fact in evidence.of(AttemptStarted)]
        ends = [f for f in evidence.of(RunEnded) if not any(time > f.time for time in begun)]
        self.reason: str | None = None
        self.abandoned = False
        self.end = as_of
        if ends:
            assert isinstance(ends[-1].event, RunEnded)
            self.end, self.reason = ends[-1].time, ends[-1].event.reason
        elif as_of - self.times[-1] >= DAY:
            self.end, self.abandoned = self.times[-1], True
        self.end = max(self.end, start)
        self.states: list[State] = [self._finish(attempt) for attempt in found]
        self.lineage: Lineage = lineage(evidence, found)
        self.tails = [self._tail(attempt) for attempt in found]
        self.claims: list[Claim] = []
        for attempt in found:
            self._claim(attempt)
        self._claim_between()

    def _evidence_times(self) -> list[int]:
        times = [f.time for f in self.evidence.facts if not isinstance(f.event, WORDS)]
        for step in self.evidence.done:
            times += [step.start, step.end]
        for fact in self.evidence.of(PhaseEnded):
            assert isinstance(fact.event, PhaseEnded)
            times.append(fact.time - fact.event.duration)
        return sorted(times)

    def _finish(self, attempt: Attempt) -> State:
        """Decide when an attempt ended (rule 8) and whether it may still go on."""
        attempt.end = last_evidence(attempt)
        newest = attempt is self.attempts[-1]
        if attempt.exited or not newest or self.abandoned:
            return "ended"
        if self.reason is not None:
            if attempt.group:
                attempt.end = max(attempt.end, self.end)
                return "closed"
            return "ended"
        attempt.end = self.end
        return "live"

    def _tail(self, attempt: Attempt) -> Tail:
        later = [a.begin for a in self.attempts[attempt.number + 1 :]]
        state = self.states[attempt.number]
        return tail(attempt, self.attempts, attempt.end, state, min(later, default=None))

    # What an attempt claims

    def _claim(self, attempt: Attempt) -> None:
        found = self.tails[attempt.number]
        if not attempt.group and self.states[attempt.number] != "live":
            self._add(attempt, attempt.begin, attempt.end, FAILED, "restart", "failed_start")
            if found.stalled:
                self._add(attempt, *found.stalled, FAILED_WATCHDOG, "stalled")
            return
        self._claim_preparation(attempt)
        for number, g in enumerate(attempt.group):
            self._claim_step(attempt, g, first=number == 0)
        self._claim_tail(attempt, found)

    def _add(
        self,
        attempt: Attempt,
        begin: int,
        end: int,
        level: int,
        category: str,
        part: str | None = None,
        step: GroupStep | None = None,
    ) -> None:
        if begin < end:
            key = None if step is None else (step.attempt, step.segment, step.step)
            self.claims.append(Claim(begin, end, level, category, part, attempt.number, key))

    def _claim_preparation(self, attempt: Attempt) -> None:
        """Time before the first step (rule 17)."""
        category = "startup" if attempt.number == 0 else "restart"
        first = attempt.group[0] if attempt.group else None
        group_from = first.begin if first else attempt.end
        end = first.start if first else attempt.end
        for a, b in pieces(sorted({*attempt.edges(attempt.begin, end), group_from})):
            leaves = [
                leaf
                for rank in sorted(attempt.ranks)
                if isinstance(leaf := attempt.leaf(rank, a), Phase)
                and (first is None or a < group_from or rank == first.critical)
            ]
            carved = [
                leaf
                for leaf in leaves
                if leaf.name not in BEFORE_STEPS and not attempt.in_vain(leaf)
            ]
            if carved:
                self._add(attempt, a, b, DONE, carved[0].name)
            parts = [_part(leaf.name) for leaf in leaves] or ["other"]
            self._add(attempt, a, b, PREPARE, category, parts[0])
        if first is None:
            self._claim_open_preparation(attempt, category)

    def _claim_open_preparation(self, attempt: Attempt, category: str) -> None:
        """A live attempt without a step yet: what it is in now decides the last stretch."""
        found = self.tails[attempt.number]
        for phase in sorted(found.cut, key=lambda phase: phase.rank):
            if phase.name in (*BEFORE_STEPS, "step"):
                self._add(attempt, phase.begin, attempt.end, OPEN, category, _part(phase.name))
            else:
                self._add(attempt, phase.begin, attempt.end, OPEN, phase.name)

    def _claim_step(self, attempt: Attempt, g: GroupStep, first: bool) -> None:
        """One group step with the leaf phases of its critical rank (rules 14 to 16 and 19)."""
        cuts = pieces(attempt.edges(g.begin, g.end))
        leaves = [(a, b, group_leaf(attempt, g, g.critical, a)) for a, b in cuts]
        most = limit(g.usual)
        kept = g.own if most is None or g.own <= most else g.usual or 0
        for a, b, leaf in leaves:
            if isinstance(leaf, Phase):
                if not first or a >= g.start:
                    self._add(attempt, a, b, DONE, *self._phase(attempt, leaf))
            elif leaf == "step":
                middle = min(b, a + kept)
                self._add(attempt, a, middle, STEP, "step", step=g)
                self._add(attempt, middle, b, DONE, "stalled")
                kept -= middle - a
        slack = 0 if first else g.slack
        for a, b, leaf in reversed(leaves):
            if leaf == "gap":
                middle = max(a, b - slack)
                self._add(attempt, middle, b, GAP, "step", step=g)
                self._add(attempt, a, middle, NOTHING, "unattributed")
                slack -= b - middle

    def _phase(self, attempt: Attempt, phase: Phase) -> tuple[str, str | None]:
        """Return category and part of a closed phase after the first step."""
        stepped_later = any(g.end >= (phase.end or 0) for g in attempt.group)
        if attempt.in_vain(phase) or (phase.name == "checkpoint_load" and not stepped_later):
            return "restart", "load_failed"
        return phase.name, None

    def _claim_tail(self, attempt: Attempt, found: Tail) -> None:
        begin = attempt.group[-1].end if attempt.group else attempt.begin
        live = self.states[attempt.number] == "live"
        if found.stalled:
            self._add(attempt, *found.stalled, STALL, "stalled")
        if found.teardown:
            self._add(attempt, *found.teardown, STALL, "restart", "teardown")
        if found.stop:
            self._claim_stop(attempt, found.stop, found.cut)
        if not attempt.group:
            return
        last = attempt.group[-1]
        for phase in found.cut:
            if phase.name == "step":
                category, part = _open(phase.name, live)
                gap = max(begin, phase.begin - found.slack), min(phase.begin, attempt.end)
                step = last if category == "step" else None
                self._add(attempt, *gap, GAP, category, part, step)
        slack = found.slack
        for a, b in pieces(attempt.edges(begin, attempt.end)):
            leaves = [
                leaf
                for rank in sorted(attempt.ranks)
                if isinstance(leaf := attempt.leaf(rank, a, BEFORE_STEPS), Phase)
            ]
            open_ones = [p for p in found.cut if p.begin <= a and (p.end is None or a < p.end)]
            open_ones.sort(key=lambda p: (p.rank, -p.begin))
            if leaves:
                self._add(attempt, a, b, DONE, *self._phase(attempt, leaves[0]))
            elif open_ones:
                category, part = _open(open_ones[0].name, live)
                self._add(attempt, a, b, CUT, category, part, last if category == "step" else None)
            elif found.clean:
                middle = min(b, a + slack)
                self._add(attempt, a, middle, GAP, "step", step=last)
                self._add(attempt, middle, b, NOTHING, "unattributed")
                slack -= middle - a
            else:
                self._add(attempt, a, b, NOTHING, "unattributed")

    def _claim_stop(self, attempt: Attempt, stop: tuple[int, int], cut: Sequence[Phase]) -> None:
        """An announced stop, less the saves that it cut short (rule 22)."""
        begin, end = stop
        for phase in cut:
            if phase.name == "checkpoint_save":
                self._add(attempt, max(phase.begin, begin), end, STOP, phase.name)
        self._add(attempt, begin, end, STOP, "restart", "teardown")

    # What happens while no rank is alive

    def _claim_between(self) -> None:
        """Claims of the time in which no attempt is alive (rules 6, 23 and 24)."""
        self.launcher = self._launcher_phases()
        self.forced = self._abandoned_between()

    def _launcher_phases(self) -> list[tuple[int, int, str]]:
        """Return what launchers were doing; a phase without an end lasts to the next event."""
        facts = self.evidence.of(RestartPhase)
        found = []
        for number, fact in enumerate(facts):
            event = fact.event
            assert isinstance(event, RestartPhase)
            if event.state != "began":
                continue
            end = min([a.begin for a in self.attempts if a.begin > fact.time], default=self.end)
            for later in facts[number + 1 :]:
                if later.source != fact.source:
                    continue
                assert isinstance(later.event, RestartPhase)
                if later.event.state == "began" or later.event.phase == event.phase:
                    ended = later.event.state == "ended"
                    end = later.time if ended else min(end, later.time)
                    break
            found.append((fact.time, end, event.phase))
        return found

    def _abandoned_between(self) -> list[tuple[int, int]]:
        """Return silences of a day or more that a later attempt ended (rule 6)."""
        found = []
        for a, b in zip(self.times, self.times[1:], strict=False):
            later = [attempt.begin for attempt in self.attempts if attempt.begin >= b]
            alive = any(t.begin < b and t.end > a for t in self.attempts)
            if b - a >= DAY and later and not alive:
                found.append((a, min(later)))
        return found

    def _between(self, time: int) -> tuple[str, str | None]:
        if any(a <= time < b for a, b in self.forced):
            return "down", self._held(time)
        before = [a for a in self.attempts if a.end <= time]
        if before:
            newest = max(before, key=lambda attempt: attempt.number)
            found = self.tails[newest.number]
            if newest.group and found.stalled and found.stalled[0] <= time < found.stalled[1]:
                return "stalled", None
            if not newest.group and found.torn is not None and time < found.torn:
                return "restart", "failed_start"
        after = [a for a in self.attempts if a.begin > time]
        restart = "restart"
        if not self.attempts or time < self.attempts[0].end:
            restart = "startup"
        if before and self._brings_itself_back(before, after):
            newest = max(before, key=lambda attempt: attempt.number)
            gone = {fact.rank for fact in newest.of(RankExited) if fact.time <= time}
            if newest.ranks - gone:
                return restart, "other"
        phases = [phase for a, b, phase in self.launcher if a <= time < b]
        for phase in phases:
            if phase not in WAITING:
                return restart, LAUNCHER_PARTS[phase]
        return "down", self._held(time)

    def _brings_itself_back(self, before: Sequence[Attempt], after: Sequence[Attempt]) -> bool:
        """Say whether a living process restarts in itself; at first only its wrapper shows it."""
        if after:
            return after[0].layer == "in_process"
        newest = max(before, key=lambda attempt: attempt.number)
        since = newest.group[-1].end if newest.group else newest.begin
        words = self.evidence.of(RestartPhase)
        spoke = any(
            f.time >= since and getattr(f.event, "layer", "") == "in_process" for f in words
        )
        return spoke and self.reason is None and not self.abandoned

    def _held(self, time: int) -> str:
        held = "held"
        for fact in self.evidence.of(Allocation):
            assert isinstance(fact.event, Allocation)
            if fact.time <= time:
                held = "held" if fact.event.gpus_held else "queued"
        return held

    # The sweep

    def ledger(self) -> NaiveLedger:
        edges = {self.start, self.end}
        for claim in self.claims:
            edges |= {claim.begin, claim.end}
        for attempt in self.attempts:
            edges |= {attempt.begin, attempt.end}
        for a, b, _ in self.launcher:
            edges |= {a, b}
        for a, b in self.forced:
            edges |= {a, b}
        for found in self.tails:
            edges |= {*(found.stalled or ()), found.torn or self.end}
        edges |= {fact.time for fact in self.evidence.of(Allocation, RankExited)}
        cuts = pieces(sorted(edge for edge in edges if self.start <= edge <= self.end))
        intervals = [(a, b, *self._owner(a)) for a, b in cuts]
        categories: Counter[str] = Counter()
        parts: dict[str, Counter[str]] = {}
        for a, b, category, part in intervals:
            categories[category] += b - a
            if part is not None:
                parts.setdefault(category, Counter())[part] += b - a
        assert sum(categories.values()) == self.end - self.start
        keys = [(g.attempt, g.segment, g.step) for a in self.attempts for g in a.group]
        return NaiveLedger(
            start=self.start,
            end=self.end,
            categories=dict(categories),
            parts={category: dict(found) for category, found in parts.items()},
            intervals=_joined(intervals),
            highest_step=max((key[2] for key in keys), default=0),
            executed_steps=len(keys),
            surviving_steps=sum(self._fate(key)[0] == "productive" for key in keys),
            attempts=len(self.attempts),
            failed_starts=sum(
                not attempt.group and state != "live"
                for attempt, state in zip(self.attempts, self.states, strict=True)
            ),
            rollbacks=self._rollbacks(),
        )

    def _owner(self, time: int) -> tuple[str, str | None]:
        here = [claim for claim in self.claims if claim.begin <= time < claim.end]
        steps = [claim for claim in here if claim.level == STEP]
        if steps:
            best = max(steps, key=lambda c: (self.lineage.survives(c.key or (0, 0, 0)), c.attempt))
            return self._category(best)
        alive = [a.number for a in self.attempts if a.begin <= time < a.end]
        if not alive:
            return self._between(time)
        mine = [claim for claim in here if claim.attempt == max(alive)]
        if not mine:
            return "unattributed", None
        return self._category(min(mine, key=lambda claim: claim.level))

    def _category(self, claim: Claim) -> tuple[str, str | None]:
        """Return the category and part of a claim."""
        if claim.category != "step":
            return claim.category, claim.part
        assert claim.key is not None
        return self._fate(claim.key)

    def _fate(self, key: tuple[int, int, int]) -> tuple[str, str]:
        """Return what became of a completed step (rules 7, 10 and 12)."""
        if not self.lineage.survives(key):
            return "rolled_back", "whole"
        if key[2] <= self.lineage.held:
            return "productive", "durable"
        ever = bool(self.evidence.of(CheckpointScheduled, CheckpointFinalized))
        if self.abandoned or (self.reason == "failed" and ever):
            return "rolled_back", "whole"
        return "productive", "at_risk"

    def _rollbacks(self) -> list[tuple[str, int]]:
        """Return the rollback distance of each resume: highest step before minus restored."""
        highest, found = 0, []
        for attempt in self.attempts:
            for segment in attempt.segments:
                state = restored(segment)
                if segment.counts and state is not None and state < highest:
                    found.append((attempt.name, highest - state))
                highest = max([highest, *segment.steps])
        return found


def _part(name: str) -> str:
    """Return the sub-phase of a start that a phase stands for."""
    if name == "checkpoint_load":
        return "load_failed"
    return name if name in ("import", "rendezvous", "model", "warmup") else "other"


def _open(name: str, live: bool) -> tuple[str, str | None]:
    """Return what a step or phase is that was open at the end (rules 20 and 25)."""
    if name == "step":
        return ("step", None) if live else ("rolled_back", "partial")
    if name in BEFORE_STEPS:
        return "unattributed", None
    if name == "checkpoint_load":
        return "restart", "load_failed"
    return name, None


def _joined(
    intervals: Sequence[tuple[int, int, str, str | None]],
) -> list[tuple[int, int, str, str | None]]:
    found: list[tuple[int, int, str, str | None]] = []
    for interval in intervals:
        if found and found[-1][2:] == interval[2:] and found[-1][1] == interval[0]:
            found[-1] = (found[-1][0], *interval[1:])
        else:
            found.append(interval)
    return found
