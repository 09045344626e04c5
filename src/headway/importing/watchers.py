"""What a watcher of the scheduler says about a job: that it runs, waits, or is not there.

A job that it calls running while no step is completed hangs.
"""

from typing import Any

from headway.events import Allocation, Heartbeat, RestartPhase
from headway.importing.course import Course
from headway.importing.lanes import Lane
from headway.importing.sayings import JobState
from headway.importing.stamps import SECOND, Moment

_HANG_PULSES = 2
_MOST_STATES = 1000


class Watchers:
    """Takes what watchers say of the job of one run."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self.pulses: list[int] = []
        """When a watcher said that the job runs, since the last progress."""
        self._waits = False
        """Whether it was said that the job waits for its machines."""

    def take(self, lane: Lane, told: JobState, moment: Moment | None) -> None:
        """Take what a watcher says of the job."""
        course = self._course
        course.flush(lane)
        if told.state not in ("running", "another waits"):
            course.settle(lane, moment)
        elif course.held is None and course.journal.shift is None and moment is not None:
            course.anchor(lane, moment.time)
        now = course.date(lane, moment)
        said = course.said(now, moment)
        if told.alert:
            course.findings.alerts.append(said)
        known = course.findings.jobs
        entry: dict[str, Any] = {"state": told.state, "job": told.job, "from": said, "to": said}
        if told.started is not None:
            entry["started"] = told.started
        if told.expected is not None:
            entry["expected_start"] = told.expected
        same = [one for one in known if one["state"] == told.state and one["job"] == told.job]
        if same:
            same[-1]["to"] = said
        elif len(known) < _MOST_STATES:
            known.append(entry)
        if told.state == "running":
            self.pulses.append(now)
            phases = () if lane.phase is None else (lane.phase.name,)
            course.emit(lane, Heartbeat(open_phases=phases, last_step=lane.last_step), now)
        elif told.state == "backoff":
            began = RestartPhase(layer="scheduler", phase="backoff", state="began")
            course.tell(began, now)
            course.attempt.ended = True
        elif told.state == "cancelled":
            course.attempt.cancelled = course.attempt.cancelled or "cancelled"
        elif told.state in ("queued", "not scheduled"):
            if not self._waits and course.attempt.ended:
                course.journal.add(now, Allocation(gpus_held=0, source="scheduler's watcher"))
            self._waits = True

    def hang(self) -> None:
        """Say so where a watcher saw the job run on without progress."""
        course = self._course
        if len(self.pulses) < _HANG_PULSES:
            return
        lane = next(iter(course.lanes.values()))
        first, last = self.pulses[0], self.pulses[-1]
        course.findings.notes.append(
            f"no progress for at least {(last - first) / SECOND:.0f} s while the job runs"
        )
        course.findings.faults.append(
            {
                "kind": "hang",
                "message": "a watcher says that the job runs, and no step is completed",
                "exception": None,
                "rank": None,
                "node": None,
                "detected": course.said(last),
                "started": course.said(first),
                "ran_for_s": (last - first) / SECOND,
                "timeout_s": None,
                "secondary": False,
                "phase": None if lane.phase is None else lane.phase.name,
                "last_step": lane.last_step,
            }
        )
