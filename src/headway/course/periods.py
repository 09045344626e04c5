"""For how long each configuration of a run held, from the attempt that brought it to the next one.

Where an attempt ran (nodes, scheduler job, devices) and who started it are no settings: a
restart on another node goes on with the same configuration.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headway.course.configuration import OWN, UNITS, Change, Value, configurations
from headway.ledger import Ledger, Range
from headway.ledger.ledger import by_category
from headway.ledger.ratios import goodput
from headway.wording import duration

Key = tuple[str, str | None]
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|min|m|h|d)")
_NS = {"ms": 10**6, "s": 10**9, "min": 60 * 10**9, "m": 60 * 10**9, "h": 3_600 * 10**9}
_NS["d"] = 24 * _NS["h"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A stretch of a run with one configuration, in UTC ns.

    `attempts` are the numbers of those in it; the first one, `attempt`, brought the `changes`.
    `training_goodput` is that of the period, over wall time.
    """

    attempt: str
    attempts: range
    start: int
    end: int
    settings: Mapping[Key, Value]
    changes: tuple[Change, ...]
    training_goodput: Range


def periods(ledger: Ledger) -> list[Period]:
    """Return the periods of a run in order; together they are its whole time."""
    known = configurations(ledger)
    begins = {attempt.identity: attempt.begin for attempt in ledger.book.attempts}
    changes = {
        one.attempt: tuple(change for change in one.changes if change.field not in OWN)
        for one in known
    }
    first = [one for place, one in enumerate(known) if place == 0 or changes[one.attempt]]
    starts = [ledger.start, *(begins[one.attempt] for one in first[1:])]
    ends = [*starts[1:], ledger.closed_at]
    numbers = [one.number for one in first] + [len(known) + 1]
    return [
        Period(
            attempt=one.attempt,
            attempts=range(numbers[place], numbers[place + 1]),
            start=start,
            end=max(end, start),
            settings={
                (each.field, each.name): each.value
                for each in one.settings
                if each.field not in OWN
            },
            changes=changes[one.attempt],
            training_goodput=_goodput(ledger, start, max(end, start)),
        )
        for place, (one, start, end) in enumerate(zip(first, starts, ends, strict=True))
    ]


def _goodput(ledger: Ledger, start: int, end: int) -> Range:
    amounts = by_category(ledger.amounts(start, end))
    return goodput(amounts, sum(amounts.values()), "training", ledger.training_good)


def setting_name(key: Key) -> str:
    """Return a setting's name as SQL tells it: `checkpoint_interval`, `timeouts.process_group`."""
    field, name = key
    return field if name is None else f"{field}.{name}"


def setting_words(key: Key, value: Value) -> str:
    """Return a setting in words: `timeouts.process_group 10 min 0 s`."""
    return f"{setting_name(key)} {_words(key, value)}"


def change_words(change: Change) -> str:
    """Return a change in words: `checkpoint_interval from 100 to 200`."""
    key = change.field, change.name
    before, after = (
        "nothing" if value is None else _words(key, value)
        for value in (change.before, change.after)
    )
    return f"{setting_name(key)} from {before} to {after}"


def values_of(period: Period, name: str) -> Iterator[tuple[Key, Value]]:
    """Yield the settings of a name; without its field, such as `lr` of `options.lr`, too."""
    for key, value in period.settings.items():
        if name in (setting_name(key), key[1]):
            yield key, value


def reads_as(key: Key, value: Value, text: str) -> bool:
    """Whether somebody who writes this text means the value; a time may have a unit: `30s`."""
    written = _DURATION.fullmatch(text)
    if UNITS.get(key[0]) == "ns" and written is not None:
        return value == round(float(written[1]) * _NS[written[2]])
    if isinstance(value, tuple):
        return ",".join(value) == text
    if isinstance(value, float | int) and not isinstance(value, bool):
        try:
            return float(text) == value
        except ValueError:
            return False
    return str(value).casefold() == text.casefold()


def _words(key: Key, value: Value) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "nothing"
    if UNITS.get(key[0]) == "ns" and isinstance(value, int):
        return duration(value)
    return str(value)
