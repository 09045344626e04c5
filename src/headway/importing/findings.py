"""What a log itself tells, in its own numbers, beside the ledger that is made of it.

Counts of lines and of distinct steps, saves, evaluations, faults, gaps and oddities: what a reader
of the log would look up. Numbers of steps are as printed; `None` is what the log does not tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from headway.importing.oddities import Oddities
from headway.importing.sayings import Broke, StepLine, StepRun
from headway.importing.stamps import SECOND
from headway.sequences import SequenceSet

_MOST = 1000
"""Entries that a list holds; more are only counted."""


@dataclass(slots=True)
class AttemptFindings:
    """One attempt as the log shows it."""

    number: int
    first_step: int | None = None
    last_step: int | None = None
    step_time: int = 0
    untimed_steps: int = 0
    restarts: int | None = None
    end_told: bool = False
    """Whether a line says after which step it broke, whatever the interval of progress is."""

    def values(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "attempt": self.number,
            "first_step": self.first_step,
            "last_step": self.last_step,
            "last_step_told": self.end_told,
            "step_time_s": None if self.untimed_steps else self.step_time / SECOND,
            "restart_count": self.restarts,
        }


@dataclass(slots=True)
class Findings:
    """Collects what one run's lines tell."""

    step_lines: int = 0
    progress_lines: int = 0
    regular: SequenceSet = field(default_factory=SequenceSet)
    """Steps that are multiples of the interval, by it."""
    steps: SequenceSet = field(default_factory=SequenceSet)
    first: StepLine | None = None
    last: StepLine | None = None
    highest: int | None = None
    log_interval: int | None = None
    target: int | None = None
    skipped: int = 0
    nan: int = 0
    step_time: int = 0
    regressions: int = 0
    attempts: list[AttemptFindings] = field(default_factory=list)
    gaps: list[list[int]] = field(default_factory=list)
    saves: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    loads: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    stops: list[dict[str, Any]] = field(default_factory=list)
    exits: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    alerts: list[int | None] = field(default_factory=list)
    requeued: bool = False
    losses: int = 0
    """Losses that were printed with no step to which they belong."""
    steps_after_stop: int = 0
    budget: dict[str, int | None] | None = None
    restart_count: int | None = None
    collectives: dict[int, dict[str, int | None]] = field(default_factory=dict)
    samples: list[tuple[int, int]] = field(default_factory=list)
    oddities: Oddities = field(default_factory=Oddities)
    cumulative: int | None = None
    elapsed: int | None = None
    notes: list[str] = field(default_factory=list)
    published: dict[str, Any] = field(default_factory=dict)
    """Figures that the program computed itself."""

    def step(self, line: StepLine, covers: int, duration: int | None) -> None:
        """Take a line of progress that completed `covers` steps in `duration` ns."""
        self.step_lines += 1
        self.first = self.first or line
        self.last = line
        self.highest = max(self.highest or 0, line.step)
        interval = self.log_interval
        if interval is not None and line.step % interval == 0:
            self.regular.add(line.step // interval, line.step // interval)
        else:
            self.steps.add(line.step, line.step)
        self.target = line.target or self.target
        self.skipped += line.skipped
        if line.cumulative is not None:
            self.cumulative = line.cumulative
        if line.elapsed is not None:
            self.elapsed = line.elapsed
        if duration is not None:
            self.step_time += duration
        if line.samples is not None and len(self.samples) < _MOST:
            self.samples.append((line.step, line.samples))
        if line.loss is not None:
            self.oddities.loss(line.printed, line.loss)
        if duration is not None and not line.dispatch and not line.redrawn and covers:
            self.oddities.pace(line.printed, duration / covers / SECOND)

    def run(self, run: StepRun, first: int, last: int, interval: int, spent: Sequence[int]) -> None:
        """Take the lines `first` to `last` of a run; each took its `spent` ns."""
        steps, losses = run.steps[first : last + 1], run.losses[first : last + 1]
        line = run.line(last)
        self.step_lines += len(steps)
        self.step_time += sum(spent)
        self.highest = max(self.highest or 0, line.step)
        self.first = self.first or run.line(first)
        self.last = line
        self.target = line.target or self.target
        if line.step % interval == 0:
            self.regular.add(steps[0] // interval, line.step // interval)
        else:
            for step in steps:
                self.steps.add(step, step)
        room = max(_MOST - len(self.samples), 0)
        samples = run.samples[first : last + 1][:room]
        self.samples += zip(steps, map(int, samples), strict=False)
        self.oddities.losses(steps, losses)
        self.oddities.paces(steps, [one / interval / SECOND for one in spent])

    def gap(self, before: int, after: int) -> None:
        """Take note that steps between two lines are not in the log."""
        if len(self.gaps) < _MOST:
            self.gaps.append([before, after])

    def fault(self, told: Broke, at: int | None) -> None:
        """Take a fault."""
        if len(self.faults) < _MOST:
            self.faults.append(
                {
                    "kind": told.kind,
                    "message": told.message[:500],
                    "exception": told.exception,
                    "rank": told.rank,
                    "node": told.node,
                    "detected": at,
                    "started": None if at is None or told.ran_for is None else at - told.ran_for,
                    "ran_for_s": None if told.ran_for is None else told.ran_for / SECOND,
                    "timeout_s": None if told.timeout is None else told.timeout / SECOND,
                    "secondary": told.secondary,
                }
            )

    def values(self, shift: int | None) -> Mapping[str, Any]:
        """Return all as JSON values; times that no stamp dates are None."""
        return {
            "step_lines": self.step_lines,
            "progress_lines": self.progress_lines,
            "distinct_steps": sum(
                b - a + 1 for each in (self.steps, self.regular) for a, b in each
            ),
            "first_step_seen": None if self.first is None else self.first.printed,
            "last_step_seen": None if self.last is None else self.last.printed,
            "highest_step_completed": self.highest,
            "log_interval_steps": self.log_interval,
            "target_steps": self.target,
            "skipped_steps": self.skipped,
            "step_time_s": self.step_time / SECOND,
            "step_regressions": self.regressions,
            "restarts_seen": max(len(self.attempts) - 1, 0),
            "attempts": [one.values() for one in self.attempts[:_MOST]],
            "excerpt_gaps": self.gaps,
            "checkpoint_saves": self.saves[:_MOST],
            "checkpoint_loads": self.loads[:_MOST],
            "evaluations": self.evaluations[:_MOST],
            "faults": self.faults,
            "stops": self.stops,
            "exits": self.exits,
            "jobs": self.jobs,
            "alerts": self.alerts[:_MOST],
            "requeued": self.requeued,
            "losses_without_step": self.losses,
            "steps_after_stop": self.steps_after_stop,
            "restart_budget": self.budget,
            "restart_count": self.restart_count,
            "collectives": {str(rank): one for rank, one in sorted(self.collectives.items())},
            "ranks_out_of_step": self._out_of_step(),
            "samples": self._samples(),
            "anomalies": [one.values() for one in self.oddities.found],
            "elapsed_counter_s": None if self.elapsed is None else self.elapsed / SECOND,
            "steps_in_job_at_most": self._steps_in_job(),
            "cumulative_step_time_s": (
                None if self.cumulative is None else self.cumulative / SECOND
            ),
            "published": self.published,
            "notes": self.notes,
        }

    def _steps_in_job(self) -> int | None:
        """Return how many steps fit into the time that a job says it has run.

        What the steps took in all, over all jobs, leaves the earlier jobs at least the rest.
        """
        line = self.last
        if line is None or line.elapsed is None or not line.per_step or line.redrawn:
            return None
        fits = line.elapsed // line.per_step
        if self.cumulative is not None and self.cumulative > line.elapsed:
            earlier = (self.cumulative - line.elapsed) * line.step // self.cumulative
            fits = min(fits, line.step - earlier)
        return fits

    def _out_of_step(self) -> bool | None:
        numbers = {one["sequence"] for one in self.collectives.values()}
        return len(numbers) > 1 if len(self.collectives) > 1 else None

    def _samples(self) -> Mapping[str, Any] | None:
        """Tell whether the consumed samples follow from the step (A9: data seen again)."""
        known = sorted(set(self.samples))
        pairs = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(known)]
        rates = {gained / steps for steps, gained in pairs if steps}
        if not rates:
            return None
        one = rates.pop() if len(rates) == 1 else None
        return {"per_step": one, "linear": one is not None}
