"""Ranks that are slower than their peers, found beside the ledger without touching it.

A rank's excess in one step is its time beyond the median of its peers; a straggler's usual excess
is a tenth of the peers' usual step or more. Waits for data count apart: a slow loader shows there
while the peers' steps grow.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headway.ledger import Ledger
from headway.ledger.account import Account
from headway.ledger.attempts import RankLog

WINDOW = 100
"""Newest steps that are compared."""
FEWEST = 5
"""Steps that two ranks must share to be compared."""
SHARE = 0.1
"""Excess, as a share of the peers' median step, from which a rank is a straggler."""
_LEAST = 1_000_000
"""Excess below this many ns is noise."""
_UNKNOWN = -1

Table = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """A rank with its usual excess per step over the median of its peers; times in ns.

    `peers` is that median, of steps or of waits for data, `usual` the usual step of all.
    """

    rank: int
    node: str | None
    kind: str
    excess: int
    peers: int
    usual: int
    steps: int


def stragglers(ledger: Ledger) -> list[Straggler]:
    """Return the stragglers among the newest steps of the run, the slowest first."""
    for account in reversed(ledger.book.accounts):
        if account.steps is not None:
            return _of_attempt(account)
    return []


def _of_attempt(account: Account) -> list[Straggler]:
    steps = account.steps
    ranks = [log for _, log in sorted(account.attempt.ranks.items()) if log.rows]
    if steps is None or len(ranks) < 2:
        return []
    newest = int(steps.number[-1])
    window = min(WINDOW, newest)
    durations = np.full((len(ranks), window), _UNKNOWN, dtype=np.int64)
    waits = durations.copy()
    for row, log in enumerate(ranks):
        _fill(log, newest - window + 1, durations[row], waits[row])
    usual = _usual(durations)
    found = []
    for kind, table in (("step", durations), ("data_wait", waits)):
        excess, peers, counts = _excess(table)
        for row, log in enumerate(ranks):
            least = max(SHARE * usual, _LEAST)
            if counts[row] >= FEWEST and excess[row] >= least:
                found.append(
                    Straggler(
                        rank=log.rank,
                        node=log.node,
                        kind=kind,
                        excess=int(excess[row]),
                        peers=int(peers[row]),
                        usual=usual,
                        steps=int(counts[row]),
                    )
                )
    return sorted(found, key=lambda one: (-one.excess, one.rank))


def _fill(log: RankLog, first: int, durations: Table, waits: Table) -> None:
    """Write a rank's newest steps into its row; a detailed one beats a summarised one."""
    last = first + len(durations) - 1
    for detail in (False, True):
        for rows in reversed(log.rows):
            if rows.detail is not detail or int(rows.number[0]) > last:
                continue
            if int(rows.number[-1]) < first:
                break
            kept = (rows.number >= first) & (rows.number <= last)
            at = rows.number[kept] - first
            took = (rows.end - rows.start)[kept]
            waits[at] = rows.data_wait[kept]
            # a summary's steps hold their waits, detailed ones come after theirs
            durations[at] = took if detail else took - waits[at]


def _usual(table: Table) -> int:
    known = table[table != _UNKNOWN]
    return int(np.median(known)) if len(known) else 0


def _excess(table: Table) -> tuple[Sequence[float], Sequence[float], Sequence[int]]:
    """Return each rank's median excess over its peers' median, that median, and its steps.

    Columns are steps. The lower median of a rank's peers stands at place (n - 2) // 2 of the sorted
    column if the rank itself lies beyond; one that does not is no straggler.
    """
    known = table != _UNKNOWN
    shared = known.sum(axis=0)
    ordered = np.sort(np.where(known, table, np.iinfo(np.int64).max), axis=0)
    middle = np.maximum(shared - 2, 0) // 2
    peers = ordered[middle, np.arange(table.shape[1])]
    usable = known & (shared >= 2)
    excess, typical, counts = [], [], []
    for row in range(len(table)):
        use = usable[row]
        counts.append(int(use.sum()))
        if counts[-1]:
            excess.append(float(np.median(table[row, use] - peers[use])))
            typical.append(float(np.median(peers[use])))
        else:
            excess.append(0.0)
            typical.append(0.0)
    return excess, typical, counts
