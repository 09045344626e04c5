"""The cause of an incident from its evidence (design section 5).

Free text alone never decides; consequences are not causes: what a peer says after the first fault
and what a launcher sends to the others count only when nothing better is there.
"""

import re
from collections.abc import Iterable, Sequence

from headway.events import AttemptEnded, Fault, RankExited, StopAnnounced
from headway.incidents.model import Evidence, Seen, Verdict

_SECOND = 10**9
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
WATCHDOG_CAUSES = ("hang", "collective_timeout")
_LAG = 5 * _SECOND
"""A death that its node noticed this much after the others were told to stop still came first."""
_PEER_ERRORS = (
    "connection reset by peer",
    "connection closed by peer",
    "connection refused",
    "broken pipe",
    "remote process exited",
    "ncclremoteerror",
    "ncclsystemerror",
    "communicator was aborted",
    "socket timeout",
    "peer may have",
)
"""What a rank says when the other end of its connection is gone."""
_PEER_EXCEPTIONS = ("ConnectionResetError", "ConnectionRefusedError", "BrokenPipeError", "EOFError")


def of_fault(seen: Seen, fault: Fault, phase: str | None) -> Evidence:
    """Return a recorded fault as evidence; `phase` is what its rank was in."""
    name = fault.exception or fault.kind.replace("_", " ")
    message = f": {fault.message}" if fault.message else ""
    accused = seen.rank if fault.suspect_rank is None else fault.suspect_rank
    return Evidence(
        time=seen.time,
        began=seen.began,
        cause=_OF_FAULT[fault.kind],
        kind=fault.kind,
        words=f"{name}{_on(accused)}{message}",
        rank=accused,
        node=fault.suspect_node or (seen.node if accused == seen.rank else None),
        observer=seen.rank,
        phase=phase,
        signature=_signature(fault),
        echo=_is_echo(fault),
        named=fault.suspect_rank is not None or fault.suspect_node is not None,
        attempt=seen.attempt,
        sources=seen.sources,
    )


def of_exit(seen: Seen, exit_: RankExited | AttemptEnded, *, is_echo: bool = False) -> Evidence:
    """Return a rank's own exit as evidence.

    `is_echo` says that it had told nothing but echoes: with a code of its own it left for them.
    """
    if exit_.signal is not None:
        by_kernel = isinstance(exit_, RankExited) and exit_.by == "kernel"
        words = f"ended by signal {exit_.signal}"
        cause = "host_oom" if by_kernel and exit_.signal == 9 else "killed"
    elif exit_.exit_code is None:
        words, cause = "ended without a word", "killed"
    else:
        words = f"exit code {exit_.exit_code}"
        cause = "killed" if exit_.exit_code in (137, -9) else "exception"
    return Evidence(
        time=seen.time,
        began=seen.began,
        cause=cause,
        kind="exit",
        words=words + _on(seen.rank),
        rank=seen.rank,
        node=seen.node,
        observer=seen.rank,
        signature=words,
        echo=is_echo and cause == "exception",
        attempt=seen.attempt,
        sources=seen.sources,
    )


def of_stop(seen: Seen, stop: StopAnnounced, *, by_person: bool) -> Evidence:
    """Return an announced stop as evidence; it accuses no rank.

    A plain SIGTERM is taken for a scheduler's, unless the ranks are known to be ended `by_person`.
    """
    sent_by_person = stop.reason == "sigterm" and by_person
    return Evidence(
        time=seen.time,
        began=seen.began,
        cause="operator" if sent_by_person else _OF_STOP.get(stop.reason, "operator"),
        kind=f"stop {stop.reason}",
        words=f"stop announced: {stop.reason.replace('_', ' ')}",
        observer=seen.rank,
        attempt=seen.attempt,
        sources=seen.sources,
    )


def decide(evidence: Iterable[Evidence], at_start: bool) -> Verdict:
    """Choose the cause; `at_start` says that the attempt never completed a step.

    An out-of-memory record beats an announced preemption, the first fault beats the later ones.
    """
    known = sorted(evidence, key=lambda item: (item.time, item.began))
    for cause in _DECIDES:
        # of several records the one that names the GPU or the rank tells more
        for item in sorted(known, key=lambda item: (item.gpu is None, item.rank is None)):
            if item.cause == cause:
                return _verdict(item, _on_record(item))
    telling = without_consequences(known)
    for item in telling or [item for item in known if item.cause != "unknown"]:
        if at_start and item.cause in ("exception", "killed"):
            return _verdict(item, "failed before its first step", "startup_failure")
        if item.kind == "stop sigterm":
            item = next((other for other in telling if _is_specific(other)), item)
        echo = "nothing but echoes of a dead peer" if item.echo else "first fault"
        return _verdict(item, echo, "network" if item.echo else item.cause)
    if at_start:
        return Verdict(cause="startup_failure", rule="ended before its first step")
    return Verdict(cause="unknown", rule="no evidence")


def without_consequences(known: Sequence[Evidence]) -> list[Evidence]:
    """Leave out what follows from another observation; `known` is in order of observation.

    Left out are connection errors of peers, and a plain SIGTERM that reached the others about
    when a rank died that nobody had told to stop.
    """
    told = {item.observer for item in known if item.kind.startswith("stop ")}
    firm = [item for item in known if not item.echo and item.cause != "unknown"]
    deaths = [
        item.time
        for item in firm
        if item.observer not in told and not item.kind.startswith("stop ")
    ]
    first = min(deaths, default=None)
    return [
        item
        for item in firm
        if not (item.kind == "stop sigterm" and first is not None and first <= item.time + _LAG)
    ]


def _verdict(item: Evidence, rule: str, cause: str | None = None) -> Verdict:
    return Verdict(
        cause=cause or item.cause,
        rule=rule,
        rank=item.rank,
        node=item.node,
        gpu=item.gpu,
        signature=item.signature,
        suspect_rule="the record names it" if item.named else item.placed,
    )


def _on_record(item: Evidence) -> str:
    if item.classification is None:
        return f"{item.cause.replace('_', ' ')} on record"
    return f"{item.signature} is of class {item.classification} by the policy {item.policy}"


def _is_specific(item: Evidence) -> bool:
    return item.kind.startswith("stop ") and item.kind != "stop sigterm"


def _is_echo(fault: Fault) -> bool:
    if fault.kind not in ("exception", "network"):
        return False
    name = (fault.exception or "").rpartition(".")[2]
    words = (fault.message or "").lower()
    return (
        fault.kind == "network"
        or name in _PEER_EXCEPTIONS
        or any(told in words for told in _PEER_ERRORS)
    )


def _signature(fault: Fault) -> str:
    """Return what two occurrences of one defect have in common."""
    line = (fault.message or "").strip().partition("\n")[0]
    words = re.sub(r"0x[0-9a-fA-F]+|\d+", "#", line)[:120]
    return f"{fault.exception or fault.kind}: {words}" if words else fault.exception or fault.kind


def _on(rank: int | None) -> str:
    return "" if rank is None else f" on rank {rank}"
