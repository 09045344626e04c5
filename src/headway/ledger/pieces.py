"""Stretches of time and the arithmetic on them: cutting out, clipping, innermost phases."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from headway.metrics import CUSTOM

CARVED = ("checkpoint_load", "checkpoint_save", "data_wait", "evaluation")
"""Phases that are categories of their own; the others only name a part of start-up."""


class Piece(NamedTuple):
    """A stretch of time in ns with its category and part."""

    start: int
    end: int
    category: str
    part: str | None = None


class Span(NamedTuple):
    """A stretch of time in ns."""

    start: int
    end: int


def is_carved(name: str) -> bool:
    """Whether a phase owns its time as a category of its own."""
    return name in CARVED or name.startswith(CUSTOM)


def without(spans: Iterable[Span], holes: Iterable[tuple[int, int]]) -> list[Span]:
    """Return what is left of sorted, disjoint spans outside sorted, disjoint holes."""
    left = []
    cuts = list(holes)
    position = 0
    for start, end in spans:
        while position < len(cuts) and cuts[position][1] <= start:
            position += 1
        here = position
        while here < len(cuts) and cuts[here][0] < end:
            if cuts[here][0] > start:
                left.append(Span(start, cuts[here][0]))
            start = max(start, cuts[here][1])
            here += 1
        if start < end:
            left.append(Span(start, end))
    return left


def clip(pieces: Iterable[Piece], start: int, end: int) -> list[Piece]:
    """Return the parts of pieces that lie between two times."""
    return [
        piece._replace(start=max(piece.start, start), end=min(piece.end, end))
        for piece in pieces
        if piece.start < end and piece.end > start and piece.start < piece.end
    ]


def length(spans: Iterable[tuple[int, int]]) -> int:
    """Return the total length of disjoint spans."""
    return sum(end - start for start, end in spans)


def merge(spans: Iterable[tuple[int, int]]) -> list[Span]:
    """Unite overlapping or touching spans."""
    united: list[Span] = []
    for start, end in sorted(spans):
        if united and start <= united[-1].end:
            united[-1] = Span(united[-1].start, max(end, united[-1].end))
        elif start < end:
            united.append(Span(start, end))
    return united


def innermost(named: Iterable[tuple[int, int, str, int, int]]) -> list[Piece]:
    """Resolve nested phases: at each moment the one that began last, then the shorter, owns it.

    Each is (start, end, name, begin of the whole phase, end of the whole phase); the stretch may
    be a part of the phase. Of equals the first owns. Example: evaluation 0-10 with a save 4-6
    inside gives evaluation 0-4, save 4-6, evaluation 6-10.
    """
    listed = list(named)
    spans = sorted(range(len(listed)), key=lambda number: listed[number][:2])
    if all(listed[one][1] <= listed[other][0] for one, other in pairwise(spans)):
        return [Piece(*listed[one][:3]) for one in spans if listed[one][0] < listed[one][1]]
    edges = sorted({edge for start, end, *_ in listed for edge in (start, end)})
    found: list[Piece] = []
    position = 0
    active: list[int] = []
    for begin, finish in pairwise(edges):
        while position < len(spans) and listed[spans[position]][0] <= begin:
            active.append(spans[position])
            position += 1
        active = [number for number in active if listed[number][1] > begin]
        if active:
            best = max(active, key=lambda number: (listed[number][3], -listed[number][4], -number))
            owner = listed[best][2]
            if found and found[-1].end == begin and found[-1].category == owner:
                found[-1] = found[-1]._replace(end=finish)
            else:
                found.append(Piece(begin, finish, owner))
    return found


def paint(start: int, end: int, layers: Iterable[Iterable[Piece]], rest: Piece) -> list[Piece]:
    """Cover a stretch completely: each layer owns what the layers before it left.

    `rest` gives category and part of what no layer covers.
    """
    free = [Span(start, end)] if start < end else []
    painted: list[Piece] = []
    for layer in layers:
        for piece in layer:
            if piece.start >= piece.end:
                continue
            low = bisect_right(free, piece.start, key=_end)
            high = bisect_left(free, piece.end, low, key=_start)
            owned = free[low:high]
            painted += [
                piece._replace(start=max(a, piece.start), end=min(b, piece.end)) for a, b in owned
            ]
            # spans that lie within the piece are gone, the outer two keep what juts out
            free[low:high] = [
                *(Span(a, piece.start) for a, _ in owned[:1] if a < piece.start),
                *(Span(piece.end, b) for _, b in owned[-1:] if b > piece.end),
            ]
    painted += [rest._replace(start=a, end=b) for a, b in free]
    return sorted(painted)


def _start(span: Span) -> int:
    return span.start


def _end(span: Span) -> int:
    return span.end
