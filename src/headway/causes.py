"""The cause of an incident from its evidence (design section 5).

Free text alone never decides; consequences are not causes: what a peer says after the first fault
and what a launcher sends to the others count only when nothing better is there.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from headway.events import AttemptEnded, Fault, RankExited, StopAnnounced

_OF_FAULT = {
    "exception": "exception",
    "gpu_oom": "gpu_oom",
    "host_oom": "host_oom",
    "collective_timeout": "collective_timeout",
    "heartbeat_timeout": "hang",
    "section_timeout": "hang",
    "hang": "hang",
    "signal": "killed",
    "lost_rank": "killed",
    "lost_node": "node_lost",
    "network": "network",
    "storage": "storage",
    "health_check": "gpu_fault",
    "numerical": "numerical",
    "unknown": "unknown",
}
_OF_STOP = {"preemption": "preemption", "time_limit": "time_limit", "sigterm": "preemption"}
_DECIDES = ("gpu_fault", "host_oom", "gpu_oom", "node_lost", "numerical", "storage")
"""Causes that outrank an earlier fault, because they provoke it: most telling first."""
_WEAK = ("unknown", "network", "killed")
"""Causes that any other evidence outranks: they are what a dead peer looks like from outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One observation about an incident: when it was made, when what it saw began, in ns."""

    time: int
    began: int
    cause: str
    words: str
    rank: int | None = None
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The cause that was chosen, the rule that chose it and whom the evidence accuses."""

    cause: str
    rule: str
    rank: int | None
    node: str | None


def of_fault(time: int, began: int, rank: int | None, node: str | None, fault: Fault) -> Evidence:
    """Return a recorded fault as evidence."""
    name = fault.exception or fault.kind.replace("_", " ")
    message = f": {fault.message}" if fault.message else ""
    accused = rank if fault.suspect_rank is None else fault.suspect_rank
    return Evidence(
        time=time,
        began=began,
        cause=_OF_FAULT[fault.kind],
        words=f"{name}{message}{_on(accused)}",
        rank=accused,
        node=fault.suspect_node or node,
    )


def of_exit(
    time: int, began: int, rank: int, node: str | None, exit_: RankExited | AttemptEnded
) -> Evidence:
    """Return a rank's own exit as evidence."""
    if exit_.signal is not None:
        by_kernel = isinstance(exit_, RankExited) and exit_.by == "kernel"
        words = f"ended by signal {exit_.signal}{_on(rank)}"
        cause = "host_oom" if by_kernel and exit_.signal == 9 else "killed"
    else:
        words = f"exit code {exit_.exit_code}{_on(rank)}"
        cause = "killed" if exit_.exit_code in (137, -9) else "exception"
    return Evidence(time=time, began=began, cause=cause, words=words, rank=rank, node=node)


def of_stop(time: int, stop: StopAnnounced) -> Evidence:
    """Return an announced stop as evidence; it accuses no rank."""
    cause = _OF_STOP.get(stop.reason, "operator")
    return Evidence(time=time, began=time, cause=cause, words=f"stop announced: {stop.reason}")


def _on(rank: int | None) -> str:
    return "" if rank is None else f" on rank {rank}"


def decide(evidence: Iterable[Evidence], at_start: bool) -> Verdict:
    """Choose the cause; `at_start` says that the attempt never completed a step.

    An out-of-memory record beats an announced preemption, the first fault beats the later ones.
    """
    known = sorted(evidence, key=lambda item: (item.began, item.time))
    for cause in _DECIDES:
        for item in known:
            if item.cause == cause:
                return Verdict(
                    cause=cause, rule=f"{cause} on record", rank=item.rank, node=item.node
                )
    strong = [item for item in known if item.cause not in _WEAK]
    for item in strong or [item for item in known if item.cause != "unknown"]:
        if at_start and item.cause in ("exception", "killed"):
            return Verdict(
                cause="startup_failure",
                rule="failed before its first step",
                rank=item.rank,
                node=item.node,
            )
        return Verdict(cause=item.cause, rule="first fault", rank=item.rank, node=item.node)
    if at_start:
        return Verdict(
            cause="startup_failure", rule="ended before its first step", rank=None, node=None
        )
    return Verdict(cause="unknown", rule="no evidence", rank=None, node=None)
