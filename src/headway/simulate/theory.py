"""Closed formulas that simulated runs are compared with; times in any one unit."""

import math


def expected_ettr(
    interruptions: float, restart: float, interval: float, blocking: float = 0.0
) -> float:
    """Return the published estimate of effective training time (arXiv 2410.21680).

    `interruptions` is their number per unit of time, `interval` the time between checkpoints. Each
    interruption costs a restart and half an interval of the whole time, so it holds while the
    losses are small: it falls below zero where a run would still make a little progress.
    """
    return (1 - interruptions * (restart + interval / 2)) / (1 + blocking / interval)


def renewal_ettr(
    interruptions: float, restart: float, interval: float, blocking: float = 0.0
) -> float:
    """Return the exact share for interruptions at a constant rate while training.

    After each restart training lasts an exponential time and keeps its whole intervals: on average
    `interval / (exp(rate * period) - 1)` of it, a period being an interval and its save.
    """
    period = interval + blocking
    kept = interval / math.expm1(interruptions * period)
    return kept / (restart + 1 / interruptions)


def young(blocking: float, between: float) -> float:
    """Return Young's time between checkpoints: `sqrt(2 * blocking * time between failures)`."""
    return math.sqrt(2 * blocking * between)


def daly(blocking: float, between: float) -> float:
    """Return Daly's higher-order time between checkpoints."""
    if blocking >= 2 * between:
        return between
    ratio = blocking / (2 * between)
    return young(blocking, between) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - blocking
