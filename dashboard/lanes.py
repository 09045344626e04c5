"""Intervals thinned to what a screen can show. Pure functions."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from headway.course.rank_lanes import LOSSES

Interval = Mapping[str, Any]

_MOST_BARS = 2_000
_SLOTS = 1_500
_MOST_SLIVERS = 100
_LOSS_WEIGHT = 4


def in_rows(attempts: Sequence[Mapping[str, Any]], intervals: Sequence[Interval]) -> list[Interval]:
    """Return the intervals with time between attempts in the row of the attempt it led to.

    What follows the last attempt stays in its row; with no attempt at all nothing has a row.
    """
    if not attempts:
        return []
    starts = [attempt["start"] for attempt in attempts]
    placed = []
    for interval in intervals:
        if interval["attempt"] is None:
            index = min(bisect_left(starts, interval["end"]), len(attempts) - 1)
            interval = {**interval, "attempt": attempts[index]["attempt"]}
        placed.append(interval)
    return placed


T = TypeVar("T")


def thinned(items: Sequence[T], most: int) -> Sequence[T]:
    """Return at most so many items, evenly chosen, first and last included."""
    if len(items) <= most:
        return items
    return [items[(len(items) - 1) * place // (most - 1)] for place in range(most)]


def highest(corners: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """Return corners (time, value), the highest of each slot of time where there are too many."""
    if len(corners) <= most:
        return list(corners)
    first, slots = corners[0][0], most // 2
    width = max(-(-(corners[-1][0] - first + 1) // slots), 1)
    found: dict[int, tuple[int, int]] = {}
    for time, value in corners:
        slot = (time - first) // width
        if slot not in found or value > found[slot][1]:
            found[slot] = time, value
    return list(found.values())


def drawn(intervals: Sequence[Interval], most: int = _MOST_BARS) -> list[Interval]:
    """Return the intervals as few enough bars: touching equals joined, then one per time slot.

    With too many to see, each row is cut into slots narrower than a pixel, and a slot shows the
    category that fills most of it, where stalls, restarts and time down count four times. The
    numbers beside the picture come from the ledger.
    """
    bars = _joined(intervals)
    if not bars:
        return []
    first = min(one["start"] for one in bars)
    width = -(-(max(one["end"] for one in bars) - first) // _SLOTS)
    # Each of them would be drawn a whole pixel wide, and many of them would hide the others.
    slivers = sum(one["end"] - one["start"] < width for one in bars)
    if len(bars) <= most and slivers <= _MOST_SLIVERS:
        return bars
    filled: dict[tuple[str | None, int], dict[str, int]] = {}
    extents: dict[str | None, tuple[int, int]] = {}
    for one in bars:
        begun, ended = extents.get(one["attempt"], (one["start"], one["end"]))
        extents[one["attempt"]] = min(begun, one["start"]), max(ended, one["end"])
        for slot in range((one["start"] - first) // width, -(-(one["end"] - first) // width)):
            begin = first + slot * width
            length = min(one["end"], begin + width) - max(one["start"], begin)
            times = filled.setdefault((one["attempt"], slot), {})
            weight = _LOSS_WEIGHT if one["category"] in LOSSES else 1
            times[one["category"]] = times.get(one["category"], 0) + weight * length
    return _joined(
        [
            {
                "start": max(first + slot * width, extents[attempt][0]),
                "end": min(first + (slot + 1) * width, extents[attempt][1]),
                "category": max(times, key=lambda name: times[name]),
                "part": None,
                "attempt": attempt,
                "first_step": None,
                "last_step": None,
                "amounts": {},
            }
            for (attempt, slot), times in filled.items()
        ]
    )


def _joined(intervals: Sequence[Interval]) -> list[Interval]:
    rows: dict[str | None, list[dict[str, Any]]] = {}
    for one in sorted(intervals, key=lambda interval: interval["start"]):
        row = rows.setdefault(one["attempt"], [])
        if row and row[-1]["end"] == one["start"] and _kind(row[-1]) == _kind(one):
            row[-1]["end"] = one["end"]
            row[-1]["last_step"] = one["last_step"]
            row[-1]["amounts"] = dict(Counter(row[-1]["amounts"]) + Counter(one["amounts"]))
        else:
            row.append(dict(one))
    return [bar for row in rows.values() for bar in row]


def _kind(interval: Interval) -> tuple[str, str | None]:
    return interval["category"], interval["part"]
