"""Who holds the others up, found from open phases, and ranks that fell silent.

In a hang most ranks wait in a collective. The culprit is the one that does something else, the
longest open phase first; the watchdog that fires first only tells who had waited longest.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from headway.incidents.model import Evidence
from headway.incidents.reading import node_of, phases_of
from headway.ledger.account import Account
from headway.ledger.attempts import RankLog
from headway.ledger.pace import LEAST_LIMIT, LIMIT_FACTOR
from headway.wording import duration

_COLLECTIVE = re.compile(r"SeqNum=(\d+)")
"""How PyTorch's watchdog names the collective that a rank was in."""


@dataclass(frozen=True, slots=True)
class Doing:
    """What a rank was last in, and since when; between phases its newest sign counts."""

    rank: int
    phase: str | None
    since: int


@dataclass(frozen=True, slots=True)
class Suspect:
    """The rank that holds the others up, and how that was found."""

    rank: int
    rule: str


def doing(account: Account, rank: int, time: int) -> Doing:
    """Return what a rank was in at a time in ns: its innermost open phase."""
    log = account.attempt.ranks[rank]
    opened = [
        phase
        for phase in phases_of(account, rank)
        if phase.start <= time and (phase.end is None or (phase.failed and phase.end >= time))
    ]
    innermost = max(opened, key=lambda phase: phase.start, default=None)
    if innermost is not None:
        return Doing(rank, innermost.name, innermost.start)
    done = int(log.rows[-1].end[-1]) if log.rows else log.started or 0
    if log.heartbeat is not None and log.heartbeat[0] >= done and log.heartbeat[1].open_phases:
        return Doing(rank, log.heartbeat[1].open_phases[-1], done)
    ends = [phase.end for phase in log.phases if phase.end is not None and phase.end <= time]
    return Doing(rank, None, max([done, *ends]))


def hang_suspect(
    account: Account, time: int, evidence: Sequence[Evidence], saving: Mapping[int, int]
) -> Suspect | None:
    """Return the rank that the others waited for at a time in ns; None if all were alike.

    `saving` tells when a rank last recorded something about a checkpoint, in ns.
    """
    ranks = [doing(account, rank, time) for rank in sorted(account.attempt.ranks)]
    if len(ranks) < 2:
        return Suspect(ranks[0].rank, "the only rank") if ranks else None
    names = Counter(one.phase for one in ranks)
    usual = "step" if "step" in names else names.most_common(1)[0][0]
    others = [one for one in ranks if one.phase != usual]
    if others and usual is not None:
        suspect = min(others, key=lambda one: (one.since, one.rank))
        where = "between phases" if suspect.phase is None else f"in {suspect.phase}"
        verb = "waits" if names[usual] == 1 else "wait"
        rule = f"{where} while {names[usual]} of its peers {verb} in {usual}"
        return Suspect(suspect.rank, rule)
    for what, numbers in (
        ("collective", _collectives(evidence)),
        ("step", _completed(account, [one.rank for one in ranks])),
    ):
        low = min(numbers.values(), default=0)
        if len(numbers) > 1 and low < max(numbers.values()):
            behind = min(rank for rank, number in numbers.items() if number == low)
            return Suspect(behind, f"at {what} {low} while a peer is at {max(numbers.values())}")
    silent = _without_a_sign(account, ranks, usual, time, saving)
    if silent is None and len(ranks) == account.attempt.world_size:
        return _not_waiting(ranks, evidence)
    return silent


def _without_a_sign(
    account: Account,
    ranks: Sequence[Doing],
    phase: str | None,
    time: int,
    saving: Mapping[int, int],
) -> Suspect | None:
    """Return the rank that did nothing in the phase that all are in, while others did."""
    signs = {
        one.rank: max(_ended_inside(account, one, time), saving.get(one.rank, 0)) for one in ranks
    }
    idle = [one for one in ranks if signs[one.rank] < one.since]
    if phase is None or not 0 < len(idle) < len(ranks):
        return None
    suspect = min(idle, key=lambda one: (one.since, one.rank))
    went_on = len(ranks) - len(idle)
    return Suspect(
        suspect.rank, f"no sign since it began {phase}, in which {went_on} of its peers went on"
    )


def _not_waiting(ranks: Sequence[Doing], evidence: Iterable[Evidence]) -> Suspect | None:
    """Return the only rank that was in no collective operation when those of all others timed out.

    Had it been in theirs, they would have gone on.
    """
    waited = {item.observer for item in evidence if item.kind == "collective_timeout"}
    others = [one.rank for one in ranks if one.rank not in waited]
    if len(others) != 1:
        return None
    return Suspect(others[0], "the only rank whose collective operation did not time out")


def _ended_inside(account: Account, rank: Doing, time: int) -> int:
    """Return when a rank last ended a phase inside the one that it is in, in ns; 0 if never."""
    ends = [
        phase.end
        for phase in phases_of(account, rank.rank)
        if phase.is_closed and phase.start > rank.since and phase.end is not None
        if phase.end <= time
    ]
    return max(ends, default=0)


