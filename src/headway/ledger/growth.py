"""The steps of an attempt that only went on: what is old stays, the newest stretch is read anew.

The stretch begins some steps before the first that can still change and is read by the same rules
as a whole attempt. Where the steps that both readings hold do not come out alike, something older
changed too, and the attempt has to be read as a whole.
"""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from headway.ledger.attempts import Attempt, Opening, Phase, RankLog
from headway.ledger.group import GroupSteps, group_steps
from headway.ledger.pace import WINDOW, Pace
from headway.ledger.phases import closed_phases, failed_loads, named
from headway.ledger.steps import StepRows, Times

LAG = 3
"""A rank's last steps, which may change when it goes on."""
FOREIGN = WINDOW + 2
"""Steps of the stretch whose usual duration would need older steps than it holds."""
OVERLAP = FOREIGN + 50
"""Steps of the stretch that were read before and stay."""
COLUMNS = ("number", "begin", "start", "end", "wait", "late", "late_end", "work")


def grown(old: GroupSteps, previous: Attempt, attempt: Attempt, before: Pace) -> GroupSteps | None:
    """Return the steps of an attempt from those of an earlier reading of it.

    `old` are the steps that `previous` gave. None: the attempt has to be read as a whole.
    """
    kept = min((int(index[-1]) for index in old.places.values()), default=0) - LAG
    first = kept - OVERLAP
    if first <= 0 or old.segment[0] != old.segment[-1]:
        return None
    since = int(old.begin[first])
    if not _went_on(previous, attempt, old, since, int(old.end[kept - 1])):
        return None
    tail = _tail(attempt, old, first, since)
    late = None if tail is None else group_steps(tail, before)
    if tail is None or late is None or late.segment[0] != late.segment[-1]:
        return None
    if not _alike(old, late, first, kept):
        return None
    return _spliced(old, late, attempt, tail, first, kept)


def _went_on(previous: Attempt, attempt: Attempt, old: GroupSteps, since: int, until: int) -> bool:
    """Whether all that is new about an attempt began after `until`, and nothing crosses `since`."""
    stepped = {rank for rank, log in attempt.ranks.items() if log.rows}
    return (
        attempt.begin == previous.begin
        and attempt.openings == previous.openings
        and stepped == old.places.keys()
        and all(time <= since for time in failed_loads(attempt))
        and all(_same(previous.ranks[rank], attempt.ranks[rank], since, until) for rank in stepped)
    )


def _same(previous: RankLog, log: RankLog, since: int, until: int) -> bool:
    phases = [phase for phase in log.phases if phase.start < until]
    saves = [save for save in log.saves if save[0] < until]
    stretches = [*((phase.start, phase.end or phase.start) for phase in phases), *saves]
    return (
        phases == [phase for phase in previous.phases if phase.start < until]
        and saves == [save for save in previous.saves if save[0] < until]
        and not any(start < since < end for start, end in stretches)
    )


def _tail(attempt: Attempt, old: GroupSteps, first: int, since: int) -> Attempt | None:
    """Return an attempt that consists of the newest stretch."""
    tail = Attempt(attempt.identity, begin=since, openings=[Opening(since)])
    for rank, index in old.places.items():
        log = attempt.ranks[rank]
        rows = _newest(log.rows, int(np.searchsorted(index, first)))
        if rows is None:
            return None
        tail.ranks[rank] = RankLog(
            rank,
            rows=rows,
            phases=[phase for phase in log.phases if phase.start >= since],
            saves=[save for save in log.saves if save[0] >= since],
        )
    return tail


def _newest(rows: Sequence[StepRows], skipped: int) -> list[StepRows] | None:
    """Return the rows after the first ones; None where they are not in order of time."""
    left = sum(len(part.number) for part in rows) - skipped
    found: list[StepRows] = []
    for part in reversed(rows):
        if not part.detail or (found and part.end[-1] >= found[-1].end[0]):
            return None
        if left <= 0:
            break
        cut = max(len(part.number) - left, 0)
        left -= len(part.number)
        found.append(
            StepRows(
                part.number[cut:], part.start[cut:], part.end[cut:], part.data_wait[cut:], True
            )
        )
    return found[::-1] if found else None


def _alike(old: GroupSteps, late: GroupSteps, first: int, kept: int) -> bool:
    """Whether both readings agree on the steps that both hold."""
    if len(late.number) < OVERLAP:
        return False
    same = all(
        np.array_equal(
            getattr(late, name)[FOREIGN:OVERLAP], getattr(old, name)[first + FOREIGN : kept]
        )
        for name in COLUMNS
    )
    begin, end = int(late.begin[FOREIGN]), int(late.end[OVERLAP - 1])
    return same and _within(late, begin, end) == _within(old, begin, end)


def _within(steps: GroupSteps, begin: int, end: int) -> list[tuple[object, ...]]:
    low = bisect_left(steps.pieces, begin, key=lambda piece: piece.start)
    high = bisect_left(steps.pieces, end, key=lambda piece: piece.start)
    return [tuple(piece) for piece in steps.pieces[low:high]]


def _spliced(
    old: GroupSteps, late: GroupSteps, attempt: Attempt, tail: Attempt, first: int, kept: int
) -> GroupSteps:
    columns: dict[str, Times] = {
        name: np.concatenate([getattr(old, name)[:kept], getattr(late, name)[OVERLAP:]])
        for name in COLUMNS
    }
    edge = int(old.end[kept - 1])
    low = bisect_left(old.pieces, edge, key=lambda piece: piece.start)
    high = bisect_left(late.pieces, edge, key=lambda piece: piece.start)
    return GroupSteps(
        **columns,
        segment=np.full(len(columns["number"]), old.segment[0]),
        pieces=old.pieces[:low] + late.pieces[high:],
        lead_from=old.lead_from,
        lead_rank=old.lead_rank,
        lead_wait=old.lead_wait,
        pace=late.pace,
        inherited=late.inherited,
        coarse=old.coarse,
        phases=_phases(old, late, attempt, tail, columns["end"]),
        places={
            rank: np.concatenate(
                [index[: np.searchsorted(index, first)], late.places[rank] + first]
            )
            for rank, index in old.places.items()
        },
    )


def _phases(
    old: GroupSteps, late: GroupSteps, attempt: Attempt, tail: Attempt, ends: Times
) -> dict[int, list[Phase]]:
    """Return the phases per rank; what was recorded comes before the saves that were not."""
    found: dict[int, list[Phase]] = {}
    failures = failed_loads(attempt)
    for rank, log in attempt.ranks.items():
        if rank not in tail.ranks:
            alone = closed_phases(log, ends[:0], ends[:0])
            found[rank] = [named(phase, ends, failures) for phase in alone]
            continue
        recorded = len(tail.ranks[rank].phases)
        earlier = [phase for phase in old.phases[rank] if phase.start < tail.begin]
        cut = len(log.phases) - recorded
        found[rank] = [
            *earlier[:cut],
            *late.phases[rank][:recorded],
            *earlier[cut:],
            *late.phases[rank][recorded:],
        ]
    return found
