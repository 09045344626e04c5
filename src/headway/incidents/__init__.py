"""Incidents: what broke a run, why, and what it took to recover; pure functions over a ledger."""

from headway.incidents.finding import incidents, restarts
from headway.incidents.loops import attempts_without_durable_step, loops
from headway.incidents.model import Evidence, Incident, Try
from headway.incidents.recovery import recovery
from headway.incidents.stragglers import Straggler, stragglers
from headway.incidents.wording import headline

__all__ = [
    "Evidence",
    "Incident",
    "Straggler",
    "Try",
    "attempts_without_durable_step",
    "headline",
    "incidents",
    "loops",
    "recovery",
    "restarts",
    "stragglers",
]
