"""The health of a node before a run against after it: what a run left other than it found it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from headway.events import GpuSample, Health
from headway.ledger.intake import Stamped

BEFORE = 3_600 * 10**9
"""How old, in ns, a sample may be that tells of the time before a run."""
AFTER = 600 * 10**9
"""How long after a run, in ns, what is seen still tells of its end."""
_VOLATILE = ("device", "temperature", "power", "memory_used", "utilization")
"""Fields of a sample that change with the load and not with health."""
_STATE = tuple(one.name for one in fields(GpuSample) if one.name not in _VOLATILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What was known of one check, or of one field of a GPU's sample, before and after a run."""

    what: str
    device: str | None
    before: Any
    after: Any


def changes(
    checks: Iterable[Stamped], samples: Iterable[Stamped], start: int, end: int
) -> Sequence[Change]:
    """Return what differs between the newest state before `start` and that at `end`, in ns.

    What was not seen on one of the two sides is left out, but for a check that failed after it.
    """
    found = []
    told = _newest(_checks(checks), start, end)
    for check, (before, after) in sorted(told.items()):
        fails = before is None and after == "unhealthy"
        if fails or (None not in (before, after) and before != after):
            found.append(Change(what=check, device=None, before=before, after=after))
    sampled = _newest(_samples(samples), start, end)
    for device, (first, last) in sorted(sampled.items()):
        for name in _STATE:
            known = getattr(first, name, None), getattr(last, name, None)
            if None not in known and known[0] != known[1]:
                change = Change(what=name, device=device, before=known[0], after=known[1])
                found.append(change)
    return found


def _checks(events: Iterable[Stamped]) -> Iterable[tuple[int, str, Any]]:
    for fact in events:
        record = fact.envelope.event
        if isinstance(record, Health):
            yield fact.time, record.check, record.state


def _samples(events: Iterable[Stamped]) -> Iterable[tuple[int, str, Any]]:
    for fact in events:
        record = fact.envelope.event
        if isinstance(record, GpuSample):
            yield fact.time, record.device, record


def _newest(
    said: Iterable[tuple[int, str, Any]], start: int, end: int
) -> Mapping[str, tuple[Any, Any]]:
    """Return by name what was last said by the start, and after it by a little after the end."""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for time, name, value in sorted(said, key=lambda one: one[:2]):
        if time <= start:
            before[name] = value
        elif time <= end + AFTER:
            after[name] = value
    return {name: (before.get(name), after.get(name)) for name in {**before, **after}}
