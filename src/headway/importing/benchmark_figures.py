"""The figures that the published NVRx benchmark prints of a run, put right and set beside ours.

Formulas as coded in awslabs/awsome-distributed-ai, 3.test_cases/pytorch/nvrx (March 2026). What it
calls training time is in process all time since the first start; under a launcher and in containers
it ends with the last save of each process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_CASCADE_SLACK = 1.0
"""Seconds by which the parts of a record may miss those of the one before it."""
_SAME = 0.005
"""Share by which two figures may differ and still agree: what is printed is rounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure by the program's formula and by ours; `None` is unknown."""

    figure: str
    theirs: float | None
    ours: float | None
    formula: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """The same run by our formulas: percent, seconds and steps; `None` is unknown.

    `in_process` is whether all its restarts were inside the processes.
    """

    training: float | None = None
    infrastructure: float | None = None
    outage: float | None = None
    recovery: float | None = None
    lost: float | None = None
    step_time: float | None = None
    rework: int | None = None
    in_process: bool | None = None


def corrected(results: Mapping[str, Any]) -> Mapping[str, float]:
    """Put the figures of a `results.json` right, as far as its own numbers allow."""
    wall = _number(results, "job_wall_time_seconds")
    records = [one for one in results.get("recovery_breakdown") or [] if isinstance(one, dict)]
    groups = outages(records)
    outage = sum(groups)
    found: dict[str, float] = {}
    if groups:
        found["outage_seconds"] = outage
        found["recovery_seconds_per_fault"] = outage / len(groups)
    if wall:
        found["infra_goodput_pct"] = 100 * (wall - outage) / wall
        wasted = _number(results, "wasted_time_seconds")
        saving = _number(results, "total_checkpoint_time_seconds")
        if wasted is not None and saving is not None:
            setup = _number(results, "setup_time_seconds") or 0.0
            useful = max(wall - outage - wasted - saving - setup, 0.0)
            found["training_goodput_pct"] = 100 * useful / wall
    return found


def restart_type(results: Mapping[str, Any]) -> str | None:
    """Return the type of all restart records of a `results.json`, None if they differ."""
    records = results.get("recovery_breakdown") or []
    types = {str(one.get("type")) for one in records if isinstance(one, dict)}
    return types.pop() if len(types) == 1 else None


def from_their_numbers(figures: Mapping[str, Any]) -> Ours:
    """Return ours as far as the program's own numbers tell it, for a run without a log."""
    kind = figures.get("restart_type")
    return Ours(
        training=_number(figures, "corrected training_goodput_pct"),
        infrastructure=_number(figures, "corrected infra_goodput_pct"),
        outage=_number(figures, "corrected outage_seconds"),
        recovery=_number(figures, "corrected recovery_seconds_per_fault"),
        lost=_number(figures, "wasted_time_seconds"),
        in_process=None if kind is None else kind == "in-process",
    )


def differences(figures: Mapping[str, Any], ours: Ours) -> list[Difference]:
    """Return each figure that the program tells beside ours, and why its formula gives another."""
    rows = [
        (
            "training_goodput_pct",
            ours.training,
            "time of steps that survive / wall time",
            _why_training(ours),
        ),
        (
            "infra_goodput_pct",
            ours.infrastructure,
            "(wall time - union of outages) / wall time",
            _why_infrastructure(figures, ours),
        ),
        (
            "avg_recovery_time_seconds",
            ours.recovery,
            "sum of outages / number of outages",
            "theirs is the mean over restart attempts, called a mean per fault, where attempts "
            "that follow each other without progress are one outage",
        ),
        (
            "avg_step_time_seconds",
            ours.step_time,
            "time in steps / steps executed",
            "theirs divides the training time by the steps that survive, so that whatever else "
            "the training time holds makes a step longer",
        ),
        (
            "wasted_steps",
            ours.rework,
            "steps executed - steps that differ",
            "theirs takes of every fault of the schedule that it came true and cost all steps "
            "since the last multiple of the save interval",
        ),
    ]
    return [
        Difference(
            figure=name,
            theirs=theirs,
            ours=mine,
            formula=formula,
            why=f"both agree in this run, though {why}" if _agree(theirs, mine) else why,
        )
        for name, mine, formula, why in rows
        if (theirs := _number(figures, name)) is not None
    ]


def outages(records: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the length of each outage in s: records of one cascade overlap and are one.

    A record whose shutdown holds all of the record before it, and which resumed from the same step,
    counts from the same fault.
    """
    found: list[float] = []
    before: float | None = None
    resumed: object = None
    for record in records:
        shutdown = _number(record, "shutdown_seconds") or 0.0
        startup = _number(record, "startup_total_seconds") or 0.0
        whole = shutdown + startup
        again = before is not None and shutdown >= before - _CASCADE_SLACK
        if again and record.get("resumed_from_step") == resumed:
            found[-1] = whole
        else:
            found.append(whole)
        before, resumed = whole, record.get("resumed_from_step")
    return found


def _why_training(ours: Ours) -> str:
    why = (
        "theirs is steps x mean step time / wall time, where the mean is (training time - saves) / "
        "steps: the steps cancel, so that work that was lost is never subtracted"
    )
    if ours.in_process is None:
        return f"{why}; in process its training time holds the outages, too"
    if not ours.in_process:
        return (
            f"{why}; here its training time ends with the last save of each process, which leaves "
            "most of the lost steps out of it"
        )
    return (
        f"{why}; in process its training time is all time since the first start, with the "
        f"outages{_seconds(ours.outage)} and the lost steps{_seconds(ours.lost)}"
    )


def _why_infrastructure(figures: Mapping[str, Any], ours: Ours) -> str:
    shutdown = _number(figures, "total_shutdown_time_seconds")
    startup = _number(figures, "total_startup_time_seconds")
    added = None if shutdown is None or startup is None else shutdown + startup
    return (
        f"theirs adds up shutdown and start-up of every restart record{_seconds(added)}, where a "
        "restart without a new fault counts its shutdown from the old fault again; the outages "
        f"themselves do not overlap{_seconds(ours.outage)}"
    )


def _seconds(value: float | None) -> str:
    return "" if value is None else f" ({value:,.1f} s)"


def _agree(theirs: float, ours: float | None) -> bool:
    return ours is not None and abs(theirs - ours) <= _SAME * max(abs(theirs), abs(ours))


def _number(found: Mapping[str, Any], name: str) -> float | None:
    value = found.get(name)
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and value == value and abs(value) < 1e15 else None  # type: ignore[arg-type]
