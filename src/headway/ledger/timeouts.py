"""Which configured timeout guards which phase, and how near the longest of each came to it.

Where the ratio nears 1, a rank is about to be killed while nothing is wrong with it. Some timeouts
watch only a part of a phase, such as one collective or one blocking call: for these the ratio is
an upper bound. A phase without a section of its own is only a part of the time out of sections.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from headway.ledger.ledger import Ledger
from headway.ledger.longest import FIRST_HEARTBEAT, HEARTBEAT, REGROUPING, Longest

SECTION = "launcher.section_timeout."
_SPECIAL = {
    HEARTBEAT: "launcher.heartbeat_timeout",
    FIRST_HEARTBEAT: "launcher.initial_heartbeat_timeout",
    REGROUPING: "in_process.barrier_timeout",
}
_BEFORE = ("startup", "import")
"""Phases before any monitor, wrapper or process group watches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A phase's longest interval in ns beside one timeout that guards it; none: all `None`."""

    phase: str
    longest: int
    rank: int
    attempt: str
    timeout: str | None
    limit: int | None
    ratio: float | None


def longest_phases(ledger: Ledger, since: int = 0) -> list[Guarded]:
    """Return every phase of a run with each configured timeout that guards it, by name.

    Of each attempt only the longest interval is known; it counts if it began since a time in
    UTC ns.
    """
    configured = ledger.book.configured
    limits = _limits({} if configured is None else configured.timeouts or {})
    found: dict[str, tuple[Longest, str]] = {}
    for attempt in ledger.book.attempts:
        for phase, longest in attempt.longest.items():
            if longest.start < since:
                continue
            if phase not in found or longest.duration > found[phase][0].duration:
                found[phase] = longest, attempt.identity
    return [
        Guarded(
            phase=phase,
            longest=longest.duration,
            rank=longest.rank,
            attempt=attempt_id,
            timeout=timeout,
            limit=None if timeout is None else limits[timeout],
            ratio=None if timeout is None else longest.duration / limits[timeout],
        )
        for phase, (longest, attempt_id) in sorted(found.items())
        for timeout in (*_guards(phase, limits),) or (None,)
    ]


def _limits(timeouts: Mapping[str, object]) -> dict[str, int]:
    return {
        name: int(limit)
        for name, limit in timeouts.items()
        if isinstance(limit, int | float) and limit > 0
    }


def _guards(phase: str, limits: Collection[str]) -> list[str]:
    """Return the configured timeouts that a phase must keep to."""
    section = SECTION + phase
    names = [_SPECIAL.get(phase, section)]
    if phase not in (*_SPECIAL, *_BEFORE):
        if section not in limits:
            names.append("launcher.out_of_section_timeout")
        names += ["in_process.soft_timeout", "in_process.hard_timeout"]
        if phase != "data_wait":  # no collective waits for a batch
            names.append("process_group")
    return [name for name in names if name in limits]
