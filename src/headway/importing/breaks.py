"""What broke or stopped a run, as its lines tell it; only the first of a kind and rank counts."""

from dataclasses import replace

from headway.events import Fault, StopAnnounced
from headway.importing.course import Course
from headway.importing.errors import TRACEBACK
from headway.importing.lanes import Lane
from headway.importing.progress import complete
from headway.importing.sayings import Broke, Remark, Stops
from headway.importing.stamps import Moment

_TRACEBACK_LINES = 400
_MOST_FAULTS = 32
_OF_NODE = ("lost_node", "storage")


class Breaks:
    """Takes the faults and stops of one run."""

    def __init__(self, course: Course) -> None:
        self._course = course

    def broke(self, lane: Lane, told: Broke, moment: Moment | None, rank: int | None) -> None:
        """Take that something broke; `rank` is who says so."""
        course = self._course
        if told.exception is not None and not lane.traceback:
            return  # a word in a sentence, no traceback above it
        if told.exception == "KeyboardInterrupt":
            self.stops(lane, Stops(reason="operator"), moment)
            return
        course.flush(lane)
        if told.completed is not None:
            complete(course, lane, told.completed, moment)
            course.flush(lane)
            course.attempt.findings.end_told = True
        now = course.date(lane, moment, before=told.ran_for or 0)
        rank = told.rank if told.rank is not None else rank
        if told.collective is not None and rank is not None:
            course.findings.collectives.setdefault(
                rank, {"sequence": told.collective[1], "elements": told.elements}
            )
        attempt = course.attempt
        key = f"{told.kind} {rank}"
        if key in attempt.told or len(attempt.told) > _MOST_FAULTS:
            return
        attempt.told.add(key)
        attempt.ended = True
        course.findings.fault(_with_rank(told, rank), course.said(now, moment))
        course.tell(
            Fault(
                kind=told.kind,
                message=told.message[:2000],
                exception=told.exception,
                ran_for=told.ran_for,
                timeout=told.timeout,
                suspect_node=told.node if told.kind in _OF_NODE else None,
            ),
            now,
            rank=rank,
            node=told.node,
        )

    def stops(self, lane: Lane, told: Stops, moment: Moment | None) -> None:
        """Take that the job is told to stop."""
        course = self._course
        course.flush(lane)
        now = course.date(lane, moment)
        attempt = course.attempt
        stops = course.findings.stops
        if told.handled is not None and stops:
            stops[-1]["handled"] = told.handled
        if any(key.startswith("stop ") for key in attempt.told) and told.reason == "sigterm":
            if stops:
                stops[-1].setdefault("signal", "SIGTERM")
            return
        if f"stop {told.reason}" in attempt.told:
            return
        attempt.told.add(f"stop {told.reason}")
        course.stopped = True
        course.tell(StopAnnounced(reason=told.reason), now)
        stops.append(
            {"reason": told.reason, "at": course.said(now, moment), "handled": told.handled}
        )

    def remark(self, lane: Lane, told: Remark, moment: Moment | None) -> None:
        """Take what stands around a fault, or weighs nothing."""
        course = self._course
        if told.kind == TRACEBACK:
            course.date(lane, moment)
            lane.traceback = _TRACEBACK_LINES
        elif told.kind == "loss":
            if lane.block is None:
                course.findings.losses += 1
            else:
                lane.block.loss = float(told.text)
        elif told.kind == "collective":
            rank, _, completed = told.text.split()
            if rank.isdigit() and int(rank) in course.findings.collectives:
                course.findings.collectives[int(rank)].setdefault("completed", int(completed))
        elif moment is not None:
            course.date(lane, moment)


def _with_rank(told: Broke, rank: int | None) -> Broke:
    return told if told.rank == rank else replace(told, rank=rank)
