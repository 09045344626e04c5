"""Gives a simulated run's events as a collector would have them at any moment.

A recorder ships each step within a second; the simulator writes blocks of up to a thousand, so a
block is cut where it is asked for.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from headway.events import (
    AttemptStarted,
    CheckpointFailed,
    CheckpointLoadFailed,
    Envelope,
    Fault,
    GpuXid,
    RankExited,
    Resumed,
    Steps,
)
from headway.step_blocks import LAYOUT

TELLING = (
    AttemptStarted,
    CheckpointFailed,
    CheckpointLoadFailed,
    Fault,
    GpuXid,
    RankExited,
    Resumed,
)
"""Events that may raise a condition at once: something broke, failed, or began anew."""

_STOPPED = 300 * 10**9
"""Time in ns without a step after which they have stopped."""
_GROWN = 3
"""Times of the wait for data before, from which on it has grown."""


class Feed:
    """The events of one run in order of time, each given once."""

    def __init__(self, events: Sequence[Envelope]) -> None:
        self._events = events
        self._next = 0
        self._cuts: dict[int, int] = {}
        self._blocks = sorted(
            (one.anchor + int(_numbers(one)[0, 0]), place)
            for place, one in enumerate(events)
            if isinstance(one.event, Steps)
        )
        self._begun = 0
        self._open: list[int] = []
        told = [one.wall for one in events if isinstance(one.event, TELLING)]
        self._telling = sorted([*told, *_stops(events)])
        self.stepped = 0
        """Time of the newest step that was given, UTC ns."""

    def until(self, now: int) -> Iterator[Envelope]:
        """Yield what is new at a time in UTC ns."""
        while self._next < len(self._events) and self._events[self._next].wall <= now:
            yield self._rest(self._next)
            self._next += 1
        while self._begun < len(self._blocks) and self._blocks[self._begun][0] <= now:
            self._open.append(self._blocks[self._begun][1])
            self._begun += 1
        self._open = [place for place in self._open if place >= self._next]
        for place in self._open:
            part = self._part(place, now)
            if part is not None:
                yield part

    def telling_after(self, now: int) -> int | None:
        """Return when the next event comes that may raise a condition."""
        place = bisect_right(self._telling, now)
        return self._telling[place] if place < len(self._telling) else None

    def telling_before(self, now: int) -> int:
        """Return when the newest event came that may raise a condition."""
        return self._telling[max(bisect_right(self._telling, now) - 1, 0)]

    def _rest(self, place: int) -> Envelope:
        one = self._events[place]
        if not isinstance(one.event, Steps):
            return one
        self.stepped = max(self.stepped, one.wall)
        first = self._cuts.pop(place, 0)
        return _cut(one, first, len(_numbers(one)))

    def _part(self, place: int, now: int) -> Envelope | None:
        one = self._events[place]
        numbers = _numbers(one)
        ends = numbers[:, 0] + numbers[:, 1]
        first, last = (
            self._cuts.get(place, 0),
            int(np.searchsorted(ends, now - one.anchor, "right")),
        )
        if last <= first:
            return None
        self._cuts[place] = last
        self.stepped = max(self.stepped, one.anchor + int(ends[last - 1]))
        return _cut(one, first, last)


def _stops(events: Sequence[Envelope]) -> Iterator[int]:
    """Yield when it shows that steps have stopped, or that waits for data have grown, in UTC ns."""
    waits: dict[str, int] = {}
    ended: dict[str, int] = {}
    for one in events:
        if not isinstance(one.event, Steps):
            continue
        numbers = _numbers(one)
        wait, begin = int(numbers[0, 2]), one.anchor + int(numbers[0, 0])
        if wait > _GROWN * waits.get(one.producer, wait):
            yield one.anchor + int(numbers[0, 0] + numbers[0, 1])
        before = ended.get(one.producer, begin)
        if begin - before > _STOPPED:
            yield before + _STOPPED
        waits[one.producer] = wait
        ended[one.producer] = one.anchor + int(numbers[-1, 0] + numbers[-1, 1])
    yield from (end + _STOPPED for end in ended.values())


def _numbers(one: Envelope) -> np.ndarray:
    assert isinstance(one.event, Steps)
    return np.frombuffer(one.event.packed, dtype="<i8").reshape(-1, LAYOUT.size // 8)


def _cut(one: Envelope, first: int, last: int) -> Envelope:
    """Return a block's steps from `first` to before `last`, counted from 0."""
    event = one.event
    assert isinstance(event, Steps)
    numbers = _numbers(one)[last - 1]
    end = int(numbers[0] + numbers[1])
    packed = event.packed[first * LAYOUT.size : last * LAYOUT.size]
    return replace(
        one,
        first_sequence=one.first_sequence + first,
        last_sequence=one.first_sequence + last - 1,
        wall=one.anchor + end,
        monotonic=end,
        event=replace(event, first_step=event.first_step + first, packed=packed),
    )
