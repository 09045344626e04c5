"""Why two sides may not be comparable: what differs between them beside what is asked about."""

from collections.abc import Iterator

from headway.comparison.sides import Side
from headway.wording import count, counted, duration, plain

_TELLING = ("gpu_type", "cluster")
"""Labels of runs that say on what they ran."""
_MUCH = 3.0
"""How many times longer one side is, from where on its rare incidents are seen on it alone."""


def doubts(one: Side, other: Side) -> list[str]:
    """Return sentences on what makes comparing A with B unfair, the weightiest first."""
    return [*_both(one, other), *_of(one, "A"), *_of(other, "B")]


def _both(one: Side, other: Side) -> Iterator[str]:
    shared = _shared(one, other)
    if shared and one.spans != other.spans:
        yield (
            f"A and B share {duration(shared)} of the same run, and intervals take them for "
            "independent."
        )
    if one.world and other.world and one.world != other.world:
        yield (
            f"A held {_gpus(one)}, B {_gpus(other)}: more GPUs fail more often, so look "
            "at failures per 1,000 GPU-days."
        )
    for label in _TELLING:
        here, there = one.labels.get(label), other.labels.get(label)
        if here and there and here != there:
            yield (
                f"They ran on different {plain(label)}s: {', '.join(sorted(here))} against "
                f"{', '.join(sorted(there))}."
            )
    if one.left_out != other.left_out:
        yield f"{_without(one)} is left out of A, {_without(other)} of B."
    longer, shorter = sorted((one.elapsed, other.elapsed), reverse=True)
    if shorter and longer > _MUCH * shorter:
        yield (
            f"A lasted {duration(one.elapsed)}, B {duration(other.elapsed)}: start-up "
            "and single incidents weigh more in the shorter one."
        )


def _of(side: Side, name: str) -> Iterator[str]:
    if not side.elapsed:
        yield f"{name} holds no time of any run."
    if side.is_live:
        yield f"{name} is not over: its newest steps may still be rolled back."
    pending = sum(met.is_open for met in side.incidents)
    if pending:
        yield f"{counted(pending, 'incident')} of {name} may still cost more."
    if side.dropped:
        yield f"{counted(side.dropped, 'record')} of {name}'s runs were lost before being stored."


def _shared(one: Side, other: Side) -> int:
    """Return the time in ns that is part of both."""
    return sum(
        max(min(a.end, b.end) - max(a.start, b.start), 0)
        for run in {*one.spans} & {*other.spans}
        for a in one.spans[run]
        for b in other.spans[run]
    )


def _gpus(side: Side) -> str:
    low, high = min(side.world), max(side.world)
    return counted(high, "GPU") if low == high else f"{count(low)} to {counted(high, 'GPU')}"


def _without(side: Side) -> str:
    return duration(side.left_out) if side.left_out else "nothing"
