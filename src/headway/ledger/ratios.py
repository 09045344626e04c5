"""Goodput from category totals (rule 26); unattributed time makes each ratio a range."""

from collections.abc import Collection, Mapping
from typing import Literal

from headway.ledger.model import Range
from headway.metrics import category


def goodput(
    totals: Mapping[str, int],
    denominator: int,
    kind: Literal["training", "infrastructure"],
    training_good: Collection[str] = (),
) -> Range:
    """Return a goodput of category totals in ns; without a denominator it is unknown.

    `training_good` names the custom categories that count as training good.
    """
    sure, unknown = 0, 0
    for name, amount in totals.items():
        declared = category(name, name in training_good)
        good = declared.training_good if kind == "training" else declared.infrastructure_good
        sure += amount if good else 0
        unknown += amount if good is None else 0
    return Range(
        low=sure / denominator if denominator else None,
        high=(sure + unknown) / denominator if denominator else None,
        numerator=(sure, sure + unknown),
        denominator=denominator,
    )


def checkpoint_efficiency(totals: Mapping[str, int]) -> float | None:
    """Return the share of time without faults that no blocking save took (rule 28)."""
    saving = totals.get("checkpoint_save", 0)
    whole = saving + sum(
        amount
        for name, amount in totals.items()
        if name in ("productive", "rolled_back", "data_wait", "evaluation")
        or name.startswith("custom:")
    )
    return 1 - saving / whole if whole else None
