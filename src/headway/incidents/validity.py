"""Whether a recovery is valid: re-executed steps must agree with their first pass.

Compared are the loss, within a tolerance, and the samples consumed, on the ranks that recorded
both passes step by step. A resume without re-executed steps is still wrong if its first step has
consumed no more samples than the state it came from: then data is seen twice.
"""

from typing import NamedTuple

import numpy as np

from headway.incidents.model import Validity
from headway.incidents.reading import Reading
from headway.ledger.account import Account
from headway.ledger.attempts import RankLog
from headway.ledger.steps import Losses, Times

LOSS_TOLERANCE = 0.02
"""Largest relative difference of two passes' losses of one step."""
MOST_RANKS = 64
"""Ranks that are compared, the lowest first: those beyond agree or differ with them."""
_LEAST_LOSS = 1e-9


class _Pass(NamedTuple):
    """Steps of one rank as it executed them once: number, loss (NaN: unknown), samples (-1)."""

    number: Times
    loss: Losses
    samples: Times


def validity(reading: Reading, first: int, last: int) -> Validity:
    """Compare the attempt that recovered an incident with what it executed again."""
    held = reading.accounts[last]
    base, highest = held.segments[0].base, reading.highest(first)
    before = [
        (reading.accounts[book.attempt], book.index, limit)
        for position, limit in reading.lineage(first, base - 1)
        for book in (reading.ledger.book.chain[position],)
    ]
    worlds = {account.attempt.world_size for account, *_ in before} | {held.attempt.world_size}
    if len(worlds - {None}) > 1:
        return Validity(valid="unknown", reason="the group's size changed")
    compared = num_ranks = 0
    for rank, log in sorted(held.attempt.ranks.items()):
        if num_ranks == MOST_RANKS:
            break
        again = _steps(log, base + 1, max(highest, base + 1))
        if again is None:
            continue
        num_ranks += 1
        for account, segment, limit in before:
            earlier = account.attempt.ranks.get(rank)
            if earlier is None:
                continue
            upper = highest if limit is None else limit
            start, end = _extent(account, segment)
            done = _steps(earlier, base, upper, start, end)
            if done is None:
                continue
            wrong, count = _compare(done, again, base, rank)
            compared += count
            if wrong is not None:
                return Validity(valid="no", reason=wrong, compared=compared)
    if not compared:
        return Validity(valid="unknown", reason="no step was recorded in both passes")
    return Validity(valid="yes", reason="every compared step agrees", compared=compared)


def _extent(account: Account, segment: int) -> tuple[int, int]:
    """Return when a segment's steps ran."""
    steps = account.steps
    if steps is None:
        return 0, 0
    low, high = np.searchsorted(steps.segment, [segment, segment + 1]).tolist()
    return (int(steps.begin[low]), int(steps.end[high - 1])) if low < high else (0, 0)


def _steps(
    log: RankLog, first: int, last: int, start: int | None = None, end: int | None = None
) -> _Pass | None:
    """Return a rank's detailed steps between two numbers, within a stretch of time if given."""
    numbers: list[Times] = []
    losses: list[Losses] = []
    samples: list[Times] = []
    # the newest rows count where a step was executed twice, and most incidents need few rows
    for rows in reversed(log.rows) if end is not None else log.rows:
        if not rows.detail or rows.loss is None or rows.samples is None:
            continue
        if int(rows.number[0]) > last or int(rows.number[-1]) < first:
            if numbers:
                break
            continue
        kept = (rows.number >= first) & (rows.number <= last)
        if start is not None and end is not None:
            kept &= (rows.end > start) & (rows.end <= end)
        numbers.append(rows.number[kept])
        losses.append(rows.loss[kept])
        samples.append(rows.samples[kept])
    if not numbers:
        return None
    if len(numbers) == 1:
        return _Pass(numbers[0], losses[0], samples[0])
    return _Pass(np.concatenate(numbers), np.concatenate(losses), np.concatenate(samples))


def _shared(one: Times, two: Times) -> tuple[slice | Times, slice | Times]:
    """Return where two passes hold the same steps; without a gap these are two slices."""
    if one[-1] - one[0] + 1 == len(one) and two[-1] - two[0] + 1 == len(two):
        low, high = max(one[0], two[0]), min(one[-1], two[-1]) + 1
        high = max(low, high)
        return slice(low - one[0], high - one[0]), slice(low - two[0], high - two[0])
    _, first, second = np.intersect1d(one, two, return_indices=True)
    return first, second


def _compare(done: _Pass, again: _Pass, base: int, rank: int) -> tuple[str | None, int]:
    """Return what disagrees, if anything, and how many values were compared."""
    if len(again.number) == 0 or len(done.number) == 0:
        return None, 0
    count = 0
    state = done.samples[done.number == base]
    next_ = again.samples[again.number == base + 1]
    if len(state) and len(next_) and state[-1] >= 0 and next_[0] >= 0:
        count += 1
        if next_[0] <= state[-1]:
            return (
                f"rank {rank} replayed data: {int(next_[0])} samples consumed after step "
                f"{base + 1}, but {int(state[-1])} after step {base} before the fault",
                count,
            )
    one, two = _shared(done.number, again.number)
    seen, again_seen = done.samples[one], again.samples[two]
    known = (seen >= 0) & (again_seen >= 0)
    count += int(known.sum())
    other = np.flatnonzero(known & (seen != again_seen))
    if len(other):
        at = int(other[0])
        return (
            f"rank {rank} consumed {int(again_seen[at])} samples up to step "
            f"{int(done.number[one][at])}, {int(seen[at])} in the first pass",
            count,
        )
    was, now = done.loss[one], again.loss[two]
    known = ~(np.isnan(was) | np.isnan(now))
    count += int((known & ~((seen >= 0) & (again_seen >= 0))).sum())
    scale = np.maximum(np.maximum(np.abs(was), np.abs(now)), _LEAST_LOSS)
    off = np.flatnonzero(known & ~(np.abs(now - was) <= LOSS_TOLERANCE * scale))
    if len(off):
        at = int(off[0])
        return (
            f"rank {rank} lost {now[at]:.6g} in step {int(done.number[one][at])}, "
            f"{was[at]:.6g} in the first pass",
            count,
        )
    return None, count
