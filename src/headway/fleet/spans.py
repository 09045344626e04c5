"""Windows of a fleet's time: the last so many days, equal cells of them, and calendar months.

Everything is UTC; cells begin at whole multiples of their width since 1970.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

_SECOND = 10**9
MINUTE = 60 * _SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WIDTHS = (
    MINUTE,
    *(minutes * MINUTE for minutes in (2, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 6, 12)),
    *(days * DAY for days in (1, 2, 7, 14, 28)),
)
"""Widths of cells, in ns, that people read well."""
_MONTHS = 12


class Span(NamedTuple):
    """A window from `start` up to `end`, in UTC ns."""

    start: int
    end: int

    def holds(self, time: int) -> bool:
        """Return whether a moment lies in it."""
        return self.start <= time < self.end

    def meets(self, start: int, end: int) -> bool:
        """Return whether a run of that time is part of it; one that has just begun is, too."""
        return start < self.end and (end > self.start or start >= self.start)


def last(length: int, newest: int) -> tuple[Span, Span]:
    """Return the window of `length` ns that ends at `newest` (UTC ns), and the one before it.

    It begins at a whole five minutes, from two days on at a whole hour, so that it stands still
    while the end moves on; so it is longer than asked by less than that. It reaches one ns past
    `newest`, which is part of it.
    """
    grid = 5 * MINUTE if length < 2 * DAY else HOUR
    start = (newest - length) // grid * grid
    return Span(start, newest + 1), Span(start - length, start)


def width_for(span: Span, most: int) -> int:
    """Return the smallest width of which at most `most` cells cover a window."""
    for width in WIDTHS:
        if _num_cells(span, width) <= most:
            return width
    longest = WIDTHS[-1]
    return longest * (-(-_num_cells(span, longest) // most) + 1)


def cells(span: Span, width: int) -> list[int]:
    """Return the begins of the cells that cover a window."""
    if span.end <= span.start:
        return []
    return list(range(span.start // width * width, span.end, width))


def months(span: Span) -> Iterator[tuple[str, Span]]:
    """Yield the calendar months of a window, each as `2026-11` with the part in the window."""
    start = span.start
    while start < span.end:
        moment = datetime.fromtimestamp(start // _SECOND, tz=UTC)
        year, month = divmod(moment.year * _MONTHS + moment.month, _MONTHS)
        after = round(datetime(year, month + 1, 1, tzinfo=UTC).timestamp()) * _SECOND
        yield f"{moment:%Y-%m}", Span(start, min(after, span.end))
        start = after


def _num_cells(span: Span, width: int) -> int:
    return -(-span.end // width) - span.start // width
