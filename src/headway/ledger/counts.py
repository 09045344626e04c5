"""How many optimizer steps a run executed, how many survive, and how many were done again."""

import numpy as np

from headway.ledger.book import Book
from headway.ledger.model import StepCounts
from headway.ledger.steps import Times
from headway.sequences import SequenceSet


def step_counts(book: Book, durable: int, lost: bool) -> StepCounts:
    """Return the counts of a book; `durable` and `lost` as for its intervals."""
    executed, highest, surviving = 0, 0, 0
    distinct = SequenceSet()
    for account in book.accounts:
        if account.steps is None:
            continue
        executed += len(account.steps.number)
        highest = max(highest, int(account.steps.number.max()))
        for begin, end, category, _ in account.fates(durable, lost):
            for first, last in _stretches(account.steps.number[begin:end]):
                distinct.add(first, last)
            surviving += end - begin if category == "productive" else 0
    return StepCounts(
        highest=highest,
        executed=executed,
        surviving=surviving,
        rework=executed - sum(last - first + 1 for first, last in distinct),
        target=None if book.configured is None else book.configured.target_step,
    )


def _stretches(numbers: Times) -> list[tuple[int, int]]:
    """Return the unbroken stretches of rising numbers; lost records leave holes between them."""
    first, last = int(numbers[0]), int(numbers[-1])
    if last - first + 1 == len(numbers):
        return [(first, last)]
    cuts = np.flatnonzero(np.diff(numbers) != 1)
    firsts = [first, *numbers[cuts + 1].tolist()]
    lasts = [*numbers[cuts].tolist(), last]
    return list(zip(firsts, lasts, strict=True))
