"""What each attempt of a run was configured with, and what changed from one to the next.

What one attempt does not say it took over from the one before: a process that restarts inside
itself says nothing again. Nodes and ranks are those that were seen.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, fields

from headway.events import AttemptStarted, RunConfigured, Scalar
from headway.ledger import Ledger
from headway.ledger.attempts import Attempt

Value = Scalar | tuple[str, ...]
UNITS: Mapping[str, str] = {
    "target_step": "steps",
    "checkpoint_interval": "steps",
    "world_size": "ranks",
    "min_world_size": "ranks",
    "timeouts": "ns",
    "tokens_per_step": "tokens",
    "flops_per_step": "flop",
}
"""Unit of each setting that has one, by the name of its field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: the `field` it stands in, its `name` where that holds several, its value."""

    field: str
    name: str | None
    value: Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A setting that differs between two attempts; None where one of them has none.

    Of nodes `before` has those that were left and `after` those that were taken.
    """

    field: str
    name: str | None
    before: Value | None
    after: Value | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One attempt's settings, `told` by itself or taken over, and what changed."""

    attempt: str
    number: int
    told: bool
    settings: tuple[Setting, ...]
    changes: tuple[Change, ...]


def configurations(ledger: Ledger) -> list[Configuration]:
    """Return the settings of every attempt of a run, in order."""
    told = _told(ledger)
    found: list[Configuration] = []
    before: dict[tuple[str, str | None], Value] = {}
    for attempt in ledger.book.attempts:
        own = told.get(attempt.identity, [])
        known = {key: value for key, value in before.items() if key[0] not in OWN}
        known |= _of(attempt)
        for record in own:
            known |= _flat(record)
        changes = changed(before, known) if found else []
        found.append(
            Configuration(
                attempt=attempt.identity,
                number=attempt.number,
                told=any(isinstance(record, RunConfigured) for record in own),
                settings=tuple(
                    Setting(field=field, name=name, value=value)
                    for (field, name), value in sorted(known.items(), key=_order)
                ),
                changes=tuple(changes),
            )
        )
        before = known
    return found


def changed(
    before: Mapping[tuple[str, str | None], Value], after: Mapping[tuple[str, str | None], Value]
) -> list[Change]:
    """Return what differs between two sets of settings, by field and name."""
    found = []
    for field, name in sorted({*before, *after}, key=lambda key: (key[0], key[1] or "")):
        was, now = before.get((field, name)), after.get((field, name))
        if was == now:
            continue
        if isinstance(was, tuple) and isinstance(now, tuple):
            was, now = (
                tuple(one for one in was if one not in now),
                tuple(one for one in now if one not in was),
            )
        found.append(Change(field=field, name=name, before=was, after=now))
    return found


OWN = ("layer", "nodes", "ranks", "scheduler_job", "visible_devices")
"""What an attempt never takes over from the one before."""


def _of(attempt: Attempt) -> dict[tuple[str, str | None], Value]:
    """Return what is known of an attempt without being told as a setting."""
    nodes = {log.node for log in attempt.ranks.values() if log.node is not None}
    found: dict[tuple[str, str | None], Value] = {
        ("layer", None): attempt.layer,
        ("ranks", None): attempt.world_size or len(attempt.ranks),
    }
    if nodes:
        found["nodes", None] = tuple(sorted(nodes))
    return found


def _told(ledger: Ledger) -> dict[str, list[RunConfigured | AttemptStarted]]:
    """Return what was told of each attempt, in order; what names none is of the newest begun."""
    attempts = ledger.book.attempts
    begins = [attempt.begin for attempt in attempts]
    known = {attempt.identity: min(attempt.ranks, default=None) for attempt in attempts}
    found: dict[str, list[RunConfigured | AttemptStarted]] = {}
    for fact in ledger.book.facts:
        record = fact.envelope.event
        if fact.time > ledger.as_of or not isinstance(record, RunConfigured | AttemptStarted):
            continue
        identity = fact.attempt
        if identity not in known and attempts:
            identity = attempts[max(bisect_right(begins, fact.time) - 1, 0)].identity
        # every rank tells its start, of which one is enough
        told = isinstance(record, RunConfigured) or fact.envelope.rank == known.get(identity or "")
        if identity is not None and told:
            found.setdefault(identity, []).append(record)
    return found


def _flat(record: RunConfigured | AttemptStarted) -> dict[tuple[str, str | None], Value]:
    if isinstance(record, AttemptStarted):
        own = {"scheduler_job": record.scheduler_job, "visible_devices": record.visible_devices}
        return {(name, None): value for name, value in own.items() if value is not None}
    found: dict[tuple[str, str | None], Value] = {}
    for item in fields(record):
        value = getattr(record, item.name)
        if isinstance(value, Mapping):
            found |= {(item.name, name): one for name, one in value.items()}
        elif value is not None and value != ():
            found[item.name, None] = value
    return found


def _order(item: tuple[tuple[str, str | None], Value]) -> tuple[str, str]:
    return item[0][0], item[0][1] or ""
