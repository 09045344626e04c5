"""How fast a run trained over time: steps, waits for data and loss per column of time.

The steps are those of the group, each with its critical rank's wait; so a stop is a column
without steps, and not a slow one. The loss is that of one rank, the lowest that recorded any.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from headway.course.columns import Times, edges
from headway.ledger import Ledger

_TAIL = 95


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """One column of time; times in UTC ns, durations in ns. `steps` were completed in it.

    `step` is the median of a step's own time, `slowest` the largest, `tail` the 95th percentile,
    `wait` the mean wait for data before a step. `loss` is the last one in it; `unknown_losses`
    counts the steps without a finite one, where any other was recorded.
    """

    start: int
    end: int
    steps: int
    step: int | None
    tail: int | None
    slowest: int | None
    wait: int | None
    loss: float | None
    lowest_loss: float | None
    highest_loss: float | None
    unknown_losses: int

    @property
    def steps_per_second(self) -> float:
        """Completed steps per second of the column, stops included."""
        return self.steps * 1e9 / (self.end - self.start)


def pace(
    ledger: Ledger, columns: int = 300, start: int | None = None, end: int | None = None
) -> list[Pace]:
    """Return the pace of a run in at most `columns` equal columns of its time."""
    begin = ledger.start if start is None else max(start, ledger.start)
    finish = ledger.closed_at if end is None else min(end, ledger.closed_at)
    if finish <= begin:
        return []
    cuts = edges(begin, finish, columns)
    ends, work, waits = _steps(ledger)
    places = np.searchsorted(ends, cuts, side="right")
    owned = _waits(ledger, cuts)
    losses = _losses(ledger, cuts)
    found = []
    for number, (low, high) in enumerate(pairwise(places.tolist())):
        own = np.sort(work[low:high])
        known = losses[number]
        finite = known[np.isfinite(known)]
        steps = high - low
        found.append(
            Pace(
                start=int(cuts[number]),
                end=int(cuts[number + 1]),
                steps=steps,
                step=int(own[steps // 2]) if steps else None,
                tail=int(own[-(-steps * _TAIL // 100) - 1]) if steps else None,
                slowest=int(own[-1]) if steps else None,
                wait=(int(waits[low:high].sum()) + int(owned[number])) // steps if steps else None,
                loss=float(finite[-1]) if len(finite) else None,
                lowest_loss=float(finite.min()) if len(finite) else None,
                highest_loss=float(finite.max()) if len(finite) else None,
                unknown_losses=len(known) - len(finite),
            )
        )
    return found


def _steps(ledger: Ledger) -> tuple[Times, Times, Times]:
    """Return end, own time and wait of all steps of the group, in order of their ends."""
    parts = [one.steps for one in ledger.book.accounts if one.steps is not None]
    if not parts:
        none = np.empty(0, dtype=np.int64)
        return none, none, none
    ends = np.concatenate([part.end for part in parts])
    work = np.concatenate([part.work for part in parts])
    waits = np.concatenate([part.wait + part.late for part in parts])
    if bool((ends[1:] >= ends[:-1]).all()):
        return ends, work, waits
    order = np.argsort(ends, kind="stable")
    return ends[order], work[order], waits[order]


def _waits(ledger: Ledger, cuts: Times) -> Times:
    """Return the waits for data that stand apart from ordinary steps, in ns per column."""
    found = np.zeros(len(cuts) - 1, dtype=np.int64)
    for account in ledger.book.accounts:
        for piece in [] if account.steps is None else account.steps.pieces:
            if piece.category == "data_wait" and cuts[0] < piece.end <= cuts[-1]:
                place = int(np.searchsorted(cuts, piece.end, side="left")) - 1
                found[place] += piece.end - piece.start
    return found


def _losses(ledger: Ledger, cuts: Times) -> Sequence[npt.NDArray[np.float64]]:
    """Return the losses of one rank in each column, in order of time; NaN where unknown."""
    ends, losses = [], []
    for end, loss in _recorded(ledger, _lowest(ledger)):
        ends.append(end)
        losses.append(loss)
    if not ends:
        return [np.empty(0)] * (len(cuts) - 1)
    end, loss = np.concatenate(ends), np.concatenate(losses)
    order = np.argsort(end, kind="stable")
    places = np.searchsorted(end[order], cuts, side="right").tolist()
    loss = loss[order]
    return [loss[low:high] for low, high in pairwise(places)]


def _lowest(ledger: Ledger) -> int | None:
    """Return the lowest rank that recorded a finite loss."""
    ranks = sorted({rank for attempt in ledger.book.attempts for rank in attempt.ranks})
    for rank in ranks:
        for _, loss in _recorded(ledger, rank):
            if np.isfinite(loss).any():
                return rank
    return None


def _recorded(ledger: Ledger, rank: int | None) -> Iterator[tuple[Times, npt.NDArray[np.float64]]]:
    """Yield ends and losses of the records of a rank."""
    for attempt in ledger.book.attempts:
        log = None if rank is None else attempt.ranks.get(rank)
        for rows in [] if log is None else log.rows:
            if rows.loss is not None:
                # of a summary only the last step's loss can be known
                yield rows.end[-len(rows.loss) :], rows.loss
