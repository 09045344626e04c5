"""The exact account of a run's time: pure functions from events to categories."""

from headway.ledger.ledger import Ledger, Timeline, ledger
from headway.ledger.model import (
    AttemptSummary,
    CheckpointSummary,
    Interval,
    Problem,
    Range,
    StepCounts,
)

__all__ = [
    "AttemptSummary",
    "CheckpointSummary",
    "Interval",
    "Ledger",
    "Problem",
    "Range",
    "StepCounts",
    "Timeline",
    "ledger",
]
