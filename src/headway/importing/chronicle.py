"""Turns what the lines of one run say into the events that a recorder would have written.

An attempt ends where a launcher restarts, a program starts after it had shown progress or broken,
a counter of elapsed time falls, or a step number does not rise. Durations that lines print place
what no stamp dates. What a log does not tell is left out, never made up.
"""

from collections.abc import Sequence

from headway.events import (
    AttemptEnded,
    Envelope,
    RankExited,
    RunConfigured,
    RunEnded,
    StepsSummary,
)
from headway.importing.blocks import LONGEST
from headway.importing.breaks import Breaks
from headway.importing.course import Course
from headway.importing.lanes import Lane
from headway.importing.launcher_news import LauncherNews
from headway.importing.progress import progress
from headway.importing.runs import go_on
from headway.importing.saves import Saves
from headway.importing.sayings import (
    Began,
    Broke,
    Configured,
    Continues,
    Finished,
    JobState,
    LauncherSays,
    LeftRank,
    LoadBegan,
    LoadEnded,
    PhaseSays,
    Published,
    Remark,
    Requeued,
    SaveBegan,
    SaveEnded,
    SaveFailed,
    Saying,
    StepLine,
    StepRun,
    Stops,
    Took,
)
from headway.importing.stamps import SECOND, Moment, Stamps
from headway.importing.watchers import Watchers

_TOO_FEW = (1, 2)
"""Lines of progress from which it cannot be seen for how many steps each of them stands."""


