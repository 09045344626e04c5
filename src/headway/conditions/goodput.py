"""Conditions of a run's newest hour and day: what its time became, and what its target allows.

Where time is unattributed, each takes the end of the range that accuses nobody.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from headway.conditions.gauge import DAY, HOUR, Condition
from headway.ledger import Ledger
from headway.windows import window

WINDOWS = {"1h": HOUR, "24h": DAY}
_LEAST_SHARE = 0.5
"""A run younger than this part of a window is not judged by it."""


def target_of(labels: Mapping[str, Any], otherwise: float) -> float:
    """Return the goodput that a run is to reach, by its label `goodput_target` where it is one."""
    own = labels.get("goodput_target")
    return own if isinstance(own, float) and 0 < own < 1 else otherwise


def conditions(ledger: Ledger, target: float) -> Iterator[Condition]:
    """Yield the conditions of each window; `target` is between 0 and 1."""
    now = ledger.closed_at
    for name, length in WINDOWS.items():
        part = window(ledger, now - length, now)
        if part.elapsed < _LEAST_SHARE * length:
            continue
        training, serving = part.training_goodput, part.infrastructure_goodput
        if training.high is None or serving.low is None or serving.high is None:
            continue
        gap = max(0.0, serving.low - training.high)
        yield "headway_window_goodput_gap_ratio", (name,), gap
        yield "headway_window_infrastructure_loss_ratio", (name,), 1 - serving.high
        yield "headway_goodput_burn_ratio", (name,), (1 - training.high) / (1 - target)
