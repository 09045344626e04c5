"""When a run that was told to stop waits for machines: no fault, and nobody's to mend."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from headway.incidents.model import PLANNED
from headway.ledger import Ledger


def is_planned(incident: Mapping[str, Any]) -> bool:
    """Whether an incident of the run's report is a stop that was announced."""
    return incident["cause"] in PLANNED


def waits(ledger: Ledger, incident: Mapping[str, Any]) -> Iterator[tuple[int, int]]:
    """Yield from when until when a run waited after an announced stop, in UTC ns.

    Until its next attempt, and again while it holds no GPU before it has recovered.
    """
    if not is_planned(incident):
        return
    opened, now, held = incident["opened"], ledger.closed_at, ledger.book.held
    until = max(opened, incident["recovered"] or now)
    begins = (attempt.begin for attempt in ledger.book.attempts if attempt.begin > opened)
    # by clocks that differ, what brought it back may have begun before the stop
    first = min([until, *begins])
    yield opened, first
    for begin, end in pairwise([*held.times, now]):
        if held.at(begin) == 0 and first < end and begin < until:
            yield max(first, begin), min(end, until)


def is_waiting(ledger: Ledger, listed: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a run waits for machines after an announced stop: nobody there can be heard."""
    newest = next((one for one in reversed(listed) if one["state"] == "open"), None)
    return newest is not None and any(end == ledger.closed_at for _, end in waits(ledger, newest))
