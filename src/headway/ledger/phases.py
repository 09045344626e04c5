"""The phases of one rank: what closes those left open, and which loads were in vain."""

from collections.abc import Sequence

import numpy as np

from headway.ledger.attempts import Attempt, Phase, RankLog
from headway.ledger.steps import Times

LOAD_FAILED = "load_failed"
"""Name of a load after which nothing was trained from what it read."""


def named(phase: Phase, ends: Times, failures: Sequence[int]) -> Phase:
    """Return a phase, a load that was in vain under the name that says so (rule 17).

    A load was in vain if one failed after its begin and before the next step was done, or if no
    step was done after it.
    """
    if phase.name != "checkpoint_load" or phase.end is None:
        return phase
    following = int(np.searchsorted(ends, phase.start, side="right"))
    until = int(ends[following]) if following < len(ends) else None
    vain = any(phase.start < time and (until is None or time <= until) for time in failures)
    if vain or (len(ends) and int(ends[-1]) < phase.end):
        return Phase(phase.start, phase.end, LOAD_FAILED)
    return phase


def failed_loads(attempt: Attempt) -> list[int]:
    """Return when loads of an attempt failed."""
    times = list(attempt.load_failures)
    times += [
        phase.end
        for log in attempt.ranks.values()
        for phase in log.phases
        if phase.name == "checkpoint_load" and phase.failed and phase.end is not None
    ]
    return sorted(times)


def closed_phases(log: RankLog, start: Times, end: Times) -> list[Phase]:
    """Close phases that a completed step closes (rule 14) and add unrecorded saves (rule 18).

    A phase that an exception ended counts as closed once its rank went on.
    """
    last = int(end[-1]) if len(end) else 0
    signs = [phase.end for phase in log.phases if phase.is_closed and phase.end is not None]
    last = max([last, *signs])
    phases = []
    for phase in log.phases:
        if phase.end is None:
            after = int(np.searchsorted(end, phase.start, side="right"))
            if after < len(end):
                closed = int(start[after]) if start[after] > phase.start else int(end[after])
                phase = Phase(phase.start, closed, phase.name)
        elif not phase.is_closed and phase.name != "step" and last > phase.end:
            phase = Phase(phase.start, phase.end, phase.name)
        phases.append(phase)
    recorded = [p for p in phases if p.name == "checkpoint_save"]
    for begin, finish in log.saves:
        if not any(p.start < finish and (p.end is None or p.end > begin) for p in recorded):
            phases.append(Phase(begin, finish, "checkpoint_save"))
    return phases


def phases_without_steps(attempt: Attempt) -> dict[int, list[Phase]]:
    """Return the phases of each rank of an attempt that completed no step."""
    none = np.empty(0, dtype=np.int64)
    failures = failed_loads(attempt)
    return {
        rank: [named(phase, none, failures) for phase in closed_phases(log, none, none)]
        for rank, log in attempt.ranks.items()
    }
