"""The figures of many runs together as one plain object: the same for API, terminal and pages."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headway.fleet.past import PastIncident
from headway.fleet.rates import poisson_interval
from headway.fleet.shares import Share
from headway.fleet.sides import SIDES, is_failure, side_of
from headway.incidents.recovery import distribution
from headway.ledger.model import Range
from headway.ledger.ratios import goodput

GPU_HOUR = 3_600 * 10**9
"""One GPU-hour in GPU-ns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What an hour of one GPU costs."""

    per_gpu_hour: float
    currency: str

    def of(self, gpu_ns: int) -> float:
        """Return what an amount of GPU time costs."""
        return gpu_ns / GPU_HOUR * self.per_gpu_hour


def totals(shares: Sequence[Share], price: Price | None) -> dict[str, Any]:
    """Return the figures of runs; money is None without a price.

    Lost is the GPU time that was held and did not become lasting progress; time without evidence
    makes it a range, as it does the goodputs.
    """
    wall = _sums([(share.wall, share.training_good) for share in shares])
    gpu = _sums([(share.gpu, share.training_good) for share in shares])
    known = [incident for share in shares for incident in share.incidents]
    lost = lost_of(gpu.training)
    return {
        "runs": len(shares),
        "running": sum(share.state == "running" for share in shares),
        "open_incidents": sum(share.open_incidents for share in shares),
        "attempts": sum(share.attempts for share in shares),
        "failed_starts": sum(share.failed_starts for share in shares),
        "wall_time": wall.values(),
        "gpu_time": gpu.values(),
        "lost_gpu_ns": lost,
        "lost_cost": cost_of(lost, price),
        "incidents": len(known),
        "mtbf": mtbf(known, wall.infrastructure.numerator[0]),
        "recovered_ns": distribution([one.recovery for one in known if one.recovery is not None]),
        "sides": sides(known),
        "causes": causes(known),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    whole: int
    categories: Mapping[str, int]
    training: Range
    infrastructure: Range

    def values(self) -> dict[str, Any]:
        return {
            "elapsed_ns": self.whole,
            "categories": dict(self.categories),
            "training_goodput": _bounds(self.training),
            "infrastructure_goodput": _bounds(self.infrastructure),
        }


def ratios(time: Mapping[str, int], good: Collection[str]) -> dict[str, Any]:
    """Return one run's time by category with both goodputs; `good` is what it calls good."""
    return _sums([(time, good)]).values()


def lost_of(training: Range) -> dict[str, int]:
    """Return the time that did not become lasting progress, at least and at most."""
    low, high = training.numerator
    return {"low": training.denominator - high, "high": training.denominator - low}


def cost_of(lost: Mapping[str, int], price: Price | None) -> dict[str, float] | None:
    """Return what lost GPU time costs, at least and at most; None without a price."""
    return None if price is None else {end: price.of(amount) for end, amount in lost.items()}


def lost_by_run(share: Share) -> dict[str, int]:
    """Return the GPU time that one run lost, at least and at most."""
    return lost_of(_sums([(share.gpu, share.training_good)]).training)


def mtbf(known: Iterable[PastIncident], up: int) -> dict[str, Any]:
    """Return the mean time between failures: time in which runs were up, by failures in it.

    `up` is that time in ns. Preemptions, time limits and stops by people are no failures. The
    interval is the exact one of a Poisson count (see `poisson_interval`); without any failure only
    its lower end is known.
    """
    failures = sum(is_failure(one.cause) for one in known)
    fewest, most = poisson_interval(failures)
    return {
        "failures": failures,
        "up_ns": up,
        "ns": round(up / failures) if failures else None,
        "low_ns": round(up / most) if up else None,
        "high_ns": round(up / fewest) if failures else None,
    }


def sides(known: Iterable[PastIncident]) -> list[dict[str, Any]]:
    """Return the incidents of each side and the GPU time that they cost, in reading order."""
    found = _counted(known, lambda one: side_of(one.cause))
    return [{"side": name, **found[name]} for name in SIDES if name in found]


def causes(known: Iterable[PastIncident]) -> list[dict[str, Any]]:
    """Return the incidents of each cause and the GPU time that they cost, the costliest first."""
    found = _counted(known, lambda one: one.cause)
    order = sorted(found, key=lambda cause: (-found[cause]["lost_gpu_ns"], cause))
    return [{"cause": cause, "side": side_of(cause), **found[cause]} for cause in order]


def _counted(known: Iterable[PastIncident], key: Any) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"incidents": 0, "lost_gpu_ns": 0})
    for one in known:
        found[key(one)]["incidents"] += 1
        found[key(one)]["lost_gpu_ns"] += one.lost_gpu
    return found


def _sums(parts: Iterable[tuple[Mapping[str, int], Collection[str]]]) -> _Sums:
    """Add up times; what a custom category counts as, each run says itself."""
    whole: Counter[str] = Counter()
    sure: dict[Literal["training", "infrastructure"], list[int]] = {
        "training": [0, 0],
        "infrastructure": [0, 0],
    }
    for categories, good in parts:
        whole.update(categories)
        for kind, ends in sure.items():
            low, high = goodput(categories, 1, kind, good).numerator
            ends[0] += low
            ends[1] += high
    elapsed = whole.total()
    training, infrastructure = (_range(low, high, elapsed) for low, high in sure.values())
    return _Sums(whole=elapsed, categories=whole, training=training, infrastructure=infrastructure)


def _range(low: int, high: int, whole: int) -> Range:
    return Range(
        low=low / whole if whole else None,
        high=high / whole if whole else None,
        numerator=(low, high),
        denominator=whole,
    )


def _bounds(ratio: Range) -> dict[str, float | None]:
    return {"low": ratio.low, "high": ratio.high}
