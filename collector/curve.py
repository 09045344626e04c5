"""The step curve of a run: which step was reached when, thinned for a screen."""

from collections.abc import Sequence
from typing import Any

from headway.ledger import Interval


def step_curve(intervals: Sequence[Interval], points: int) -> list[dict[str, Any]]:
    """Return at most about `points` points, first and last included.

    Steps within one interval are evenly spaced to the eye, so its two ends are enough: steps
    1-100 of an attempt are drawn from step 0 at its start to step 100 at its end.
    """
    found: list[dict[str, Any]] = []
    for interval in intervals:
        if interval.first_step is None or interval.last_step is None:
            continue
        start = _point(interval.start, interval.first_step - 1, interval.attempt)
        end = _point(interval.end, interval.last_step, interval.attempt)
        if found and found[-1] == start | {"step": interval.first_step}:
            found[-1] = end  # a step of several pieces is reached with the last of them
            continue
        if not found or found[-1] != start:
            found.append(start)
        found.append(end)
    if len(found) <= points:
        return found
    last = len(found) - 1
    return [found[last * index // (points - 1)] for index in range(points)]


def _point(time: int, step: int, attempt: str | None) -> dict[str, Any]:
    return {"time": time, "step": step, "attempt": attempt}
