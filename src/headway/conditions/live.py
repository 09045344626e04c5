"""Every condition of one live run."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from headway.conditions import goodput, progress, restarts, saves
from headway.conditions.gauge import Condition
from headway.ledger import Ledger


def conditions(ledger: Ledger, report: Mapping[str, Any], target: float) -> Iterator[Condition]:
    """Yield the conditions of a run; `target` is the training goodput that it is to reach, 0 to 1.

    `report` is the report of the same ledger. A run that has ended yields nothing.
    """
    if report["end"] is not None:
        return
    yield from chain(
        restarts.conditions(ledger, report),
        progress.conditions(ledger, report),
        saves.conditions(ledger, report),
        goodput.conditions(ledger, report, target),
    )
