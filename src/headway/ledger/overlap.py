"""Attempts that ran at the same time (rule 9).

Completed steps own their time, those of the surviving lineage first, then those of the newest
attempt; everything else belongs to the newest attempt. Only the overlapping stretch is walked
over step by step.
"""

import heapq
from collections.abc import Sequence
from itertools import pairwise

from headway.ledger.account import Account, Owned
from headway.ledger.attempt_time import STEP
from headway.ledger.pieces import Span, merge


def resolve(accounts: Sequence[Account]) -> tuple[list[Account], bool]:
    """Let each moment belong to one attempt; tell whether two of them stepped at once.

    Accounts that overlap are replaced by changed copies.
    """
    windows = _windows(accounts)
    if not windows:
        return list(accounts), False
    changed = [account.changeable() for account in accounts]
    candidates: list[tuple[int, int, tuple[int, int], int, Owned]] = []
    for number, account in enumerate(changed):
        for window in windows:
            if account.start < window.end and account.end > window.start:
                for owned in _taken(account, window):
                    order = (_order(account, owned), -number)
                    candidates.append((owned.start, owned.end, order, number, owned))
    split = _sweep(changed, candidates)
    for account in changed:
        account.freeze()
    return changed, split


def _windows(accounts: Sequence[Account]) -> list[Span]:
    found = []
    for number, account in enumerate(accounts):
        end = 0 if account.steps is None else account.steps.last_end
        end = max([end, *(piece.end for piece in account.around)])
        # attempts are in the order of their begins: the next one begins first
        if number + 1 < len(accounts) and accounts[number + 1].attempt.begin < end:
            found.append((accounts[number + 1].attempt.begin, end))
    return merge(found)


def _order(account: Account, owned: Owned) -> int:
    """Return 0 for surviving steps, 1 for other steps, 2 for the rest, gaps included."""
    if owned.row is None or owned.category != STEP or account.steps is None:
        return 2
    steps = account.steps
    if owned.start < int(steps.start[owned.row]) or owned.start >= int(steps.end[owned.row]):
        return 2
    return 0 if _survives(account, owned.row) else 1


def _survives(account: Account, row: int) -> bool:
    if account.steps is None:
        return False
    index, number = int(account.steps.segment[row]), int(account.steps.number[row])
    return any(
        segment.on_chain and segment.index == index and number <= segment.survives
        for segment in account.segments
    )


def _taken(account: Account, window: Span) -> list[Owned]:
    """Take what lies in the window out of an account."""
    taken = []
    kept = []
    for piece in account.around:
        low, high = max(piece.start, window.start), min(piece.end, window.end)
        if low >= high:
            kept.append(piece)
            continue
        row = account.last_row if piece.category == STEP else None
        taken.append(Owned(low, high, piece.category, piece.part, row))
        if piece.start < low:
            kept.append(piece._replace(end=low))
        if piece.end > high:
            kept.append(piece._replace(start=high))
    account.around = kept
    steps = account.steps
    if steps is None:
        return taken
    inside = ((steps.begin < window.end) & (steps.end > window.start)).nonzero()[0]
    exploded = [
        part
        for row in inside.tolist()
        for owned in account.explode(row)
        for part in _at(owned, int(steps.start[row]))
    ]
    for owned in exploded:
        if owned.end <= window.start or owned.start >= window.end:
            account.shared.append(owned)
            continue
        if owned.start < window.start:
            account.shared.append(owned._replace(end=window.start))
        if owned.end > window.end:
            account.shared.append(owned._replace(start=window.end))
        taken.append(
            owned._replace(start=max(owned.start, window.start), end=min(owned.end, window.end))
        )
    if len(inside):
        first, last = int(steps.begin[inside[0]]), int(steps.end[inside[-1]])
        steps.work[inside] = 0
        steps.wait[inside] = steps.late[inside] = 0
        steps.pieces = [
            piece for piece in steps.pieces if piece.end <= first or piece.start >= last
        ]
        account.freeze()
    return taken


def _at(owned: Owned, time: int) -> list[Owned]:
    """Cut a stretch where the step itself begins."""
    if owned.category == STEP and owned.start < time < owned.end:
        return [owned._replace(end=time), owned._replace(start=time)]
    return [owned]


def _sweep(
    accounts: Sequence[Account],
    candidates: list[tuple[int, int, tuple[int, int], int, Owned]],
) -> bool:
    """Give each elementary stretch to the candidate first in order."""
    candidates.sort(key=lambda item: item[:4])
    edges = sorted({edge for start, end, *_ in candidates for edge in (start, end)})
    active: list[tuple[tuple[int, int], int, int, int, Owned]] = []
    position = 0
    split = False
    for begin, finish in pairwise(edges):
        while position < len(candidates) and candidates[position][0] <= begin:
            _, end, order, number, owned = candidates[position]
            heapq.heappush(active, (order, position, end, number, owned))
            position += 1
        while active and active[0][2] <= begin:
            heapq.heappop(active)
        if not active:
            continue
        _, _, _, number, owned = active[0]
        stepping = {item[3] for item in active if item[2] > begin and item[0][0] < 2}
        split = split or len(stepping) > 1
        shared = accounts[number].shared
        if shared and shared[-1].end == begin and shared[-1][2:] == owned[2:]:
            shared[-1] = shared[-1]._replace(end=finish)
        else:
            shared.append(owned._replace(start=begin, end=finish))
    return split
