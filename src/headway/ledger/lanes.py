"""A run as a list of intervals in order of time, ready to be drawn."""

from collections.abc import Iterable
from dataclasses import replace

from headway.ledger.account import fate_of
from headway.ledger.book import Book
from headway.ledger.model import Interval


def intervals_of(book: Book, durable: int, lost: bool) -> list[Interval]:
    """Return the intervals of a book; steps of one fate are joined.

    `durable` is the newest step in a durable checkpoint, `lost` says that steps at risk are lost.
    """
    found = [
        _interval(piece.start, piece.end, piece.category, piece.part, None)
        for piece in book.between
    ]
    for account in book.accounts:
        identity = account.attempt.identity
        fates = account.shares(durable, lost)
        owned = [*account.shared, *(account.owned(piece) for piece in account.around)]
        found += [_interval(o.start, o.end, *fate_of(o, fates), identity) for o in owned]
        found += account.step_intervals(fates)
    found.sort(key=lambda interval: (interval.start, interval.end))
    return _joined(interval for interval in found if interval.start < interval.end)


def _joined(intervals: Iterable[Interval]) -> list[Interval]:
    """Join neighbours that differ in nothing; those of steps are joined already."""
    found: list[Interval] = []
    for interval in intervals:
        last = found[-1] if found else None
        if (
            last is not None
            and last.end == interval.start
            and (last.category, last.part, last.attempt)
            == (interval.category, interval.part, interval.attempt)
            and last.first_step is None
            and interval.first_step is None
        ):
            spent = {last.category: interval.end - last.start}
            found[-1] = replace(last, end=interval.end, amounts=spent)
        else:
            found.append(interval)
    return found


def _interval(
    start: int, end: int, category: str, part: str | None, attempt: str | None
) -> Interval:
    return Interval(
        start=start,
        end=end,
        category=category,
        part=part,
        attempt=attempt,
        amounts={category: end - start},
    )
