"""Conditions of a run's newest hour and day: what its time became, and what its target allows.

Where time is unattributed, each takes the end of the range that accuses nobody.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.conditions.gauge import DAY, HOUR, Condition
from headway.conditions.waiting import waits
from headway.ledger import Ledger
from headway.windows import window

WINDOWS = {"1h": HOUR, "24h": DAY}
_LEAST = {"1h": 0.8, "24h": 0.5}
"""A run younger than this part of a window is not judged by it; the first hour is a start-up's."""


def target_of(labels: Mapping[str, Any], otherwise: float) -> float:
    """Return the goodput that a run is to reach, by its label `goodput_target` where it is one."""
    own = labels.get("goodput_target")
    return own if isinstance(own, float) and 0 < own < 1 else otherwise


def conditions(ledger: Ledger, report: Mapping[str, Any], target: float) -> Iterator[Condition]:
    """Yield the conditions of each window; `target` is between 0 and 1.

    What a window says of a run that was mended since is past: it counts as far as its newest
    quarter says it, too. Time without machines after a stop that was announced is left out.
    """
    holes = list(_holes(ledger, report))
    for name, length in WINDOWS.items():
        whole = _losses(ledger, length, holes, _LEAST[name])
        newest = _losses(ledger, length // 4, holes, _LEAST[name])
        if whole is None or newest is None:
            continue
        gap, serving, training = map(min, zip(whole, newest, strict=True))
        yield "headway_window_goodput_gap_ratio", (name,), gap
        yield "headway_window_infrastructure_loss_ratio", (name,), serving
        yield "headway_goodput_burn_ratio", (name,), training / (1 - target)


def _holes(ledger: Ledger, report: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield when the run had been told to stop and had no machines, as far as a day back."""
    for one in report["incidents"]:
        if (one["recovered"] or ledger.closed_at) > ledger.closed_at - DAY:
            yield from waits(ledger, one)


def _losses(
    ledger: Ledger, length: int, holes: Sequence[tuple[int, int]], least: float
) -> tuple[float, float, float] | None:
    """Return shares of a newest stretch of `length` ns: gap, lost to machines, lost to training.

    None where less than the `least` share of it is left to judge.
    """
    now = ledger.closed_at
    part = window(ledger, now - length, now, holes)
    training, serving = part.training_goodput, part.infrastructure_goodput
    if part.elapsed < least * length or training.high is None:
        return None
    if serving.low is None or serving.high is None:
        return None
    return max(0.0, serving.low - training.high), 1 - serving.high, 1 - training.high