class Chronicle:
    """One run as its log tells it."""

    def __init__(self, run: str, scope: str = "") -> None:
        """Begin; `scope` tells the attempts of a log apart that is recorded while it is written."""
        self._live = bool(scope)
        self.course = Course(run, scope)
        self._saves = Saves(self.course)
        self._launcher = LauncherNews(self.course)
        self._watchers = Watchers(self.course)
        self._breaks = Breaks(self.course)
        self._timed = False
        self._configuration: RunConfigured | None = None
        self._placed = True
        """Whether all times are certain, not only where an open phase cannot have begun later."""
        self._loose: Sequence[str] = ()
        """Attempts that more of the log may tell to be others."""

    @property
    def run(self) -> str:
        """Identity of the run."""
        return self.course.run

    @property
    def timed(self) -> bool:
        """Whether any stamp dates the log."""
        return self._timed

    def lasting(self) -> Sequence[Envelope]:
        """Return the events that stay true when the log grows, once it was read."""
        course = self.course
        if not self._placed or len(self._loose) == len(course.attempts):
            return []
        lines = course.findings.step_lines - course.findings.progress_lines
        counted = course.interval is not None or lines not in _TOO_FEW
        return [
            one
            for one in course.journal.envelopes
            if one.attempt not in self._loose
            and (counted or not isinstance(one.event, StepsSummary))
        ]

    def starts_anew(self, saying: Saying) -> bool:
        """Whether what is said belongs to another run: one from step 1 after this one is over."""
        if not isinstance(saying, StepLine):
            return False
        course = self.course
        if saying.redrawn and course.completed_at is None:
            return False
        newest = max((lane.last_step or 0 for lane in course.lanes.values()), default=0)
        if saying.step >= newest or saying.step > max(course.interval or 1, saying.covers or 1):
            return False
        other = saying.target is not None and course.target not in (None, saying.target)
        return course.completed_at is not None or other

    def go_on(self, run: StepRun, first: int, rank: int | None, stamps: Stamps) -> int:
        """Take lines that only continue a lane's steps; return how many did."""
        lane = self.course.lanes.get(rank)
        if lane is None or self._watchers.pulses:
            return 0
        return go_on(self.course, lane, run, first, stamps)

    def take(self, saying: Saying, moment: Moment | None, rank: int | None, text: str) -> None:
        """Take what a line says; `text` is the line."""
        self._hear(saying, moment, rank, text)
        if self.course.attempts:
            marks, step = self.course.attempts[-1].marks, type(saying) is StepLine
            if marks.line is None and (step or moment is not None):
                marks.line = text or repr((saying, moment))
            if marks.step is None and step:
                marks.step = text or repr(saying)

    def _hear(self, saying: Saying, moment: Moment | None, rank: int | None, text: str) -> None:
        course = self.course
        if type(saying) is StepLine:
            lane = course.lane(rank)
            known = course.target
            if saying.redrawn and saying.scope is None and known not in (None, saying.target):
                # a bar of another length than the training's
                self._phase(lane, PhaseSays(phase="evaluation", began=True, sign=True), moment)
                return
            if saying.target is not None:
                course.target = saying.target
            self._watchers.pulses.clear()
            progress(course, lane, saying, moment, text)
            return
        lane = course.lane_of(rank)
        if lane.traceback:
            lane.traceback -= 1
        match saying:
            case Began():
                self._began(lane, saying, moment)
            case Configured():
                self._configured(saying)
            case SaveBegan():
                self._saves.began(lane, saying, moment)
            case SaveEnded():
                self._saves.ended(lane, saying, moment)
            case SaveFailed():
                self._saves.failed(lane, saying, moment)
            case Took():
                self._took(lane, saying, moment)
            case PhaseSays():
                self._phase(lane, saying, moment)
            case LoadBegan():
                self._boundary(lane, moment)
                self._saves.loading(lane, saying, moment)
            case LoadEnded():
                self._saves.loaded(lane, saying, moment)
            case Continues():
                self._continues(lane, saying, moment)
            case Finished():
                self._finished(lane, saying, moment)
            case Broke():
                self._breaks.broke(lane, saying, moment, rank)
            case Stops():
                self._breaks.stops(lane, saying, moment)
            case LeftRank():
                course.flush(lane)
                now = course.date(lane, moment)
                code = saying.code
                signal = None if code is None or code >= 0 else -code
                course.tell(
                    RankExited(exit_code=None if signal else code, signal=signal, by=saying.by),
                    now,
                    rank=saying.rank if saying.rank is not None else rank,
                )
                course.attempt.ended = True
            case LauncherSays():
                course.flush(lane)
                self._launcher.take(lane, saying.said, moment)
            case JobState():
                self._watchers.take(lane, saying, moment)
            case Published():
                before = course.findings.published
                course.findings.published = {**saying.figures, **before}
            case Requeued():
                course.findings.requeued = True
            case Remark():
                self._breaks.remark(lane, saying, moment)
            case _:
                pass

    def _boundary(self, lane: Lane, moment: Moment | None) -> None:
        """Begin a new attempt where the newest one had progressed or broken."""
        course = self.course
        course.flush(lane)
        attempt = course.attempt
        if course.restarting or attempt.progressed or attempt.ended:
            course.settle(lane, moment)
            course.begin_attempt(course.next_layer if course.restarting else attempt.layer)

    def _began(self, lane: Lane, told: Began, moment: Moment | None) -> None:
        course = self.course
        attempt = course.attempt
        if told.restarts is not None:
            course.findings.restart_count = max(course.findings.restart_count or 0, told.restarts)
            known = attempt.restarts
            if known is None and not course.restarting and not attempt.progressed:
                attempt.restarts = told.restarts
            elif known is not None and told.restarts <= known:
                course.date(lane, moment)
                return
        now = course.date(lane, moment)
        if told.restarts is None or attempt.restarts != told.restarts:
            if told.layer == "in_process":
                course.flush(lane)
                course.left(now)
                attempt.progressed = True
            elif told.restarts is not None and attempt.restarts is not None:
                attempt.ended = True  # a start that the next one followed without a step
            self._boundary(lane, moment)
        attempt = course.attempt
        if told.layer is not None:
            attempt.layer = course.next_layer = told.layer
        if told.restarts is not None:
            attempt.restarts = attempt.findings.restarts = told.restarts
        course.date(lane, moment)
        course.start(lane, now)

    def _configured(self, told: Configured) -> None:
        course = self.course
        if told.name == "world_size" and isinstance(told.value, int):
            course.world_size = course.attempt.world_size = told.value
        elif told.name == "target_step" and isinstance(told.value, int):
            course.target = told.value
            course.findings.target = told.value
        elif told.name == "log_interval" and isinstance(told.value, int):
            course.interval = course.findings.log_interval = told.value
        course.settings[told.name] = told.value

    def _took(self, lane: Lane, told: Took, moment: Moment | None) -> None:
        course = self.course
        course.flush(lane)
        if told.duration > LONGEST:
            return
        if told.phase == "checkpoint_save":
            self._saves.timed(told.duration)
        phase = lane.phase
        if phase is not None and phase.name == told.phase:
            course.close_phase(lane, told.duration)
            return
        if told.phase == "checkpoint_save":
            return  # a timer without the save itself
        if phase is not None:
            course.close_phase(lane, None)
        if moment is None:
            began = lane.now
        else:
            began = max(course.date(lane, moment) - told.duration, lane.mark)
        course.open_phase(lane, told.phase, began, lane.last_step)
        course.close_phase(lane, told.duration)
        lane.evaluated |= told.phase == "evaluation"

    def _phase(self, lane: Lane, told: PhaseSays, moment: Moment | None) -> None:
        course = self.course
        course.flush(lane)
        now = course.date(lane, moment)
        phase = lane.phase
        if not told.began:
            if phase is not None and phase.name == told.phase:
                phase.ended = now if moment is not None else None
                course.close_phase(lane, None)
                lane.evaluated = True
                course.findings.notes.append(f"{told.phase} after step {lane.last_step} finished")
            return
        if phase is not None and phase.name == told.phase:
            if moment is not None:
                phase.ended = now
            return
        if told.sign and lane.evaluated:
            return
        lane.evaluated = True
        course.open_phase(lane, told.phase, lane.mark if told.sign else now, told.step)

    def _continues(self, lane: Lane, told: Continues, moment: Moment | None) -> None:
        course = self.course
        self._boundary(lane, moment)
        course.date(lane, moment)
        attempt = course.attempts[lane.attempt]
        load = attempt.load
        if lane.phase is not None and lane.phase.name == "checkpoint_load":
            lane.phase.ended = lane.now if moment is not None else None
            course.close_phase(lane, None)
        name = load[0] if load is not None and load[1] == told.completed else None
        if told.completed == 0 and load is not None and load[1]:
            course.findings.notes.append(
                f"asked for {load[0]} and started from step 0: restart from scratch"
            )
        course.resumed(lane, told.completed, name)

    def _finished(self, lane: Lane, told: Finished, moment: Moment | None) -> None:
        course = self.course
        course.flush(lane)
        self._saves.prove_all(lane, lane.now)
        course.settle(lane, moment)
        now = course.date(lane, moment)
        attempt = course.attempts[lane.attempt]
        if "finished" in attempt.told:
            return
        attempt.told.add("finished")
        attempt.ended = attempt.progressed = True
        newest = lane.last_step
        target = course.target
        short = (
            newest is not None and target is not None and newest + (course.interval or 1) < target
        )
        complete = told.complete and not short
        course.emit(lane, AttemptEnded(exit_code=told.code, learned_from="its log"), now)
        course.findings.exits.append(
            {
                "class": "completed" if complete else "planned_exit",
                "at": course.said(now, moment),
                "ran_s": None if told.ran is None else told.ran / SECOND,
                "started_about": (
                    None if told.ran is None or moment is None else moment.time - told.ran
                ),
            }
        )
        if complete:
            course.completed_at = now

    def configure(self) -> None:
        """Record how the run is configured, where the lines so far tell more of it than before."""
        course = self.course
        if course.target is None and not course.settings:
            return
        interval = course.settings.get("checkpoint_interval")
        settings = {
            name: value
            for name, value in course.settings.items()
            if name not in ("world_size", "target_step", "checkpoint_interval", "log_interval")
        }
        told = RunConfigured(
            target_step=course.target,
            checkpoint_interval=interval if isinstance(interval, int) else None,
            world_size=course.world_size,
            options=settings or None,
        )
        if told == self._configuration:
            return
        self._configuration = told
        lanes = course.lanes.values()
        course.journal.add(min((lane.now for lane in lanes), default=course.now), told)

    def finish(self, start: int | None = None, relative: bool = False) -> None:
        """Take the end of the log; `start` in UTC ns dates one that has no stamp at all.

        The stamps of a log with `relative` times date nothing, either.
        """
        course = self.course
        for lane in course.lanes.values():
            course.flush(lane)
        lanes: Sequence[Lane] = list(course.lanes.values())
        if course.journal.shift is None and lanes and course.held is not None:
            course.anchor(lanes[0], course.held.time)
            self._placed = False
        now = course.now
        self._watchers.hang()
        attempt = course.attempts[-1] if course.attempts else None
        if attempt is not None and attempt.cancelled is not None and lanes:
            end = AttemptEnded(learned_from="Slurm cancelled the job step")
            course.emit(lanes[0], end, now)
        self._saves.finish()
        course.findings.log_interval = course.findings.log_interval or course.interval
        self.configure()
        if course.completed_at is not None:
            course.journal.add(now, RunEnded(reason="completed"))
        self._timed = course.journal.shift is not None and not relative
        if course.journal.shift is None:
            course.journal.date(start or 0)
        elif relative and start is not None:
            course.journal.move(start)
        if not self._live:
            self._loose = course.journal.identify([one.marks for one in course.attempts])
