"""Time between attempts: restart while someone brings the run back, else down (rules 23, 24)."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from headway.events import RestartPhase
from headway.ledger.pieces import Piece

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
    """How many GPUs the run held when; a step function of time."""

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


def idle_pieces(
    start: int,
    end: int,
    states: Sequence[tuple[int, RestartPhase]],
    base: str,
    in_process: bool,
    lead: str | None,
    held: Held,
) -> list[Piece]:
    """Cover a stretch in which no attempt runs.

    `states` is what launchers and wrappers said since the last progress; `base` is `restart`, or
    `startup` before the first attempt; `in_process` says that a living process brings it back.
    `lead` owns the time until a launcher first acts: it had not seen the end yet.
    """
    acted = min((time for time, state in states if state.state == "began"), default=start)
    if lead is not None and acted > start:
        first = min(acted, end)
        rest = idle_pieces(first, end, states, base, in_process, None, held)
        return [Piece(start, first, lead, None), *rest]
    edges = {start, end}
    edges |= {time for time, _ in states if start < time < end}
    edges |= {time for time in held.times if start < time < end}
    cuts = sorted(edges)
    found: list[Piece] = []
    for begin, finish in pairwise(cuts):
        working = _working(states, begin)
        if working is None and in_process:
            working = "spawn"
        if working in PARTS:
            piece = Piece(begin, finish, base, PARTS[working or "spawn"])
        else:
            part = "queued" if held.at(begin) == 0 else "held"
            piece = Piece(begin, finish, "down", part)
        if found and found[-1][2:] == piece[2:]:
            found[-1] = found[-1]._replace(end=finish)
        else:
            found.append(piece)
    return found


def _working(states: Sequence[tuple[int, RestartPhase]], time: int) -> str | None:
    """Return the phase that is under way at a time."""
    current: str | None = None
    for seen, state in states:
        if seen > time:
            break
        if state.state == "began":
            current = state.phase
        elif state.phase == current:
            current = None
    return current
