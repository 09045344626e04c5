"""One side of a comparison: stretches of one or many runs, summed up.

A stretch may be a whole run, a window of it, or the time for which a configuration held. What is
left out of it (planned maintenance) is cut out of everything.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from headway.fleet.sides import is_failure
from headway.ledger import Ledger, Range
from headway.ledger.ledger import by_category
from headway.ledger.pieces import Span, without
from headway.ledger.ratios import goodput

STRUCK = ("stalled", "restart", "down", "checkpoint_load")
"""Categories that incidents cause; `rolled_back` is what they undo."""
_BLOCKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of one run, from `start` to `end` in UTC ns; `report` is that of the whole run."""

    ledger: Ledger
    report: Mapping[str, Any]
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
class Side:
    """What is known of one side; times in ns, GPU time in GPU-ns.

    `blocks` are equal parts of its time, each with productive time and lasting steps; `spans` are
    what counts of each run. `world` are the GPUs held at the starts of its stretches.
    """

    runs: tuple[str, ...]
    names: tuple[str, ...]
    spans: Mapping[str, Sequence[Span]]
    left_out: int
    is_live: bool
    dropped: int
    labels: Mapping[str, frozenset[str]]
    world: frozenset[int]
    wall: Mapping[str, int]
    gpu: Mapping[str, int]
    training: Range
    infrastructure: Range
    gpu_training: Range
    gpu_infrastructure: Range
    steps: int
    blocks: Sequence[tuple[int, int]]
    attempts: int
    failed_starts: int
    incidents: Sequence[Met]
    saves: Sequence[int]

    @property
    def elapsed(self) -> int:
        """Time of all stretches."""
        return sum(self.wall.values())

    @property
    def up(self) -> int:
        """Time in which training ran, unattributed time left aside."""
        return self.infrastructure.numerator[0]

    @property
    def gpu_elapsed(self) -> int:
        """GPU time held."""
        return sum(self.gpu.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What one stretch adds; `world` are the GPUs held at its start."""

    stretch: Stretch
    spans: Sequence[Span]
    left_out: int
    is_live: bool
    world: int
    wall: Mapping[str, int]
    gpu: Mapping[str, int]
    steps: int
    attempts: Sequence[Mapping[str, Any]]
    incidents: Sequence[Met]
    saves: Sequence[int]

    @property
    def report(self) -> Mapping[str, Any]:
        return self.stretch.report

    def ratio(self, time: Mapping[str, int], kind: Literal["training", "infrastructure"]) -> Range:
        """Return a goodput of time; what a custom category counts as, each run says itself."""
        return goodput(time, sum(time.values()), kind, self.stretch.ledger.training_good)


def side_of(stretches: Iterable[Stretch], excluded: Sequence[Span] = ()) -> Side:
    """Sum stretches up, without the excluded parts; those must be sorted and disjoint."""
    parts = [_part(one, excluded) for one in stretches if one.start <= one.end]
    wall, gpu = _summed(part.wall for part in parts), _summed(part.gpu for part in parts)
    labels: dict[str, set[str]] = {}
    spans: dict[str, list[Span]] = {}
    for part in parts:
        spans.setdefault(part.report["run"], []).extend(part.spans)
        for name, value in part.report["labels"].items():
            labels.setdefault(name, set()).add(str(value))
    dropped = {part.report["run"]: part.report["dropped_events"] for part in parts}
    return Side(
        runs=tuple(spans),
        names=tuple(dict.fromkeys(part.report["run_name"] for part in parts)),
        spans=spans,
        left_out=sum(part.left_out for part in parts),
        is_live=any(part.is_live for part in parts),
        dropped=sum(dropped.values()),
        labels={name: frozenset(values) for name, values in labels.items()},
        world=frozenset(part.world for part in parts if part.world),
        wall=wall,
        gpu=gpu,
        training=_united(part.ratio(part.wall, "training") for part in parts),
        infrastructure=_united(part.ratio(part.wall, "infrastructure") for part in parts),
        gpu_training=_united(part.ratio(part.gpu, "training") for part in parts),
        gpu_infrastructure=_united(part.ratio(part.gpu, "infrastructure") for part in parts),
        steps=sum(part.steps for part in parts),
        blocks=_blocks(parts),
        attempts=sum(len(part.attempts) for part in parts),
        failed_starts=sum(
            one["outcome"] != "progressed" and one["end"] is not None
            for part in parts
            for one in part.attempts
        ),
        incidents=[met for part in parts for met in part.incidents],
        saves=[blocked for part in parts for blocked in part.saves],
    )


def _part(one: Stretch, excluded: Sequence[Span]) -> _Part:
    ledger, report = one.ledger, one.report
    start, end = max(one.start, ledger.start), min(one.end, ledger.closed_at)
    whole = [Span(start, end)] if start < end else []
    spans = without(whole, excluded)
    is_end = bool(spans) and spans[-1].end == ledger.closed_at
    inside = _Inside(spans, last=ledger.closed_at if is_end else None)
    return _Part(
        stretch=one,
        spans=spans,
        left_out=_length(whole) - _length(spans),
        is_live=ledger.provisional and is_end,
        world=ledger.gpus_at(start),
        wall=_summed(by_category(ledger.amounts(*span)) for span in spans),
        gpu=_summed(ledger.gpu_time(start=span.start, end=span.end) for span in spans),
        steps=sum(_steps(ledger, span) for span in spans),
        attempts=[each for each in report["attempt_list"] if inside.holds(each["start"])],
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


def _met(one: Stretch, spans: Sequence[Span], inside: _Inside) -> Iterable[Met]:
    """Yield the incidents of a stretch; each cost what was lost until the next one opened."""
    known = sorted(
        (each for each in one.report["incidents"] if inside.holds(each["opened"])),
        key=lambda each: each["opened"],
    )
    opened = [each["opened"] for each in known]
    last = spans[-1].end if spans else one.end
    for each, (begin, until) in zip(known, pairwise([*opened, last]), strict=True):
        undone, ledger = each["rollback_ns"] or 0, one.ledger
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
    lost = _summed(amounts)
    return {**{name: lost.get(name, 0) for name in STRUCK}, "rolled_back": undone}


def _blocks(parts: Sequence[_Part]) -> list[tuple[int, int]]:
    """Return productive time and lasting steps of about equal parts of all time.

    None of runs of several names: of different models no step is like another.
    """
    if len({part.report["run_name"] for part in parts}) > 1:
        return []
    whole = sum(_length(part.spans) for part in parts)
    found = []
    for part in parts:
        ledger = part.stretch.ledger
        for start, end in part.spans:
            pieces = max(round((end - start) * _BLOCKS / whole), 1)
            edges = [start + (end - start) * place // pieces for place in range(pieces + 1)]
            for begin, until in pairwise(edges):
                steps = _steps(ledger, Span(begin, until))
                if steps > 0:
                    found.append((by_category(ledger.amounts(begin, until))["productive"], steps))
    return found


def _steps(ledger: Ledger, span: Span) -> int:
    return ledger.surviving_step_at(span.end) - ledger.surviving_step_at(span.start)


def _united(ratios: Iterable[Range]) -> Range:
    """Return the ratio of all time from those of its parts."""
    known = list(ratios)
    low, high = (sum(one.numerator[end] for one in known) for end in (0, 1))
    whole = sum(one.denominator for one in known)
    return Range(
        low=low / whole if whole else None,
        high=high / whole if whole else None,
        numerator=(low, high),
        denominator=whole,
    )


def _length(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)


def _summed(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part)
    return dict(found)
