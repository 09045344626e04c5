"""In which events a trouble shows itself.

`own_time` says that the evidence tells when it struck: an exception carries its own time, a
watchdog's record says how long it had waited. A killed process, a lost node and a broken link are
only seen afterwards, so the stall begins with the last completed step or phase.
"""

from dataclasses import dataclass

from headway.events import Event, Fault, GpuXid, RankExited, StopAnnounced
from headway.simulate.hardware import GPUS, device
from headway.simulate.plan import Trouble

OWN_TIME = ("exception", "numerical", "gpu_oom", "hang", "collective_timeout", "health_check")
WATCHDOGS = ("hang", "collective_timeout")
DIES_AT_ONCE = ("exception", "numerical", "gpu_oom", "kill", "host_oom", "health_check")
"""Symptoms whose rank is gone when it strikes; the others live or fall silent."""
KILLED = ("kill", "host_oom")
"""Symptoms that end the process, so that not even a wrapper in it survives."""
SILENT = ("lost_node",)
"""Symptoms after which nobody can report the rank's exit."""
_KILLED = 9
_EXCEPTIONS = {
    "exception": "builtins.RuntimeError",
    "numerical": "builtins.FloatingPointError",
    "gpu_oom": "torch.OutOfMemoryError",
    "health_check": "torch.AcceleratorError",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One event about a trouble: when, and whether the node's agent saw it or the rank itself."""

    time: int
    event: Event
    by_agent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """A trouble that struck: where, when, when it was noticed, and what was going on."""

    trouble: Trouble
    time: int
    seen: int
    rank: int
    node: str
    phase: str | None
    step: int | None


def signs(blow: Blow) -> list[Sign]:
    """Return the events about the rank on which a trouble struck, except its exit."""
    trouble, symptom = blow.trouble, blow.trouble.symptom
    found = []
    if trouble.xid is not None:
        name = device(blow.node, blow.rank % GPUS)
        xid = GpuXid(code=trouble.xid, device=name, message=trouble.label)
        found.append(Sign(time=blow.time, event=xid, by_agent=True))
    if symptom in _EXCEPTIONS:
        kind = "exception" if symptom == "health_check" else symptom
        found.append(Sign(time=blow.time, event=_fault(blow, kind), by_agent=False))
    if symptom in WATCHDOGS:
        found.append(Sign(time=blow.seen, event=_fault(blow, symptom), by_agent=symptom == "hang"))
    if symptom in ("health_check", "lost_node", "network", "storage"):
        event = Fault(
            kind=symptom,
            message=trouble.label,
            suspect_rank=blow.rank,
            suspect_node=blow.node,
        )
        found.append(Sign(time=blow.seen, event=event, by_agent=True))
    return found


def _fault(blow: Blow, kind: str) -> Fault:
    waited = blow.seen - blow.time if kind in WATCHDOGS else None
    return Fault(
        kind=kind,
        message=blow.trouble.label,
        exception=_EXCEPTIONS.get(blow.trouble.symptom),
        ran_for=waited,
        timeout=waited,
        phase=blow.phase,
        step=blow.step,
        suspect_rank=blow.rank,
        suspect_node=blow.node,
    )


def death(blow: Blow) -> RankExited:
    """Return how the rank itself ended, where it died at once."""
    symptom = blow.trouble.symptom
    if symptom in ("kill", "host_oom"):
        return RankExited(signal=_KILLED, by="kernel" if symptom == "host_oom" else "unknown")
    return RankExited(exit_code=1, by="itself")


def teardown(layer: str) -> RankExited:
    """Return how a rank ended that its launcher or scheduler stopped."""
    return RankExited(signal=_KILLED, by="scheduler" if layer == "scheduler" else "launcher")


def announcement(trouble: Trouble) -> StopAnnounced:
    """Return the announcement of a stop."""
    return StopAnnounced(reason=trouble.reason or "sigterm")
