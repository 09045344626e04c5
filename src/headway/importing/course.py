"""The state that all readings of one run share: its ranks' lanes, its attempts, its journal."""

from collections.abc import Callable
from dataclasses import dataclass, field

from headway.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointFinalized,
    CheckpointScheduled,
    Event,
    PhaseBegan,
    PhaseEnded,
    Resumed,
)
from headway.importing.findings import AttemptFindings, Findings
from headway.importing.identity import Marks
from headway.importing.journal import Journal
from headway.importing.lanes import Lane, OpenPhase
from headway.importing.stamps import SECOND, Moment

_REPORTER = 0
"""Rank of lines that name none: somebody of the group printed them."""


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One attempt as it is being told; `progressed` is that it showed a step or broke."""

    number: int
    layer: str = "scheduler"
    restarts: int | None = None
    progressed: bool = False
    resumed: bool = False
    base: int | None = None
    """Steps in the state that it went on from, where told."""
    ended: bool = False
    cancelled: str | None = None
    load: tuple[str | None, int | None] | None = None
    told: set[str] = field(default_factory=set)
    """Faults, stops and exits that were recorded already."""
    findings: AttemptFindings
    world_size: int | None = None
    present: set[int] = field(default_factory=set)
    """Ranks that somebody else's lines name."""
    since: int | None = None
    """The time of its first line that has one."""
    marks: Marks = field(default_factory=Marks)
    """What it is known by, whatever else of the log is read."""


