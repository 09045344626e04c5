"""Goodput by the formulas of other libraries, as named options beside our own.

They differ mostly in the denominator, so a figure is only comparable with its formula beside it:
wall time from the first start to the last end (Google ml-goodput-measurement), wall time without
rescheduling (NVIDIA Cluster Readiness Engine), steps at a reference speed over first to last event
(AI-Hypercomputer resiliency `goodput_measure`).
"""

from dataclasses import dataclass

from headway.ledger import Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One figure by another library's formula; numerator and denominator in ns."""

    name: str
    formula: str
    numerator: int
    denominator: int

    @property
    def ratio(self) -> float | None:
        """The figure, 0 to 1; None without a denominator."""
        return self.numerator / self.denominator if self.denominator else None


def alternatives(ledger: Ledger, reference_step: int | None = None) -> list[Alternative]:
    """Return the figures other formulas give; `reference_step` is an ideal step in ns."""
    productive = ledger.categories["productive"]
    attempts = ledger.attempts
    begun = min((attempt.start for attempt in attempts), default=ledger.start)
    found = [
        Alternative(
            name="all_wall_time",
            formula="productive / (last end - first attempt's start)",
            numerator=productive,
            denominator=ledger.closed_at - begun,
        ),
        Alternative(
            name="without_rescheduling",
            formula="productive / (elapsed - down)",
            numerator=productive,
            denominator=ledger.elapsed - ledger.categories["down"],
        ),
    ]
    if reference_step is not None:
        gained = ledger.newest_step - ledger.first_base
        found.append(
            Alternative(
                name="reference_step",
                formula="surviving steps x reference step / (last event - first event)",
                numerator=max(gained, 0) * reference_step,
                denominator=ledger.last_event - ledger.first_event,
            )
        )
    return found


def slowdown(ledger: Ledger, reference_step: int) -> int:
    """Return how much longer the surviving steps took than at the reference speed, in ns."""
    gained = max(ledger.newest_step - ledger.first_base, 0)
    return max(ledger.categories["productive"] - gained * reference_step, 0)
