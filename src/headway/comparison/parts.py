"""What one stretch of a run adds to its side of a comparison, summed up and without its ledger.

A stretch may be a whole run, a window of it, or the time for which a configuration held. What is
left out of it (planned maintenance) is cut out of everything.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, Literal, Protocol, TypeVar

from headway.fleet.sides import is_failure
from headway.ledger import Ledger, Range
from headway.ledger.ledger import by_category
from headway.ledger.pieces import Span, without
from headway.ledger.ratios import goodput

STRUCK = ("stalled", "restart", "down", "checkpoint_load")
"""Categories that incidents cause; `rolled_back` is what they undo."""


class Recorded(Protocol):
    """A run; where its ledger was let go, to ask for it takes as long as reading the run again."""

    @property
    def ledger(self) -> Ledger:
        """Its ledger."""

    @property
    def report(self) -> Mapping[str, Any]:
        """The report of that ledger."""


R = TypeVar("R", bound=Recorded)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch(Generic[R]):
    """A part of one run, from `start` to `end` in UTC ns."""

    of: R
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Met:
    """An incident that opened on one side, with what it cost by category, in ns and GPU-ns."""

    opened: int
    is_open: bool
    is_failure: bool
    recovery: int | None
    rollback_steps: int | None
    losses: Mapping[str, int]
    gpu_losses: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one stretch adds to its side; `world` are the GPUs held at its start.

    It holds no ledger, so that it can be kept for longer than there is room for one.
    """

    run: str
    run_name: str
    labels: Mapping[str, str]
    dropped: int
    training_good: Sequence[str]
    spans: Sequence[Span]
    left_out: int
    is_live: bool
    world: int
    wall: Mapping[str, int]
    gpu: Mapping[str, int]
    steps: int
    attempts: int
    failed_starts: int
    incidents: Sequence[Met]
    saves: Sequence[int]

    def ratio(self, time: Mapping[str, int], kind: Literal["training", "infrastructure"]) -> Range:
        """Return a goodput of time; what a custom category counts as, each run says itself."""
        return goodput(time, sum(time.values()), kind, self.training_good)


def part_of(one: Stretch[R], excluded: Sequence[Span] = ()) -> Part:
    """Return what a stretch adds to its side, without the excluded parts of it."""
    ledger, report = one.of.ledger, one.of.report
    start, end = max(one.start, ledger.start), min(one.end, ledger.closed_at)
    whole = [Span(start, end)] if start < end else []
    spans = without(whole, excluded)
    is_end = bool(spans) and spans[-1].end == ledger.closed_at
    inside = _Inside(spans, last=ledger.closed_at if is_end else None)
    attempts = [each for each in report["attempt_list"] if inside.holds(each["start"])]
    return Part(
        run=report["run"],
        run_name=report["run_name"],
        labels=report["labels"],
        dropped=report["dropped_events"],
        training_good=ledger.training_good,
        spans=spans,
        left_out=length(whole) - length(spans),
        is_live=ledger.provisional and is_end,
        world=ledger.gpus_at(start),
        wall=summed(by_category(ledger.amounts(*span)) for span in spans),
        gpu=summed(ledger.gpu_time(start=span.start, end=span.end) for span in spans),
        steps=sum(steps_of(ledger, span) for span in spans),
        attempts=len(attempts),
        failed_starts=sum(
            each["outcome"] != "progressed" and each["end"] is not None for each in attempts
        ),
        incidents=list(_met(one, spans, inside)),
        saves=[
            each["blocking"]
            for each in report["checkpoints"]
            if each["blocking"] is not None
            and each["scheduled"] is not None
            and inside.holds(each["scheduled"])
        ],
    )


@dataclass(frozen=True, slots=True)
class _Inside:
    """Whether a moment counts; `last` is the end of the run, which belongs to its last stretch."""

    spans: Sequence[Span]
    last: int | None

    def holds(self, time: int) -> bool:
        return time == self.last or any(start <= time < end for start, end in self.spans)


def _met(one: Stretch[R], spans: Sequence[Span], inside: _Inside) -> Iterable[Met]:
    """Yield the incidents of a stretch; each cost what was lost until the next one opened."""
    known = sorted(
        (each for each in one.of.report["incidents"] if inside.holds(each["opened"])),
        key=lambda each: each["opened"],
    )
    opened = [each["opened"] for each in known]
    last = spans[-1].end if spans else one.end
    for each, (begin, until) in zip(known, pairwise([*opened, last]), strict=True):
        undone, ledger = each["rollback_ns"] or 0, one.of.ledger
        after = [
            Span(max(begin, start), min(until, end))
            for start, end in spans
            if start < until and end > begin
        ]
        yield Met(
            opened=begin,
            is_open=each["outcome"] == "open",
            is_failure=is_failure(each["cause"]),
            recovery=None if each["recovered"] is None else each["recovered"] - begin,
            rollback_steps=each["rollback_steps"],
            losses=_struck((by_category(ledger.amounts(*span)) for span in after), undone),
            gpu_losses=_struck(
                (ledger.gpu_time(start=span.start, end=span.end) for span in after),
                undone * ledger.gpus_at(begin),
            ),
        )


def _struck(amounts: Iterable[Mapping[str, int]], undone: int) -> dict[str, int]:
    lost = summed(amounts)
    return {**{name: lost.get(name, 0) for name in STRUCK}, "rolled_back": undone}


def steps_of(ledger: Ledger, span: Span) -> int:
    """Return how many of the lasting steps lie in a span."""
    return ledger.surviving_step_at(span.end) - ledger.surviving_step_at(span.start)


def length(spans: Iterable[Span]) -> int:
    """Return the time of spans in ns."""
    return sum(end - start for start, end in spans)


def summed(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return amounts by name, added up."""
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part)
    return dict(found)
