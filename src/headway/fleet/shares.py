"""What one run adds to the figures of a fleet in a window: time, attempts and incidents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from headway.fleet.past import PastIncident
from headway.fleet.spans import Span
from headway.ledger import Ledger
from headway.ledger.ledger import by_category
from headway.metrics import CATEGORIES

Strip = Sequence[tuple[int, int, str]]
"""Stretches of one category each: start and end in UTC ns, and the category."""
_WORTH_SHOWING = 4
"""A loss is shown where it takes this part of a stretch, though more of it was productive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One run within a window; `wall` and `gpu` are its time by category, in ns and GPU-ns.

    `incidents` are those that opened in the window; whether one is open is said of now.
    """

    run: str
    state: str
    labels: Mapping[str, str]
    training_good: Sequence[str]
    wall: Mapping[str, int]
    gpu: Mapping[str, int]
    attempts: int
    failed_starts: int
    open_incidents: int
    incidents: Sequence[PastIncident]


def share_of(
    ledger: Ledger, report: Mapping[str, Any], past: Sequence[PastIncident], span: Span
) -> Share:
    """Return what a run adds in a window; a run that lies whole in it adds what its report says."""
    if span.start <= ledger.start and ledger.closed_at < span.end:
        wall, gpu = report["categories"], report["gpu_time"]["categories"]
    else:
        wall = by_category(ledger.amounts(span.start, span.end))
        gpu = ledger.gpu_time(start=span.start, end=span.end)
    begun = [one for one in report["attempt_list"] if span.holds(one["start"])]
    return Share(
        run=report["run"],
        state=report["state"],
        labels={name: str(value) for name, value in report["labels"].items()},
        training_good=ledger.training_good,
        wall=wall,
        gpu=gpu,
        attempts=len(begun),
        failed_starts=sum(
            one["outcome"] != "progressed" and one["end"] is not None for one in begun
        ),
        open_incidents=sum(one.is_open for one in past),
        incidents=[one for one in past if span.holds(one.opened)],
    )


def strip_of(ledger: Ledger, span: Span, slots: int) -> Strip:
    """Return the part of a run in a window as stretches of one category each, for one line.

    The part is cut into `slots` equal slots. A slot shows what took most of it; a loss is shown
    before productive time from a quarter of the slot on, so that a short outage stays visible.
    """
    start, end = max(ledger.start, span.start), min(ledger.closed_at, span.end)
    if end <= start:
        return []
    edges = [start + (end - start) * number // slots for number in range(slots + 1)]
    found: list[tuple[int, int, str]] = []
    for begin, until in pairwise(edges):
        if until <= begin:
            continue
        name = _shown(by_category(ledger.amounts(begin, until)), until - begin)
        if found and found[-1][2] == name:
            found[-1] = (found[-1][0], until, name)
        else:
            found.append((begin, until, name))
    return found


def _shown(amounts: Mapping[str, int], length: int) -> str:
    order = {name: place for place, name in enumerate(CATEGORIES)}
    losses = {name: amount for name, amount in amounts.items() if name != "productive"}
    worst = max(losses, key=lambda name: (losses[name], -order.get(name, len(order))))
    shown = losses[worst] * _WORTH_SHOWING >= length or losses[worst] > amounts["productive"]
    return worst if shown else "productive"
