"""The course of a fleet: what its GPU time went to in each cell, and what broke in it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headway.fleet.past import PastIncident
from headway.fleet.spans import Span
from headway.ledger import Ledger

Cells = Mapping[int, Mapping[str, int]]
"""GPU time by category for each cell, which is named by its begin in UTC ns."""


def cells_of(ledger: Ledger, span: Span, width: int) -> Cells:
    """Return a run's GPU time by category in the cells of a window that it meets."""
    start, end = max(ledger.start, span.start), min(ledger.closed_at, span.end)
    return {
        begin: {name: amount for name, amount in times.items() if amount}
        for begin in range(start // width * width, end, width)
        if (times := ledger.gpu_time(start=max(begin, start), end=min(begin + width, end)))
    }


def course(
    begins: Sequence[int], width: int, runs: Iterable[Cells], known: Iterable[PastIncident]
) -> list[dict[str, Any]]:
    """Return every cell with its GPU time by category and the incidents that opened in it.

    Of its incidents each cell names how many there were of each cause, and the costliest one.
    """
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    for cells in runs:
        for begin, times in cells.items():
            sums[begin].update(times)
    broken: dict[int, list[PastIncident]] = defaultdict(list)
    for one in known:
        broken[one.opened // width * width].append(one)
    return [
        {
            "start": begin,
            "end": begin + width,
            "categories": dict(sums[begin]),
            "incidents": len(broken[begin]),
            "causes": dict(sorted(Counter(one.cause for one in broken[begin]).items())),
            "costliest": _costliest(broken[begin]),
        }
        for begin in begins
    ]


def _costliest(known: Sequence[PastIncident]) -> dict[str, Any] | None:
    if not known:
        return None
    one = max(known, key=lambda incident: (incident.lost_gpu, incident.incident))
    return brief(one)


def brief(one: PastIncident) -> dict[str, Any]:
    """Return what a line or a marker says of an incident."""
    return {
        "incident": one.incident,
        "run": one.run,
        "run_name": one.run_name,
        "number": one.number,
        "opened": one.opened,
        "cause": one.cause,
        "node": one.node,
        "headline": one.headline,
        "recovered_ns": one.recovery,
        "lost_gpu_ns": one.lost_gpu,
    }
