"""Saves and loads of checkpoints as lines tell them.

A save is durable where a line says that it is complete. Where a program only says that it handed a
save over, the next save proves the one before, because programs wait for it; so does a load.
"""

from typing import Any

from headway.events import CheckpointFailed, CheckpointLoaded, CheckpointLoadFailed
from headway.importing.course import Course
from headway.importing.lanes import Lane
from headway.importing.progress import complete
from headway.importing.sayings import (
    LoadBegan,
    LoadEnded,
    SaveBegan,
    SaveEnded,
    SaveFailed,
)
from headway.importing.stamps import SECOND, Moment

SAVE, LOAD = "checkpoint_save", "checkpoint_load"


class Saves:
    """The saves of one run, by step."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._open: dict[int, dict[str, Any]] = {}
        self._unproven: int | None = None
        course.on_shift.append(self._shift)
        self._done: set[tuple[int, int]] = set()
        """Attempt and step of saves that are complete."""
        self._newest: int | None = None

    def _shift(self, by: int) -> None:
        for known in self._open.values():
            known["began"] += by

    def began(self, lane: Lane, told: SaveBegan, moment: Moment | None) -> None:
        """Take the begin of a save."""
        course = self._course
        course.flush(lane)
        if told.step is not None:
            complete(course, lane, told.step, moment)
        now = course.date(lane, moment)
        if told.since:
            now = min(lane.mark, now)
        step = lane.last_step if told.step is None else told.step
        self._prove(lane, now)
        if step is None or (lane.attempt, step) in self._done:
            return
        known = self._open.get(step)
        if known is not None and told.background:
            known["background"] = True
            if lane.phase is not None and lane.phase.name == SAVE:
                lane.phase.ended = now if moment is not None else lane.phase.ended
            return
        self._newest = step
        self._open[step] = {
            "step": step,
            "checkpoint": told.checkpoint,
            "began": now,
            "said": None if moment is None else moment.time,
            "background": told.background,
            "attempt": lane.attempt,
        }
        if not told.background:
            course.open_phase(lane, SAVE, now, step)
        course.scheduled(lane, step, now, None)

    def ended(self, lane: Lane, told: SaveEnded, moment: Moment | None) -> None:
        """Take the end of a save, or of the part for which training waited."""
        course = self._course
        course.flush(lane)
        step = told.step
        if step is None:
            step = self._newest
        if step is None or (lane.attempt, step) in self._done:
            return
        phase = lane.phase
        own = phase is not None and phase.name == SAVE
        now = course.date(lane, moment)
        if own and phase is not None:
            phase.ended = phase.ended or (now if moment is not None else None)
            if told.blocked is not None or told.took is not None:
                took = told.blocked if told.blocked is not None else told.took
                course.close_phase(lane, took)
        known = self._open.get(step)
        if not told.durable:
            self._unproven = step
            return
        if known is None and told.step is None:
            return
        known = known or {"step": step, "checkpoint": told.checkpoint, "background": True}
        self._open.pop(step, None)
        # a timer may follow that tells how long it took
        known |= {"ended": now, "acknowledged": None if moment is None else moment.time}
        if own and lane.phase is phase and phase is not None:
            known["phase"] = phase
        self._finish(lane, known, now)

    def _finish(self, lane: Lane, known: dict[str, Any], now: int) -> None:
        course = self._course
        step, began = known["step"], known.get("began")
        self._done.add((lane.attempt, step))
        if began is None:
            course.scheduled(lane, step, now, None)
        background = None
        if began is not None and known.get("background"):
            background = max(now - began, 0)
        course.finalized(lane, step, now, background)
        self._list(known, durable=True, took=background)

    def _list(self, known: dict[str, Any], *, durable: bool, took: int | None = None) -> None:
        """Put a save on the list of what the log tells; `took` in ns."""
        self._course.findings.saves.append(
            {
                "step": known["step"],
                "checkpoint": known.get("checkpoint"),
                "durable": durable,
                "received": known.get("said"),
                "acknowledged": known.get("acknowledged"),
                "duration_s": None if took is None else took / SECOND,
            }
        )

    def failed(self, lane: Lane, told: SaveFailed, moment: Moment | None) -> None:
        """Take that a save did not complete."""
        course = self._course
        course.flush(lane)
        now = course.date(lane, moment)
        step = self._newest if told.step is None else told.step
        if step is None:
            return
        if lane.phase is not None and lane.phase.name == SAVE:
            lane.phase.ended = now if moment is not None else None
            course.close_phase(lane, None)
        self._unproven = None if self._unproven == step else self._unproven
        event = CheckpointFailed(checkpoint=f"step-{step}", step=step, reason=told.reason)
        course.emit(lane, event, now)

    def timed(self, duration: int) -> None:
        """Take how long the newest save took, told after it."""
        saves = self._course.findings.saves
        if saves and saves[-1]["duration_s"] is None:
            saves[-1]["duration_s"] = duration / SECOND

    def _prove(self, lane: Lane, now: int) -> None:
        """Take a new save as proof that the one handed over before it is complete."""
        step, self._unproven = self._unproven, None
        known = None if step is None else self._open.pop(step, None)
        if known is not None and known["attempt"] == lane.attempt:
            self._finish(lane, known, now)

    def loading(self, lane: Lane, told: LoadBegan, moment: Moment | None) -> None:
        """Take the begin of a load."""
        course = self._course
        now = course.date(lane, moment)
        attempt = course.attempts[lane.attempt]
        step = told.step
        attempt.load = (None if step is None else f"step-{step}", step)
        if lane.phase is None or lane.phase.name != LOAD:
            course.open_phase(lane, LOAD, now, step)

    def loaded(self, lane: Lane, told: LoadEnded, moment: Moment | None) -> None:
        """Take the end of a load."""
        course = self._course
        now = course.date(lane, moment)
        attempt = course.attempts[lane.attempt]
        if lane.phase is not None and lane.phase.name == LOAD:
            lane.phase.ended = now if moment is not None else None
            course.close_phase(lane, told.took)
        step = told.step
        if step is None and attempt.load is not None:
            step = attempt.load[1]
        name = None if step is None else f"step-{step}"
        if told.failed is not None:
            if name is not None:
                course.emit(
                    lane,
                    CheckpointLoadFailed(checkpoint=name, step=step, reason=told.failed),
                    lane.now,
                )
            return
        course.findings.loads.append(
            {
                "step": step,
                "at": course.said(now),
                "duration_s": None if told.took is None else told.took / SECOND,
            }
        )
        if step is None or name is None:
            return
        proven = self._open.pop(step, None)
        if proven is not None:
            self._list(proven, durable=True)
        if step:
            course.emit(
                lane, CheckpointLoaded(checkpoint=name, step=step, duration=told.took), lane.now
            )
        course.resumed(lane, step, name if step else None)

    def finish(self) -> None:
        """Tell of saves that were begun and never seen complete."""
        for known in self._open.values():
            self._list(known, durable=False)
        self._open.clear()

    def prove_all(self, lane: Lane, now: int) -> None:
        """Take the program's own orderly end as proof of what it handed over."""
        self._prove(lane, now)
