"""The exact account of a run's time: pure functions from events to categories."""

from headway.ledger.ledger import Ledger
from headway.ledger.model import (
    AttemptSummary,
    CheckpointSummary,
    Interval,
    Problem,
    Range,
    StepCounts,
)
from headway.ledger.timeline import Timeline, ledger

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
