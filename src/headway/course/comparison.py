"""Two runs side by side: the figures that people compare, with units and differences.

A figure is a range where time without evidence makes it one; so is then the difference.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headway.metrics import CATEGORIES, category

Report = Mapping[str, Any]
_HOUR = 3_600 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A number, or two bounds of one; `None` is unknown."""

    low: float | None
    high: float | None

    def minus(self, other: "Span") -> "Span":
        """Return what this exceeds another by: 5 to 6 exceeds 1 to 3 by 2 to 5."""
        if self.low is None or self.high is None or other.low is None or other.high is None:
            return Span(low=None, high=None)
        return Span(low=self.low - other.high, high=self.high - other.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of two runs; the unit is `ratio`, `ns` or what is counted.

    `higher_is_better` is None where neither is.
    """

    name: str
    title: str
    unit: str
    higher_is_better: bool | None
    one: Span
    other: Span

    @property
    def difference(self) -> Span:
        """What the first run exceeds the other by."""
        return self.one.minus(self.other)


def compared(one: Report, other: Report) -> list[Figure]:
    """Return the figures of two reports, the same in both, in reading order."""
    found = []
    for name, title, unit, better, value in _figures(one):
        theirs = next((figure[4] for figure in _figures(other) if figure[0] == name), 0.0)
        found.append(
            Figure(
                name=name,
                title=title,
                unit=unit,
                higher_is_better=better,
                one=_span(value),
                other=_span(theirs),
            )
        )
    return found


_Row = tuple[str, str, str, bool | None, Any]


def _figures(report: Report) -> Iterator[_Row]:
    elapsed, steps = report["elapsed_ns"], report["steps"]
    recovered = [
        one["recovered"] - one["opened"]
        for one in report["incidents"]
        if one["recovered"] is not None
    ]
    productive = report["categories"].get("productive", 0)
    surviving = steps["surviving"]
    yield "training_goodput", "Training goodput", "ratio", True, report["training_goodput"]
    yield (
        "infrastructure_goodput",
        "Infrastructure goodput",
        "ratio",
        True,
        report["infrastructure_goodput"],
    )
    yield (
        "checkpoint_efficiency",
        "Checkpoint efficiency",
        "ratio",
        True,
        report["checkpoint_efficiency"],
    )
    yield "elapsed", "Elapsed", "ns", None, elapsed
    yield "gpus", "GPUs", "GPUs", None, report["gpu_time"]["gpus"]
    yield "highest_step", "Highest step", "steps", None, steps["highest"]
    yield (
        "step_time",
        "Time per lasting step",
        "ns",
        False,
        productive / surviving if surviving else None,
    )
    yield (
        "steps_per_hour",
        "Lasting steps per hour",
        "steps/h",
        True,
        surviving * _HOUR / elapsed if elapsed else None,
    )
    yield "rework", "Steps done again", "steps", False, steps["rework"]
    yield "attempts", "Attempts", "attempts", False, report["attempts"]
    yield "failed_starts", "Failed starts", "attempts", False, report["failed_starts"]
    yield "incidents", "Incidents", "incidents", False, len(report["incidents"])
    yield "recovery", "Median time to recover", "ns", False, _median(recovered)
    for name in CATEGORIES:
        share = report["categories"].get(name, 0) / elapsed if elapsed else None
        better = True if name == "productive" else None if name == "unattributed" else False
        yield f"share:{name}", f"{category(name).title}, of elapsed", "ratio", better, share


def _span(value: Any) -> Span:
    if isinstance(value, Mapping):
        return Span(low=value["low"], high=value["high"])
    return Span(low=value, high=value)


def _median(values: list[int]) -> int | None:
    return sorted(values)[len(values) // 2] if values else None
