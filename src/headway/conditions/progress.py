"""Conditions of a run that does not move, or moves at the pace of one slow rank."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from headway.conditions.gauge import DAY, HOUR, Condition
from headway.incidents import severe_faults
from headway.ledger import Ledger
from headway.ledger.attempts import Attempt, RankLog
from headway.ledger.timeouts import longest_phases

_FACTOR = 5
"""Silence beyond this many of its slow steps is a hang."""
_LEAST_SILENCE = 900 * 10**9
"""Silence below this is none: PyTorch's own watchdog has ten minutes to end it, as by default."""
_WATCHDOGS = (
    "process_group",
    "in_process.soft_timeout",
    "in_process.hard_timeout",
    "launcher.heartbeat_timeout",
)
"""Configured timeouts that end a hang."""
_BEYOND = 1.5
"""Times of the shortest timeout after which whatever watches has failed."""
_FIRST_TIME = 1_800 * 10**9
"""Time in ns that a phase may take which the run never ended before: compiling, a first load."""
_RECOVERING = ("restart", "down")
_JUST_NOW = 10**9


def conditions(ledger: Ledger, report: Mapping[str, Any]) -> Iterator[Condition]:
    """Yield how long nothing was completed, and who holds the others up."""
    yield "headway_progress_silence_ratio", (), _silence(ledger)
    nearest: dict[tuple[str, str], float] = {}
    for one in longest_phases(ledger, since=ledger.closed_at - DAY):
        if one.ratio is not None and one.timeout is not None:
            nearest[one.phase, one.timeout] = one.ratio
    for labels, ratio in nearest.items():
        yield "headway_phase_timeout_ratio", labels, ratio
    excess = [one["excess_ns"] / one["usual_ns"] for one in report["stragglers"] if one["usual_ns"]]
    yield "headway_straggler_excess_ratio", (), max(excess, default=0.0)
    yield "headway_live_dropped_events", (), report["dropped_events"]
    since, used = ledger.closed_at - HOUR, _nodes(ledger)
    for node, times in severe_faults(ledger).items():
        lately = sum(time > since for time in times)
        yield "headway_live_gpu_faults", (node,), lately if used is None or node in used else 0


def _nodes(ledger: Ledger) -> set[str] | None:
    """Return the nodes of the attempt that is alive; None until all of its ranks told theirs."""
    number = len(ledger.book.attempts) - 1
    if number < 0 or not ledger.is_alive(number):
        return None
    attempt = ledger.book.attempts[number]
    found = {log.node for log in attempt.ranks.values() if log.node is not None}
    whole = attempt.world_size is not None and len(attempt.ranks) >= attempt.world_size
    return found if whole and all(log.node for log in attempt.ranks.values()) else None


def _silence(ledger: Ledger) -> float:
    now = ledger.closed_at
    newest = Counter(ledger.amounts(now - _JUST_NOW, now))
    if any(newest[key] for key in newest if key[0] in _RECOVERING):
        return 0.0
    alive = [one for number, one in enumerate(ledger.book.attempts) if ledger.is_alive(number)]
    if not alive:
        return 0.0
    limit = max(
        _LEAST_SILENCE,
        _FACTOR * _slow_step(ledger),
        _open_phase(ledger, alive[-1]),
        _watchdog(ledger),
    )
    return (now - last_completion(alive[-1])) / limit


def last_completion(attempt: Attempt) -> int:
    """Return when a rank of an attempt last completed a step or a phase, or began; UTC ns."""
    times = [attempt.begin]
    for log in attempt.ranks.values():
        times += [int(rows.end[-1]) for rows in log.rows[-2:] if len(rows.end)]
        times += [phase.end for phase in log.phases if phase.end is not None]
        times += [] if log.started is None else [log.started]
    return max(times)


def _open_phase(ledger: Ledger, attempt: Attempt) -> int:
    """Return how long the phases that are open may take, in ns; 0 without any but steps.

    Twice the longest of that name in the run; one that never ended before has half an hour.
    """
    names = {name for log in attempt.ranks.values() for name in _open_names(log)}
    if not names:
        return 0
    known: dict[str, int] = {}
    for one in ledger.book.attempts:
        for name in names & one.longest.keys():
            known[name] = max(known.get(name, 0), one.longest[name].duration)
    return max(2 * known[name] if name in known else _FIRST_TIME for name in names)


def _open_names(log: RankLog) -> Iterator[str]:
    """Yield the phases of a rank that nothing closed since, be it a step."""
    stepped = max((int(rows.end[-1]) for rows in log.rows[-2:] if len(rows.end)), default=0)
    for phase in log.phases:
        if phase.end is None and phase.name != "step" and phase.start >= stepped:
            yield phase.name


def _watchdog(ledger: Ledger) -> float:
    """Return the time in ns after which the run's own watchdog should have ended a hang.

    A person is not kept waiting for one that is set to hours: what may take that long is a phase.
    """
    configured = ledger.book.configured
    timeouts = {} if configured is None else configured.timeouts or {}
    known = [timeouts[name] for name in _WATCHDOGS if name in timeouts]
    limits = [float(limit) for limit in known if isinstance(limit, int | float) and limit > 0]
    return min(_BEYOND * min(limits, default=0.0), float(HOUR))


def _slow_step(ledger: Ledger) -> float:
    """Return the 99th percentile of the newest attempt's steps in ns; 0 without any."""
    for account in reversed(ledger.book.accounts):
        if account.steps is not None:
            return float(np.percentile(account.steps.end - account.steps.start, 99))
    return 0.0
