"""How people are told of outcomes and phases: sentences and colours, the same on every page."""

from collections.abc import Mapping

from headway import metrics
from headway.incidents.model import PHASES

OUTCOME_WORDS: Mapping[str, str] = {
    "held_at_first": "The first attempt held.",
    "held_after_retries": "A later attempt held.",
    "escalated": "An outer layer had to take over.",
    "not_recovered": "No attempt held before the run ended.",
    "open": "No attempt has held yet.",
}
PHASE_MEANINGS: Mapping[str, str] = {
    "detect": "From the fault until anybody acts on it.",
    "teardown": "Stopping what is left of the broken attempt.",
    "wait": "Queue and back-off: nobody starts anything.",
    "start": "Rendezvous, processes, model.",
    "load": "Reading the checkpoint back.",
    "recompute": "Doing steps again that had been done before.",
}
PHASE_COLOURS: Mapping[str, str] = {
    phase: metrics.category(category).colour
    for phase, category in zip(
        PHASES,
        ("stalled", "restart", "down", "startup", "checkpoint_load", "rolled_back"),
        strict=True,
    )
}
"""Each phase has the colour of the category in which the ledger counts most of its time."""
