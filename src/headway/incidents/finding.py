"""Finding the incidents of a run: from a fault until an attempt holds (rule 29).

An incident closes when a checkpoint scheduled after the resume is durable or ten steps beyond the
old highest are done; a fault before that joins it.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from headway.incidents.corrections import judgements
from headway.incidents.evidence import Failure, failure, observed
from headway.incidents.hangs import doing
from headway.incidents.loops import alike, streaks
from headway.incidents.model import Incident, Judgement, OpenPhase, Validity, Verdict
from headway.incidents.phases import split, tries, united
from headway.incidents.reading import Reading
from headway.incidents.recovery import outcome
from headway.incidents.resumes import resume_warnings
from headway.incidents.validity import validity
from headway.ledger import Ledger

BEYOND = 10
"""Steps beyond the old highest with which an incident closes."""
_PROVOKED = (
    "exception",
    "killed",
    "hang",
    "collective_timeout",
    "network",
    "startup_failure",
    "unknown",
)
"""Causes that a broken GPU looks like before anybody sees that it is broken."""
WEEK = 7 * 86_400 * 10**9
"""Time in ns within which another incident of the same GPU is a repetition."""
_DONE = ("completed", "stopped")
"""States of a run that did not fail."""


class _Stretch(NamedTuple):
    """The attempts of an incident, from the one that broke to the newest, and when it closed."""

    first: int
    last: int
    closed: int | None


def incidents(ledger: Ledger) -> list[Incident]:
    """Return the incidents of a run in order of time."""
    reading = Reading(ledger)
    stretches = _stretches(reading)
    failures = {
        position: failure(reading, position)
        for stretch in stretches
        for position in _broken(reading, stretch)
    }
    repeated = streaks(failures)
    caught_up = _catch_ups(reading, stretches)
    said = judgements(ledger)
    found = []
    for index, stretch in enumerate(stretches):
        broken = {p: failures[p] for p in _broken(reading, stretch)}
        after = stretches[index + 1 : index + 2]
        limit = failures[after[0].first].opened if after else ledger.closed_at
        identity = _identity(ledger.run, reading.accounts[stretch.first].attempt.identity)
        persistent: dict[str, int] = {}
        for position in broken:
            for what, count in repeated[position].items():
                persistent[what] = max(count, persistent.get(what, 0))
        found.append(
            _incident(
                reading,
                stretch,
                broken,
                identity=identity,
                number=index + 1,
                caught_up=caught_up[index],
                limit=limit,
                persistent=persistent,
                judgement=said.get(identity, Judgement()),
            )
        )
    return _counted(found)


def _counted(found: Sequence[Incident]) -> list[Incident]:
    """Say of each GPU that is to blame how often it was within a week."""
    opened: dict[str, list[int]] = {}
    counted = []
    for incident in found:
        repeats = None
        if incident.suspect_gpu is not None and incident.cause == "gpu_fault":
            times = opened.setdefault(incident.suspect_gpu, [])
            times.append(incident.opened)
            repeats = sum(incident.opened - time < WEEK for time in times)
        counted.append(replace(incident, gpu_repeats=repeats))
    return counted


def restarts(ledger: Ledger, known: Sequence[Incident]) -> dict[str, dict[str, int]]:
    """Count the attempts after the first by the layer that started them and by cause."""
    causes = {attempt: incident.cause for incident in known for attempt in incident.attempts[1:]}
    counts: dict[str, dict[str, int]] = {}
    for attempt in ledger.book.attempts[1:]:
        cause = causes.get(attempt.identity, "unknown")
        layer = counts.setdefault(attempt.layer, {})
        layer[cause] = layer.get(cause, 0) + 1
    return {layer: dict(sorted(by.items())) for layer, by in sorted(counts.items())}


def _stretches(reading: Reading) -> list[_Stretch]:
    found: list[_Stretch] = []
    position = 0
    while position < len(reading.accounts):
        if not _breaks(reading, position):
            position += 1
            continue
        stretch = _until_held(reading, position)
        found.append(stretch)
        if stretch.closed is None or stretch.last == position:
            break
        position = stretch.last
    return found


def _broken(reading: Reading, stretch: _Stretch) -> list[int]:
    """Return the attempts of an incident that broke."""
    broken = list(range(stretch.first, max(stretch.last, stretch.first + 1)))
    if stretch.closed is None and stretch.last > stretch.first and _breaks(reading, stretch.last):
        broken.append(stretch.last)
    return broken


def _breaks(reading: Reading, position: int) -> bool:
    """Whether an attempt did not end the run and did not simply go on."""
    account = reading.accounts[position]
    if position + 1 < len(reading.accounts):
        return True
    fault, end = account.broken.fault, reading.ledger.end
    if reading.ledger.state in _DONE:
        # somebody may stop a run because it broke, but what completed did not break
        stopped = reading.ledger.state == "stopped"
        return stopped and fault is not None and end is not None and fault < end
    if fault is not None:
        return True
    if reading.ledger.is_alive(position) and account.steps is not None:
        return bool(observed(reading, position))
    return bool(account.attempt.stops and account.attempt.exits) or (
        account.steps is None and account.attempt.ended
    )


def _until_held(reading: Reading, first: int) -> _Stretch:
    """Return the incident of the attempt that broke at `first`."""
    for position in range(first + 1, len(reading.accounts)):
        closed = _closing_time(reading, position, reading.highest(first))
        if closed is not None:
            return _Stretch(first, position, closed)
    return _Stretch(first, len(reading.accounts) - 1, None)


def _closing_time(reading: Reading, position: int, highest: int) -> int | None:
    """Return when an attempt closed the incident before it, unless a fault came first."""
    account = reading.accounts[position]
    steps = account.steps
    if steps is None:
        return None
    times = []
    beyond = np.flatnonzero(steps.number >= highest + BEYOND)
    if len(beyond):
        times.append(int(steps.end[beyond[0]]))
    begun = int(steps.begin[0])
    times += [
        save.finalized
        for save in reading.saves[account.attempt.identity]
        if save.finalized is not None
        and save.scheduled is not None
        and save.scheduled >= begun
        and save.tier != "memory"
    ]
    closed = min(times, default=None)
    fault = account.broken.fault
    if closed is not None and fault is not None and fault < closed:
        closed = None
    last = position == len(reading.accounts) - 1
    if closed is None and last and reading.ledger.state in _DONE and not _breaks(reading, position):
        return reading.ledger.end
    return closed


def _catch_ups(reading: Reading, stretches: Sequence[_Stretch]) -> list[int | None]:
    """Return when the newest attempt of each incident, or a later one, reached the old highest.

    Neither the attempts nor the old highest ever fall from one incident to the next, so that one
    pass finds all.
    """
    found: list[int | None] = []
    position = 0
    for first, last, _ in stretches:
        old = reading.highest(first)
        position = max(position, last if last > first else len(reading.accounts))
        while position < len(reading.accounts) and reading.own_highest(position) < old:
            position += 1
        steps = reading.accounts[position].steps if position < len(reading.accounts) else None
        if steps is None:
            found.append(None)
        else:
            found.append(int(steps.end[int((steps.number >= old).argmax())]))
    return found


def _incident(
    reading: Reading,
    stretch: _Stretch,
    broken: Mapping[int, Failure],
    *,
    identity: str,
    number: int,
    caught_up: int | None,
    limit: int,
    persistent: Mapping[str, int],
    judgement: Judgement,
) -> Incident:
    first, last, closed = stretch
    accounts = reading.accounts
    held = accounts[last] if last > first else None
    steps = None if held is None else held.steps
    opened, verdict = broken[first].opened, _verdict(broken)
    # attempts may overlap: what the next one did before the fault recovered nothing
    recovered = None if steps is None else max(int(steps.end[0]), opened)
    closed = None if closed is None else max(closed, opened)
    rollback = None if steps is None else _rollback(reading, first, last)
    caught_up = None if rollback is None or caught_up is None else max(caught_up, opened)
    until = min(limit, reading.ledger.closed_at if caught_up is None else caught_up)
    positions = range(first, last + 1)
    attempted = tries(reading, broken, positions, opened, until)
    pending = closed is None and reading.ledger.end is None
    spent = united(attempted) if attempted else split(reading, opened, reading.ledger.closed_at)
    return Incident(
        incident=identity,
        number=number,
        opened=opened,
        closed=closed,
        recovered=recovered,
        caught_up=caught_up,
        cause=judgement.cause or verdict.cause,
        original_cause=verdict.cause,
        rule=verdict.rule,
        layer=None if held is None else held.attempt.layer,
        suspect_rank=verdict.rank,
        suspect_node=verdict.node,
        suspect_gpu=verdict.gpu,
        suspect_rule=verdict.suspect_rule,
        signature=verdict.signature,
        rollback_steps=None if rollback is None else rollback[0],
        rollback=None if rollback is None else rollback[1],
        attempts=tuple(accounts[position].attempt.identity for position in positions),
        outcome=outcome([one.layer for one in attempted], closed is not None, pending),
        validity=_UNTRIED if rollback is None else validity(reading, first, last),
        phases=spent,
        tries=attempted,
        evidence=tuple(item for one in broken.values() for item in one.evidence),
        persistent=persistent,
        alike=alike(broken, reading.only),
        suspected_false_alarm=broken[first].suspected_false_alarm,
        warnings=() if rollback is None else resume_warnings(reading, first, last, opened),
        open_phase=_open_phase(reading, last) if pending else None,
        judgement=judgement,
    )


def _verdict(broken: Mapping[int, Failure]) -> Verdict:
    """Return the verdict on an incident: that on the attempt that broke first.

    A GPU that is seen to be broken before the incident's last fault provoked the first one, too.
    """
    ordered = [broken[position].verdict for position in sorted(broken)]
    if ordered[0].cause in _PROVOKED:
        gpus = (one for one in ordered if one.cause == "gpu_fault" and one.gpu is not None)
        return next(gpus, ordered[0])
    return ordered[0]


_UNTRIED = Validity(valid="unknown", reason="nothing was executed again yet")


def _identity(run: str, attempt: str) -> str:
    return hashlib.sha256(f"{run}\n{attempt}".encode()).hexdigest()[:12]


def _open_phase(reading: Reading, position: int) -> OpenPhase | None:
    """Return the phase that a living attempt has been in for longest."""
    if not reading.ledger.is_alive(position):
        return None
    account = reading.accounts[position]
    states = [doing(account, rank, reading.ledger.as_of) for rank in sorted(account.attempt.ranks)]
    inside = [one for one in states if one.phase is not None]
    oldest = min(inside, key=lambda one: (one.since, one.rank), default=None)
    if oldest is None or oldest.phase is None:
        return None
    return OpenPhase(phase=oldest.phase, since=oldest.since, rank=oldest.rank)


def _rollback(reading: Reading, first: int, last: int) -> tuple[int, int] | None:
    """Return steps and time of what the incident discarded.

    The steps are the highest before it minus those in the restored state; the time is what they
    took on the chain that was the newest state before it.
    """
    book = reading.ledger.book
    restored = reading.accounts[last].segments
    if not restored:
        return None
    base = restored[0].base
    time = 0
    for position, limit in reading.lineage(first, base):
        segment = book.chain[position]
        time += reading.accounts[segment.attempt].work_of(segment.index, base, limit)
    return max(reading.highest(first) - base, 0), time
