"""Ranks and attempts in words: the first few stretches of their numbers, and how many more."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from headway.wording import count

_NAMED = 4
"""Stretches that are named."""


def ranks_in_words(ranks: Sequence[int]) -> str:
    """Return sorted ranks as people write them: `rank 3`, `ranks 0-2, 7 and 40 more`."""
    return in_stretches(ranks, "rank") if ranks else ""


def absent_ranks_in_words(present: Collection[int], world: int) -> str:
    """Return the ranks below `world` that are not among others, which may be nearly all of them."""
    edges = [-1, *sorted(rank for rank in present if 0 <= rank < world), world]
    return _in_words(
        [(low + 1, high - 1) for low, high in pairwise(edges) if low + 1 < high], "rank"
    )


def in_stretches(numbers: Sequence[int], noun: str) -> str:
    """Return sorted numbers after what they count, the first few stretches of them."""
    stretches: list[tuple[int, int]] = []
    for number in numbers:
        if stretches and number == stretches[-1][1] + 1:
            stretches[-1] = stretches[-1][0], number
        else:
            stretches.append((number, number))
    return _in_words(stretches, noun)


def _in_words(stretches: Sequence[tuple[int, int]], noun: str) -> str:
    sizes = [high - low + 1 for low, high in stretches]
    plural = "" if sum(sizes) == 1 else "s"
    words = ", ".join(
        f"{low}" if low == high else f"{low}-{high}" for low, high in stretches[:_NAMED]
    )
    more = sum(sizes[_NAMED:])
    return f"{noun}{plural} {words}" + (f" and {count(more)} more" if more else "")