def out_of_step(evidence: Iterable[Evidence]) -> str | None:
    """Say which ranks were in different collectives when their watchdogs fired."""
    numbers = _collectives(evidence)
    if len(set(numbers.values())) < 2:
        return None
    told = ", ".join(f"rank {rank} at collective {n}" for rank, n in sorted(numbers.items()))
    return f"ranks out of step: {told}"


def _collectives(evidence: Iterable[Evidence]) -> dict[int, int]:
    found = {}
    for item in evidence:
        told = _COLLECTIVE.search(item.words)
        if item.kind == "collective_timeout" and item.observer is not None and told:
            found[item.observer] = int(told[1])
    return found


def _completed(account: Account, ranks: Iterable[int]) -> dict[int, int]:
    """Return the last completed step of the ranks that report each step, or say it themselves."""
    found = {}
    for rank in ranks:
        log = account.attempt.ranks[rank]
        detail = next((rows for rows in reversed(log.rows) if rows.detail), None)
        told = log.heartbeat[1].last_step if log.heartbeat is not None else None
        if detail is not None or told is not None:
            found[rank] = max(0 if detail is None else int(detail.number[-1]), told or 0)
    return found


def silent_ranks(account: Account) -> list[Evidence]:
    """Return the ranks of a running attempt that show nothing while their peers step on.

    Their node must still be heard: otherwise it is its agent, and not the rank, that is silent.
    """
    steps = account.steps
    if steps is None:
        return []
    limit = max(LEAST_LIMIT, LIMIT_FACTOR * (steps.pace.step or 0))
    newest = steps.last_end
    logs = account.attempt.ranks.values()
    heard = {log.node for log in logs if newest - log.last_evidence <= limit}
    found = []
    for rank, log in sorted(account.attempt.ranks.items()):
        if not log.rows or log.ended is not None or log.node not in heard:
            continue
        seen = _newest_progress(log)
        if newest - seen > limit and newest - seen > 2 * _longest_report(log):
            where = doing(account, rank, newest)
            at = "" if where.phase is None else f" (last seen in {where.phase})"
            found.append(
                Evidence(
                    time=newest,
                    began=seen,
                    cause="hang",
                    kind="silence",
                    words=f"no sign of rank {rank}{at} while its peers complete steps",
                    rank=rank,
                    node=log.node,
                    observer=rank,
                    phase=where.phase,
                    signature="silence",
                    named=True,
                    attempt=account.attempt.identity,
                )
            )
    return found


def silent_nodes(account: Account, found: Sequence[Evidence], agents: Set[str]) -> list[Evidence]:
    """Return the nodes of which nothing was heard at the end, while others still told of it.

    Only where nothing else explains the end: the records of a lost node are lost with it. That a
    peer misses a rank, or that the others are told to stop, explains nothing if the node is one
    of those with `agents`: its agent would have told of the rank's end.
    """
    since = account.broken.done
    logs = account.attempt.ranks.values()
    heard = {log.node for log in logs if log.ended is not None or log.last_evidence > since}
    if not heard:
        return []
    firm = [item for item in found if not item.echo and item.cause != "unknown"]
    told = {item.observer for item in found if item.kind == "stop sigterm"}
    return [
        Evidence(
            time=since,
            began=since,
            cause="node_lost",
            kind="silence",
            words=f"nothing more was heard of {node}",
            node=node,
            signature="silence",
            attempt=account.attempt.identity,
        )
        for node in sorted({log.node for log in logs if log.node is not None} - heard)
        if not firm
        or (node in agents and all(_follows_from_losing(account, node, one, told) for one in firm))
    ]


def _follows_from_losing(
    account: Account, node: str, item: Evidence, told: Set[int | None]
) -> bool:
    """Whether this is seen when a node is lost, too; `told` are the ranks that had to stop."""
    if item.kind == "lost_rank":
        return node_of(account.attempt, item.rank) == node
    return item.kind in ("stop sigterm", "exit") and item.observer in told


def _newest_progress(log: RankLog) -> int:
    """Return when a rank was last known to move on; that its process lives is not enough."""
    known, step = int(log.rows[-1].end[-1]), int(log.rows[-1].number[-1])
    for phase in log.phases[-1:]:
        known = max(known, phase.start if phase.end is None else phase.end)
    if log.heartbeat is not None and (log.heartbeat[1].last_step or 0) > step:
        known = max(known, log.heartbeat[0])
    return known


def _longest_report(log: RankLog) -> int:
    """Return the longest stretch that one of its summaries covers: so long it may be silent."""
    spans = (int(rows.end[-1] - rows.start[0]) for rows in log.rows if not rows.detail)
    return max(spans, default=0)


def stall(account: Account, seen: int) -> Evidence | None:
    """Return an over-long stretch without a step as evidence, seen at a time in ns.

    Shorter ones are what it takes peers to notice a dead rank.
    """
    steps = account.steps
    tail = [piece for piece in account.around if piece.category == "stalled"]
    if steps is None or not tail or not steps.pace.is_too_long(seen - account.broken.done):
        return None
    return Evidence(
        time=account.broken.done,
        began=account.broken.done,
        cause="hang",
        kind="stall",
        words=f"no step for {duration(seen - account.broken.done)} while ranks were alive",
        signature="stall",
        attempt=account.attempt.identity,
    )
