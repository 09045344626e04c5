"""Figures over several runs. Pure functions."""

from collections.abc import Mapping, Sequence
from typing import Any

Report = Mapping[str, Any]


def weighted(reports: Sequence[Report], ratio: str) -> tuple[float, float] | None:
    """Return a goodput over all runs as (low, high), each run weighted by its size.

    One run alone has the goodput that its own page shows.
    """
    begun = [report for report in reports if report["elapsed_ns"]]
    by_gpus = knows_gpus(begun)
    weights = [one["elapsed_ns"] * (one["gpu_time"]["gpus"] if by_gpus else 1) for one in begun]
    whole = sum(weights)
    if not whole:
        return None
    low, high = (
        sum(one[ratio][end] * weight for one, weight in zip(begun, weights, strict=True)) / whole
        for end in ("low", "high")
    )
    return low, high


def knows_gpus(reports: Sequence[Report]) -> bool:
    """Return whether every run says how many GPUs it held; mixed weights would compare nothing."""
    return all(report["gpu_time"]["gpus"] for report in reports)


def in_gpu_time(report: Report) -> bool:
    """Return whether the run's GPU time is known."""
    return bool(report["gpu_time"]["elapsed_gpu_ns"])


def live(reports: Sequence[Report]) -> list[Report]:
    """Return the runs that still go on."""
    return [report for report in reports if report["state"] == "running"]
