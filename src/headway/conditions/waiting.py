"""When a run that was told to stop waits for machines: no fault, and nobody's to mend."""

from collections.abc import Mapping
from typing import Any

from headway.ledger import Ledger

_PLANNED = ("preemption", "time_limit", "operator")
"""Causes of incidents that are no faults: the run was told to stop."""


def waited(ledger: Ledger, incident: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return from when until when a run waited, in UTC ns; None after a fault.

    `incident` is one of the run's report. While no attempt has begun, it waits until now.
    """
    if incident["cause"] not in _PLANNED:
        return None
    opened: int = incident["opened"]
    begins = (attempt.begin for attempt in ledger.book.attempts if attempt.begin > opened)
    return opened, min(begins, default=ledger.closed_at)
