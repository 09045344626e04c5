"""Who recorded the events of an imported log, so that nothing counts twice.

An attempt is known by its first line that has a stamp or tells of a step, wherever that stands and
whatever the file is called: a log that has grown, its parts together or its packed twin tell of
the same attempts. The steps of a rank in an attempt keep their own numbers, which are known by the
first line that tells of a step; its other events are numbered in order. What only the end of a log
tells, such as that it is complete, is known by what it says.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headway.events import AttemptEnded, Envelope, RunConfigured, StepsSummary

_PRODUCER_DIGITS = 32
_ATTEMPT_DIGITS = 16
_STEPS, _EVENTS = "0", "1"
"""At one time the steps of a rank sort before its other events."""


@dataclass(slots=True)
class Marks:
    """The first line of an attempt that has a stamp or tells of a step, and the first step's."""

    line: str | None = None
    step: str | None = None


def digest(*parts: object, digits: int = _PRODUCER_DIGITS) -> str:
    """Return hexadecimal digits that stand for some values."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:digits]


def keys_of(lines: Sequence[str | None]) -> tuple[Sequence[str], int]:
    """Return what tells attempts apart by their lines, and how many of them are certain.

    An attempt without such a line is known by the next one that has it; the last ones, which have
    none that follows, may get a line when the log grows.
    """
    found: list[str] = []
    seen: Counter[str] = Counter()
    waiting = certain = 0
    for number, line in enumerate(lines):
        if line is None:
            waiting += 1
            continue
        key = json.dumps([line, seen[line]])
        seen[line] += 1
        found += [json.dumps([key, before]) for before in range(waiting, 0, -1)]
        found.append(key)
        waiting, certain = 0, number + 1
    found += [json.dumps([number]) for number in range(certain, len(lines))]
    return found, certain


def identified(
    run: str,
    envelopes: Sequence[Envelope],
    attempts: Mapping[str, int],
    marks: Sequence[Marks],
) -> tuple[list[Envelope], Sequence[str]]:
    """Return events with their producers, numbers and attempts, and which attempts are uncertain.

    `attempts` are the numbers of the attempts that the events name, `marks` tell them apart.
    """
    keys, certain = keys_of([one.line for one in marks])
    own = [digest(key, digits=_ATTEMPT_DIGITS) for key in keys]
    numbers: defaultdict[tuple[int, int | None], int] = defaultdict(int)
    producers: dict[tuple[int, int | None, str], str] = {}
    found = []
    for one in envelopes:
        event = one.event
        number = 0 if one.attempt is None else attempts[one.attempt]
        key = keys[number] if keys else run
        count = one.last_sequence - one.first_sequence + 1
        first = 0
        if one.attempt is None:
            when = None if isinstance(event, RunConfigured) else one.wall
            producer = _producer(_EVENTS, key, None, repr(event), when)
        elif isinstance(event, AttemptEnded):
            producer = _producer(_EVENTS, key, one.rank, repr(event))
        else:
            kind = _STEPS if isinstance(event, StepsSummary) else _EVENTS
            place = number, one.rank
            producer = producers.get((*place, kind), "")
            if not producer:
                step = marks[number].step if kind == _STEPS else None
                producer = producers[*place, kind] = _producer(kind, key, one.rank, step)
            if isinstance(event, StepsSummary):
                first = event.first_step
            else:
                first = numbers[place]
                numbers[place] += count
        found.append(
            replace(
                one,
                producer=producer,
                first_sequence=first,
                last_sequence=first + count - 1,
                attempt=None if one.attempt is None else own[number],
            )
        )
    return found, own[certain:]


def _producer(kind: str, *parts: object) -> str:
    return kind + digest("log", *parts, digits=_PRODUCER_DIGITS - 1)
