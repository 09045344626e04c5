"""What was observed of an attempt's end, as evidence with the records behind it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.events import AttemptEnded, Fault, RankExited
from headway.incidents.causes import (
    WATCHDOG_CAUSES,
    decide,
    of_exit,
    of_fault,
    of_stop,
)
from headway.incidents.gpu_evidence import gpu_evidence
from headway.incidents.hangs import (
    doing,
    hang_suspect,
    out_of_step,
    silent_nodes,
    silent_ranks,
    stall,
)
from headway.incidents.model import Evidence, Seen, Verdict
from headway.incidents.reading import Reading, node_of
from headway.ledger.account import Account
from headway.ledger.breakage import WATCHDOGS, fault_start, fired, is_breakage

_PATIENT = ("warmup", "checkpoint_save", "checkpoint_load", "data_wait")
"""Phases that may take long without anything being wrong."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How one attempt broke: when, the evidence, and the verdict on it."""

    position: int
    opened: int
    evidence: tuple[Evidence, ...]
    verdict: Verdict
    checkpoint: str | None
    suspected_false_alarm: bool


def failure(reading: Reading, position: int) -> Failure:
    """Return how an attempt broke."""
    account = reading.accounts[position]
    evidence = observed(reading, position)
    opened = account.broken.fault
    if opened is None:
        opened = min((item.began for item in evidence), default=account.broken.done)
    opened = min(opened, reading.ledger.closed_at)
    told = gpu_evidence(reading, position, opened, evidence)
    # what decides comes first: of thousands of ranks a report shows the first ones alone
    evidence = [item for item in told if item.cause == "gpu_fault"] + evidence
    evidence += [item for item in told if item.cause != "gpu_fault"]
    verdict = decide(evidence, at_start=account.steps is None)
    if verdict.cause in WATCHDOG_CAUSES and verdict.suspect_rule is None:
        verdict = _suspected(reading, account, verdict, evidence)
    if verdict.node is None:
        verdict = replace(verdict, node=node_of(account.attempt, verdict.rank))
    if verdict.cause == "gpu_fault" and verdict.gpu is None:
        verdict = replace(verdict, gpu=_gpu_of(reading, account, verdict.rank))
    return Failure(
        position,
        opened,
        tuple(evidence),
        verdict,
        reading.failed_load(account) or _restored(account),
        _is_false_alarm(verdict, evidence),
    )


def observed(reading: Reading, position: int) -> list[Evidence]:
    """Return what was observed of an attempt's end, first fault first."""
    account = reading.accounts[position]
    attempt, since = account.attempt, account.last_step_end
    name = attempt.identity
    found = []
    for time, rank, fault in attempt.faults:
        if time >= since or _struck_beyond(account, fault):
            own = fault_start(time, fault, since)
            began = account.broken.done if own is None else own
            node, source = node_of(attempt, rank), reading.source(fault)
            phase = fault.phase
            if phase is None and rank in attempt.ranks and fault.kind in WATCHDOGS:
                phase = doing(account, rank, time).phase
            seen = Seen(fired(time, fault), began, rank, node, name, source)
            found.append(of_fault(seen, fault, phase))
    for time, rank, exit_ in attempt.exits:
        vanished = _is_vanished(exit_)
        if is_breakage(exit_) or (vanished and time >= since):
            began = account.broken.done if time >= since and not vanished else time
            node, source = node_of(attempt, rank), reading.source(exit_)
            seen = Seen(time, began, rank, node, name, source)
            found.append(of_exit(seen, exit_, is_echo=_only_echoes(found, rank)))
    if attempt.exits:
        exits = [exit_ for _, _, exit_ in attempt.exits]
        by_person = any(isinstance(each, RankExited) and each.by == "person" for each in exits)
        for time, stop in attempt.stops:
            began = max(time, since)
            seen = Seen(began, began, reading.rank(stop), None, name, reading.source(stop))
            found.append(of_stop(seen, stop, by_person=by_person))
    alive = reading.ledger.is_alive(position)
    if alive:
        found += silent_ranks(account)
    else:
        found += silent_nodes(account, found, reading.agents)
    stalled = _stall(account, reading.ledger.closed_at if alive else account.broken.teardown, found)
    found += [] if stalled is None else [stalled]
    apart = out_of_step(found)
    if apart is not None:
        first = min(found, key=lambda item: item.time)
        found.append(
            replace(first, words=apart, cause="unknown", kind="out of step", rank=None, node=None)
        )
    return sorted(found, key=lambda item: (item.began, item.time, item.words))


def _struck_beyond(account: Account, fault: Fault) -> bool:
    """Whether a fault struck in a step that no rank completed.

    It may do so before the last completed step ends: a rank that has it done breaks at the begin
    of the next while its peers still end it.
    """
    steps = account.steps
    return fault.step is not None and steps is not None and fault.step > int(steps.number.max())


def _only_echoes(found: Sequence[Evidence], rank: int) -> bool:
    """Whether all that a rank itself told is what a dead peer looks like."""
    own = [item for item in found if item.observer == rank and item.kind != "exit"]
    return bool(own) and all(item.echo for item in own)


def _stall(account: Account, end: int, found: Sequence[Evidence]) -> Evidence | None:
    """Return the stall that nothing but later deaths explains."""
    if any(item.kind != "exit" and item.cause != "unknown" for item in found):
        return None
    return stall(account, min([end, *(item.time for item in found)]))


def _is_vanished(exit_: RankExited | AttemptEnded) -> bool:
    return (
        isinstance(exit_, RankExited)
        and exit_.by == "unknown"
        and exit_.signal is None
        and exit_.exit_code is None
    )


def _gpu_of(reading: Reading, account: Account, rank: int | None) -> str | None:
    """Return the GPU of a rank whose health check failed."""
    for holder in reading.holders.on(account.attempt, node_of(account.attempt, rank)):
        if holder.rank == rank and holder.gpu is not None:
            return holder.gpu.name
    return None


def _suspected(
    reading: Reading, account: Account, verdict: Verdict, evidence: Sequence[Evidence]
) -> Verdict:
    """Replace the rank whose watchdog fired first by the one that held the others up."""
    watchdogs = [item for item in evidence if item.cause in WATCHDOG_CAUSES]
    times = [item.time for item in watchdogs if item.kind != "stall"]
    time = min(times, default=account.broken.teardown)
    suspect = hang_suspect(account, time, evidence, reading.saving(account.attempt, time))
    if suspect is not None:
        return replace(verdict, rank=suspect.rank, node=None, suspect_rule=suspect.rule)
    accused = {item.rank for item in watchdogs if item.kind in ("heartbeat_timeout", "hang")}
    if len(accused) == 1 and verdict.rank in accused:
        return replace(verdict, suspect_rule="the only rank that was reported")
    return replace(verdict, rank=None, node=None)


def _is_false_alarm(verdict: Verdict, evidence: Sequence[Evidence]) -> bool:
    """Whether a watchdog hit a rank in a phase that may take long and nothing else is wrong."""
    fired = [i for i in evidence if i.kind in ("heartbeat_timeout", "section_timeout")]
    wrong = [i for i in evidence if i not in fired and not i.echo and i.cause != "unknown"]
    first = min((item.time for item in fired), default=0)
    return (
        verdict.cause == "hang"
        and bool(fired)
        and all(item.kind == "exit" and item.time >= first for item in wrong)
        and all(_is_patient(item.phase) for item in fired)
    )


def _is_patient(phase: str | None) -> bool:
    return phase is not None and (phase in _PATIENT or "compile" in phase)


def _restored(account: Account) -> str | None:
    return account.segments[0].checkpoint if account.segments else None