class Course:
    """One run as far as its log was read."""

    def __init__(self, run: str, scope: str = "") -> None:
        self.run = run
        self.journal = Journal(run, scope)
        self.findings = Findings()
        self.lanes: dict[int | None, Lane] = {}
        self.attempts: list[Attempt] = []
        self.held: Moment | None = None
        """A stamp before which an open phase of unknown length may lie."""
        self.target: int | None = None
        self.interval: int | None = None
        """Steps between two lines."""
        self.world_size: int | None = None
        self.settings: dict[str, int | str | float | bool] = {}
        self.next_layer = "scheduler"
        self.restarting = False
        self.completed_at: int | None = None
        """When the run said that it is complete."""
        self.stopped = False
        self.on_shift: list[Callable[[int], None]] = []
        """Who keeps times that are not dated yet."""
        self.primary: Lane | None = None
        """The lane that showed progress first."""

    @property
    def attempt(self) -> Attempt:
        """The newest attempt."""
        if not self.attempts:
            self.begin_attempt("scheduler")
        return self.attempts[-1]

    def begin_attempt(self, layer: str) -> Attempt:
        """Begin a new attempt; lanes enter it with their next line."""
        for lane in self.lanes.values():
            self.flush(lane)
            lane.phase = None
        number = len(self.attempts)
        findings = AttemptFindings(number + 1)
        self.findings.attempts.append(findings)
        found = Attempt(number=number, layer=layer, findings=findings)
        self.attempts.append(found)
        self.restarting = False
        self.stopped = False
        for lane in self.lanes.values():
            if lane.last_step is None:
                lane.now += 1  # so that starts in which nothing is dated keep their order
            self.enter(lane, number)
        return found

    def enter(self, lane: Lane, attempt: int) -> None:
        """Let a lane go on in an attempt."""
        self.flush(lane)
        lane.attempt = attempt
        lane.last_step = lane.pace = lane.elapsed = lane.phase = lane.scope = None
        lane.started = lane.evaluated = False
        lane.fresh = True
        lane.begun = None
        lane.traceback = 0
        lane.mark = lane.now

    def lane(self, rank: int | None) -> Lane:
        """Return the lane of a rank."""
        found = self.lanes.get(rank)
        if found is None:
            newest = max((one.now for one in self.lanes.values()), default=0)
            dated = self.journal.shift is not None
            found = Lane(rank, self.attempt.number, now=newest if dated else 0)
            since = self.attempt.since
            found.mark = found.now if since is None else since
            self.lanes[rank] = found
        return found

    def lane_of(self, rank: int | None) -> Lane:
        """Return the lane that a line without progress belongs to: one that shows progress.

        Who prints steps and who prints saves are often two ranks of one group.
        """
        found = self.lanes.get(rank)
        if found is not None and found.last_step is not None:
            return found
        return self.primary or self.lane(rank)

    def settle(self, lane: Lane, moment: Moment | None, *, keep: bool = False) -> None:
        """End what is open, so that what was told can be dated: by a line's own time or before.

        A phase whose end no line told is kept open where a step will `keep` its end.
        """
        if lane.phase is not None and not (keep and lane.phase.ended is None):
            if moment is not None and self.journal.shift is not None:
                lane.phase.ended = lane.phase.ended or self.date(lane, moment)
            self.close_phase(lane, None)
        if self.journal.shift is None and moment is None and self.held is not None:
            self.anchor(lane, self.held.time)

    def date(self, lane: Lane, moment: Moment | None, before: int = 0) -> int:
        """Let a lane reach the time of a line, if it has one; return where it stands.

        `before` is how long before the line what it tells began, in ns.
        """
        if moment is None:
            return lane.now
        if self.journal.shift is None:
            if lane.phase is not None and lane.phase.ended is None:
                self.held = moment
                return lane.now
            self.anchor(lane, moment.time - before)
        lane.reach(moment)
        attempt = self.attempts[lane.attempt]
        if attempt.since is None:
            attempt.since = lane.now
        return lane.now

    def anchor(self, lane: Lane, time: int) -> None:
        """Date all that was told: where a lane stands is `time`."""
        shift = time - lane.now
        for one in self.lanes.values():
            one.shift(shift)
        for moved in self.on_shift:
            moved(shift)
        self.journal.date(shift)

    def start(self, lane: Lane, time: int | None = None) -> None:
        """Record that a lane's rank is in its attempt, once."""
        if lane.started:
            return
        lane.started = True
        lane.begun = lane.now if time is None else time
        attempt = self.attempts[lane.attempt]
        event = AttemptStarted(
            layer=attempt.layer,
            world_size=attempt.world_size or self.world_size,
            torchelastic_restarts=attempt.restarts,
        )
        self.emit(lane, event, lane.begun)

    def emit(self, lane: Lane, event: Event, time: int, count: int = 1) -> None:
        """Record an event of a lane's rank."""
        self.start(lane, min(time, lane.now))
        rank = _REPORTER if lane.rank is None else lane.rank
        self.journal.add(time, event, rank=rank, attempt=lane.attempt, count=count)

    def tell(
        self, event: Event, time: int, rank: int | None = None, node: str | None = None
    ) -> None:
        """Record an event of the newest attempt, about a rank where one is named."""
        if rank is not None:
            self._present(rank, time)
        self.journal.add(time, event, rank=rank, attempt=self.attempt.number, node=node)

    def left(self, time: int) -> None:
        """Record that the function of the newest attempt was left, to be entered again."""
        attempt = self.attempt
        ranks = {lane.rank for lane in self.lanes.values() if lane.started} | attempt.present
        for rank in sorted({_REPORTER if rank is None else rank for rank in ranks}):
            self.tell(AttemptEnded(learned_from="function"), time, rank=rank)

    def _present(self, rank: int, time: int) -> None:
        """Record that a rank is in the newest attempt, where its own lines do not show it."""
        attempt = self.attempt
        lane = self.lanes.get(rank if rank in self.lanes else None)
        if rank in attempt.present or (lane is not None and lane.started and lane.rank == rank):
            return
        attempt.present.add(rank)
        if rank == _REPORTER and lane is not None and lane.started:
            return
        event = AttemptStarted(
            layer=attempt.layer,
            world_size=attempt.world_size or self.world_size,
            torchelastic_restarts=attempt.restarts,
        )
        self.journal.add(time, event, rank=rank, attempt=attempt.number)

    def flush(self, lane: Lane) -> None:
        """Record the steps that wait to be united with others."""
        block = lane.block
        if block is not None:
            lane.block = None
            self.emit(lane, block.event(), block.end, count=block.last - block.first + 1)

    def open_phase(self, lane: Lane, name: str, began: int, step: int | None = None) -> None:
        """Record that a phase begins."""
        self.flush(lane)
        self.close_phase(lane, None)
        lane.phase = OpenPhase(name, began, step)
        self.emit(lane, PhaseBegan(phase=name), began)

    def close_phase(self, lane: Lane, duration: int | None) -> int | None:
        """End the open phase after `duration` ns, or where a line said that it ended.

        Returns its duration; None if nothing tells it.
        """
        phase = lane.phase
        if phase is None:
            return None
        lane.phase = None
        if duration is None:
            ended = phase.ended
            if ended is None or ended <= phase.began:
                return None
            duration = ended - phase.began
        end = phase.began + duration
        lane.now = max(lane.now, end)
        lane.mark = max(lane.mark, end)
        self.emit(lane, PhaseEnded(phase=phase.name, duration=duration), end)
        if phase.name == "evaluation":
            step = lane.last_step if phase.step is None else phase.step
            self.findings.evaluations.append({"step": step, "s": duration / SECOND})
        return duration

    def resumed(self, lane: Lane, completed: int, checkpoint: str | None) -> None:
        """Record from what state an attempt goes on, once."""
        attempt = self.attempts[lane.attempt]
        if attempt.resumed:
            return
        attempt.resumed = True
        lane.mark = max(lane.mark, lane.now)
        attempt.base = completed
        self.emit(lane, Resumed(completed=completed, checkpoint=checkpoint), lane.now)

    def scheduled(self, lane: Lane, step: int, time: int, blocking: int | None) -> None:
        """Record that a save was handed over."""
        self.emit(
            lane, CheckpointScheduled(checkpoint=f"step-{step}", step=step, blocking=blocking), time
        )

    def finalized(self, lane: Lane, step: int, time: int, background: int | None) -> None:
        """Record that a save is complete."""
        self.emit(
            lane,
            CheckpointFinalized(checkpoint=f"step-{step}", step=step, background=background),
            time,
        )

    @property
    def now(self) -> int:
        """The latest time that any lane has reached."""
        return max((lane.now for lane in self.lanes.values()), default=0)

    def said(self, time: int, moment: Moment | None = None) -> int | None:
        """Return a time as it is told to people: a line's own, None while no stamp dates it."""
        if moment is not None:
            return moment.time
        return None if self.journal.shift is None else time
