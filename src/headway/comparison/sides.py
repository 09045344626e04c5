"""One side of a comparison: stretches of one or many runs, summed up."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from headway.comparison.parts import Met, Part, R, Stretch, length, part_of, steps_of, summed
from headway.ledger import Range
from headway.ledger.ledger import by_category
from headway.ledger.pieces import Span

_BLOCKS = 20


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


def side_of(
    stretches: Iterable[Stretch[R]],
    excluded: Sequence[Span] = (),
    told: Callable[[Stretch[R], Sequence[Span]], Part] | None = None,
) -> Side:
    """Sum stretches up, without the excluded parts; those must be sorted and disjoint.

    `told` returns what a stretch adds, for whoever knows that already.
    """
    known = [one for one in stretches if one.start <= one.end]
    parts = [(told or part_of)(one, excluded) for one in known]
    wall, gpu = summed(part.wall for part in parts), summed(part.gpu for part in parts)
    labels: dict[str, set[str]] = {}
    spans: dict[str, list[Span]] = {}
    for part in parts:
        spans.setdefault(part.run, []).extend(part.spans)
        for name, value in part.labels.items():
            labels.setdefault(name, set()).add(str(value))
    return Side(
        runs=tuple(spans),
        names=tuple(dict.fromkeys(part.run_name for part in parts)),
        spans=spans,
        left_out=sum(part.left_out for part in parts),
        is_live=any(part.is_live for part in parts),
        dropped=sum({part.run: part.dropped for part in parts}.values()),
        labels={name: frozenset(values) for name, values in labels.items()},
        world=frozenset(part.world for part in parts if part.world),
        wall=wall,
        gpu=gpu,
        training=_united(part.ratio(part.wall, "training") for part in parts),
        infrastructure=_united(part.ratio(part.wall, "infrastructure") for part in parts),
        gpu_training=_united(part.ratio(part.gpu, "training") for part in parts),
        gpu_infrastructure=_united(part.ratio(part.gpu, "infrastructure") for part in parts),
        steps=sum(part.steps for part in parts),
        blocks=_blocks(known, parts),
        attempts=sum(part.attempts for part in parts),
        failed_starts=sum(part.failed_starts for part in parts),
        incidents=[met for part in parts for met in part.incidents],
        saves=[blocked for part in parts for blocked in part.saves],
    )


def _blocks(stretches: Sequence[Stretch[R]], parts: Sequence[Part]) -> list[tuple[int, int]]:
    """Return productive time and lasting steps of about equal parts of all time.

    None of runs of several names: of different models no step is like another.
    """
    if len({part.run_name for part in parts}) > 1:
        return []
    whole = sum(length(part.spans) for part in parts)
    found = []
    for stretch, part in zip(stretches, parts, strict=True):
        if len(part.spans) == 1 and _pieces(part.spans[0], whole) == 1:
            found.append((part.wall["productive"], part.steps))
            continue
        ledger = stretch.of.ledger
        for start, end in part.spans:
            pieces = _pieces(Span(start, end), whole)
            edges = [start + (end - start) * place // pieces for place in range(pieces + 1)]
            for begin, until in pairwise(edges):
                time = by_category(ledger.amounts(begin, until))["productive"]
                found.append((time, steps_of(ledger, Span(begin, until))))
    return [(time, steps) for time, steps in found if steps > 0]


def _pieces(span: Span, whole: int) -> int:
    """Return into how many blocks a part of all time is cut."""
    return max(round((span.end - span.start) * _BLOCKS / whole), 1)


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
