"""How an attempt broke: when, seen by what, and when its teardown began (rules 20-22)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headway.events import AttemptEnded, Fault, RankExited
from headway.ledger.attempts import Attempt, Phase

OWN_TIME = ("exception", "gpu_oom", "numerical")
"""Faults recorded at the moment they struck."""
WATCHDOGS = ("collective_timeout", "heartbeat_timeout", "section_timeout", "hang")
TEARDOWN_PHASES = ("abort", "stop_workers")
OTHERS = ("launcher", "scheduler", "person")
"""Who ends a rank as part of a teardown, so that its end is no fault."""


class End(Protocol):
    """What is known about the attempt's end."""

    @property
    def end(self) -> int:
        """Its end in ns."""

    @property
    def alive(self) -> bool:
        """Whether it may still go on."""

    @property
    def following(self) -> int | None:
        """Begin of the next attempt: teardown is seen before it."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign of breakage: when it began, whether it said so itself, when and by whom seen."""

    began: int
    own: bool
    seen: int
    rank: int | None
    watchdog: bool = False


@dataclass(frozen=True, slots=True)
class Breakage:
    """When an attempt broke (None: it did not) and when its teardown began.

    `torn` says that teardown was seen; else `teardown` is the attempt's end. `own` are the times
    that faults tell themselves, `watchdog` the earliest begin that a watchdog tells, `done` the
    end of the last completed step or phase.
    """

    fault: int | None
    teardown: int
    torn: bool
    rank: int | None
    own: tuple[int, ...]
    watchdog: int | None
    done: int


def last_done(phases: Mapping[int, Iterable[Phase]], start: int) -> int:
    """Return the end of the last completed step or closed phase."""
    ends = [
        phase.end
        for listed in phases.values()
        for phase in listed
        if phase.is_closed and phase.end is not None
    ]
    return max([start, *ends])


def stop_of(attempt: Attempt, start: int) -> tuple[int, int] | None:
    """Return the stretch of an announced stop; without an exit it has no effect."""
    if not attempt.stops or not attempt.exits:
        return None
    begin = max(start, min(time for time, _ in attempt.stops))
    end = max(time for time, _, _ in attempt.exits)
    return (begin, end) if begin < end else None


def breakage(
    attempt: Attempt, phases: Mapping[int, Iterable[Phase]], end: End, start: int, failed: bool
) -> Breakage:
    """Weigh faults, exits and teardown after the last completed step at `start`.

    Of a failed start only watchdogs tell when it broke (rule 17).
    """
    done = last_done(phases, start)
    signs = signs_of(attempt, done, start)
    watchdogs = [sign for sign in signs if sign.watchdog] if failed else []
    told = without_consequences(watchdogs if failed else signs)
    first = min(told, key=_order, default=None)
    times = [time for time, state in attempt.said if state.phase in TEARDOWN_PHASES]
    for time, rank, exit_ in attempt.exits:
        peer = first is not None and rank != first.rank and exit_.signal is not None
        if by_others(exit_) or peer:
            times.append(time)
    seen = min((time for time in times if time >= start), default=None)
    if seen is not None and end.following is not None and seen > end.following:
        seen = None
    known = first or min(without_consequences(signs), key=_order, default=None)
    return Breakage(
        fault=None if known is None else known.began,
        teardown=end.end if seen is None else seen,
        torn=seen is not None,
        rank=None if known is None else known.rank,
        own=tuple(sign.began for sign in told if sign.own),
        watchdog=None if not failed or first is None else max(done, first.began),
        done=done,
    )


def _order(sign: Sign) -> tuple[int, int, int]:
    return sign.began, sign.seen, sign.rank or 0


def signs_of(attempt: Attempt, done: int, start: int) -> list[Sign]:
    """Return the signs of breakage after the last completed step.

    A fault without a time of its own began when the last step or phase was done.
    """
    found = []
    for time, rank, fault in attempt.faults:
        if time >= start:
            began = fault_start(time, fault, start)
            accused = fault.suspect_rank if rank is None else rank
            watchdog = fault.ran_for is not None or fault.kind in WATCHDOGS
            own = began is not None
            found.append(Sign(done if began is None else began, own, time, accused, watchdog))
    for time, rank, exit_ in attempt.exits:
        if time >= start and is_breakage(exit_):
            found.append(Sign(done, False, time, rank))
    return found


def without_consequences(signs: Sequence[Sign]) -> list[Sign]:
    """Leave out observations without a time of their own that follow one that has it."""
    return [
        sign
        for sign in signs
        if sign.own
        or not any(other.own and other.began <= sign.seen for other in signs if other is not sign)
    ]


def fault_start(time: int, fault: Fault, last: int) -> int | None:
    """Return when a fault struck by its own account, never before the last completed step."""
    if fault.ran_for is not None:
        return max(time - fault.ran_for, last)
    if fault.kind in OWN_TIME:
        return time
    if fault.timeout is not None and fault.kind in WATCHDOGS:
        return max(time - fault.timeout, last)
    return None


def fired(time: int, fault: Fault) -> int:
    """Return when a watchdog fired that recorded its fault at `time`, which may be later, in ns."""
    if fault.ran_for is None or fault.timeout is None:
        return time
    return time - max(fault.ran_for - fault.timeout, 0)


def by_others(exit_: RankExited | AttemptEnded) -> bool:
    """Whether somebody else ended the rank."""
    return isinstance(exit_, RankExited) and exit_.by in OTHERS


def is_breakage(exit_: RankExited | AttemptEnded) -> bool:
    """Whether a rank's exit is a fault of its own, not part of a teardown."""
    died = exit_.signal is not None or exit_.exit_code not in (None, 0)
    return died and not by_others(exit_)
