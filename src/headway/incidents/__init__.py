"""Incidents: what broke a run, why, and what it took to recover; pure functions over a ledger."""

from headway.incidents.finding import incidents, restarts
from headway.incidents.loops import attempts_without_durable_step, loops
from headway.incidents.losses import GpuLoss, Loss, gpu_losses, loss_of, severe_faults
from headway.incidents.model import Evidence, Incident, Try
from headway.incidents.recovery import recovery
from headway.incidents.stragglers import Straggler, stragglers
from headway.incidents.wording import headline

__all__ = [
    "Evidence",
    "GpuLoss",
    "Incident",
    "Loss",
    "Straggler",
    "Try",
    "attempts_without_durable_step",
    "gpu_losses",
    "headline",
    "incidents",
    "loops",
    "loss_of",
    "recovery",
    "restarts",
    "severe_faults",
    "stragglers",
]
