"""Figures over several runs. Pure functions."""

from collections.abc import Mapping, Sequence
from typing import Any

Report = Mapping[str, Any]


def weighted(reports: Sequence[Report], ratio: str) -> tuple[float, float] | None:
    """Return a goodput over all runs as (low, high): each run counts by its elapsed time.

    GPU time is the weight where every run says how many GPUs it held, so that a large run counts
    for more than a small one; mixed units would compare nothing.
    """
    if all(in_gpu_time(report) for report in reports):
        parts = [(one["gpu_time"][ratio], one["gpu_time"]["elapsed_gpu_ns"]) for one in reports]
    else:
        parts = [(one[ratio], one["elapsed_ns"]) for one in reports if one["elapsed_ns"]]
    whole = sum(weight for _, weight in parts)
    if not whole:
        return None
    low, high = (
        sum(goodput[end] * weight for goodput, weight in parts) / whole for end in ("low", "high")
    )
    return low, high


def in_gpu_time(report: Report) -> bool:
    """Return whether the run's GPU time is known."""
    return bool(report["gpu_time"]["elapsed_gpu_ns"])


def live(reports: Sequence[Report]) -> list[Report]:
    """Return the runs that still go on."""
    return [report for report in reports if report["state"] == "running"]
