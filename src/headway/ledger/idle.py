"""Time between attempts: restart while someone brings the run back, else down (rules 23, 24)."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from headway.events import RestartPhase
from headway.ledger.pieces import Piece, paint

PARTS = {
    "abort": "teardown",
    "stop_workers": "teardown",
    "finalize": "teardown",
    "rendezvous": "rendezvous",
    "spawn": "other",
    "health_check": "other",
}
"""Phases in which a launcher or wrapper is working, and the part they belong to."""


class Held:
    """How many GPUs the run held, or asked for, when; a step function of time."""

    def __init__(self, changes: Iterable[tuple[int, int]]) -> None:
        self._changes = sorted(changes)
        self._times = [time for time, _ in self._changes]

    @property
    def times(self) -> list[int]:
        """Return when the number changed."""
        return self._times

    def at(self, time: int) -> int | None:
        """Return the GPUs held at a time; None before anyone said so."""
        position = bisect_right(self._times, time) - 1
        return None if position < 0 else self._changes[position][1]


class Launching(NamedTuple):
    """A stretch in which a launcher or wrapper was in one phase of a restart."""

    start: int
    end: int
    phase: str


def launches(
    states: Sequence[tuple[int, str, RestartPhase]], begins: Sequence[int], end: int
) -> list[Launching]:
    """Return what launchers did; a phase lasts until its end, the next one or the next attempt.

    `states` are time, producer and words in order of time, `begins` those of the attempts.
    """
    found = []
    ended: dict[tuple[str, str], int] = {}
    following: dict[str, int] = {}
    for time, producer, state in reversed(states):
        if state.state == "ended":
            ended[producer, state.phase] = time
            continue
        position = bisect_right(begins, time)
        until = begins[position] if position < len(begins) else end
        if (producer, state.phase) in ended:
            until = ended[producer, state.phase]
        elif producer in following:
            until = min(until, following[producer])
        found.append(Launching(time, until, state.phase))
        following[producer] = time
        # an end after this begin belongs to it, or to nobody
        ended = {key: at for key, at in ended.items() if key[0] != producer}
    return found[::-1]


def idle_pieces(
    start: int,
    end: int,
    launching: Sequence[Launching],
    base: str,
    in_process: bool,
    lead: Piece | None,
    held: Held,
) -> list[Piece]:
    """Cover a stretch in which no attempt runs.

    `base` is `restart`, or `startup` before the first attempt; `in_process` says that a living
    process brings the run back; `lead` owns the time until a launcher sees the end.
    """
    near = [item for item in launching if item.start < end and item.end > start]
    working = [[Piece(*item[:2], base, PARTS[item.phase])] for item in near if item.phase in PARTS]
    edges = [start, *(time for time in held.times if start < time < end), end]
    down = [
        Piece(a, b, "down", "queued" if held.at(a) == 0 else "held") for a, b in pairwise(edges)
    ]
    layers = [[] if lead is None else [lead]]
    if in_process:
        layers.append([Piece(start, end, base, "other")])
    return paint(start, end, [*layers, *working, down], Piece(0, 0, "down", "held"))
