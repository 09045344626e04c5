"""What a report says in plain words. Pure functions; numbers read as in `headway.wording`."""

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any

from headway import metrics
from headway.wording import (
    UNKNOWN,
    count,
    counted,
    duration,
    last_heard,
    percent,
    plain,
    ratio_range,
    when,
)

Report = Mapping[str, Any]

_SECOND = 1_000_000_000

IDLE = "Idle GPUs outside runs are not seen: Headway knows the time of runs, not of machines."
"""What no number here contains."""


def headline(report: Report) -> str:
    """Return the run in one or two sentences: what lasted, what was up, the largest loss."""
    elapsed = report["elapsed_ns"]
    if not elapsed:
        return "The run has just begun: there is nothing to divide yet."
    if not report["categories"].get("productive"):
        return f"No step has lasted yet, {duration(elapsed)} into the run."
    text = (
        f"{ratio_range(**report['training_goodput'])} of {duration(elapsed)} "
        f"became lasting progress; the machines were up "
        f"{ratio_range(**report['infrastructure_goodput'])} of it."
    )
    name, loss = largest_loss(report)
    if loss:
        title = metrics.category(name).title
        text += f" Largest loss: {title}, {percent(loss / elapsed)} ({duration(loss)})."
    return text


def in_gpu_time(report: Report) -> bool:
    """Return whether the run's GPU time is known."""
    return bool(report["gpu_time"]["elapsed_gpu_ns"])


def largest_loss(report: Report) -> tuple[str, int]:
    """Return the category, other than productive, that took most time, and that time."""
    losses = {name: ns for name, ns in report["categories"].items() if name != "productive"}
    name = max(losses, key=lambda one: losses[one], default="unattributed")
    return name, losses.get(name, 0)


def ratio_terms(report: Report, ratio: str) -> str:
    """Return numerator and denominator of a goodput: `1 min 34 s of 2 min 13 s`."""
    formula = report["formulas"][ratio]
    low, high = (duration(ns) for ns in formula["numerator_ns"])
    numerator = low if low == high else f"{low} to {high}"
    return f"{numerator} of {duration(formula['denominator_ns'])}"


def definition(report: Report, ratio: str) -> str:
    """Return what a goodput means and how it was computed."""
    meaning = {
        "training_goodput": metrics.TRAINING_GOODPUT,
        "infrastructure_goodput": metrics.INFRASTRUCTURE_GOODPUT,
    }[ratio]
    text = f"{meaning} Formula: {report['formulas'][ratio]['formula']}."
    if percent(report[ratio]["low"]) != percent(report[ratio]["high"]):
        text += " It is a range because some time has no evidence either way (unattributed)."
    return text


def state(report: Report, zone: tzinfo) -> str:
    """Return whether a run goes on, since when, and whether its numbers may still change."""
    if report["end"] is not None and not report["provisional"]:
        return (
            f"{plain(report['state']).capitalize()} at {when(report['end'], zone)}; these numbers "
            "are final."
        )
    heard = last_heard(report)
    said = "" if heard is None else f" {heard.capitalize()}."
    return f"{plain(report['state']).capitalize()}.{said} Began {when(report['start'], zone)}."


def arrival(report: Report, now: int) -> tuple[str, str]:
    """Return the time that is left until the target step, and what bounds it or why it is unknown.

    Of a run that has ended, the time it took.
    """
    if report["end"] is not None:
        return duration(report["elapsed_ns"]), f"{_pace(report)} steps per hour"
    found = report["arrival"]
    if found is None:
        return UNKNOWN, "record target_step"
    if not found["steps_left"]:
        return "reached", "every step is done"
    if found["low"] is None:
        return UNKNOWN, "no lasting step yet"
    left = duration(max(found["low"] - now, 0))
    if found["high"] is None:
        return left, "or longer: stopped of late"
    last = duration(max(found["high"] - now, 0))
    return left, "at a steady rate" if left == last else f"up to {last}"


def _pace(report: Report) -> str:
    elapsed, surviving = report["elapsed_ns"], report["steps"]["surviving"]
    return UNKNOWN if not elapsed else count(round(surviving * 3_600 * _SECOND / elapsed))


def progress(report: Report) -> str:
    """Return the highest step, with the target where it is known."""
    steps = report["steps"]
    if steps["target"] is None:
        return count(steps["highest"])
    return f"{count(steps['highest'])} of {count(steps['target'])}"


def beside_highest_step(report: Report) -> str:
    """Return what belongs beside the highest step: the target, and steps done again."""
    steps = report["steps"]
    again = f"{count(steps['rework'])} done again"
    return again if steps["target"] is None else f"of {count(steps['target'])}, {again}"


def checkpoint(report: Report) -> str:
    """Return the newest durable checkpoint and what a failure now would cost."""
    newest = report["checkpoint"]
    if newest is None:
        return (
            "No durable checkpoint yet: a failure now would lose all "
            f"{counted(report['steps_at_risk'], 'step')}."
        )
    moment = "when the run ended" if report["end"] is not None else "now"
    return (
        f"Newest durable checkpoint: step {count(newest['step'])} ({newest['state']}), "
        f"{checkpoint_age(report)} old {moment}; "
        f"{counted(report['steps_at_risk'], 'step')} at risk."
    )


def checkpoint_efficiency(report: Report) -> str:
    """Return the share of fault-free time that saves left to training, with its formula."""
    formula = report["formulas"]["checkpoint_efficiency"]["formula"]
    return f"Checkpoint efficiency: {percent(report['checkpoint_efficiency'])} ({formula})."


def checkpoint_age(report: Report) -> str:
    """Return the age of the newest durable checkpoint, or that there is none."""
    newest = report["checkpoint"]
    if newest is None:
        return "none yet"
    age = newest["age_s"]
    return duration(None if age is None else round(age * _SECOND))


def restarts(report: Report) -> int:
    """Return the number of restarts over all layers and causes."""
    return sum(n for causes in report["restarts"].values() for n in causes.values())
