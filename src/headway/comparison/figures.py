"""The figures that people compare, of two sides, in reading order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from headway.comparison.estimates import Estimate, Figure, estimated, finding_of
from headway.comparison.intervals import (
    CONFIDENCE,
    Interval,
    quantile_interval,
    ratio_interval,
    sum_interval,
)
from headway.comparison.parts import STRUCK, Met
from headway.comparison.sides import Side
from headway.fleet.rates import poisson_interval
from headway.incidents.recovery import distribution
from headway.ledger import Range
from headway.ledger.ratios import checkpoint_efficiency
from headway.metrics import CATEGORIES, category

_HOUR = 3_600 * 10**9
_THOUSAND_GPU_DAYS = 1_000 * 24 * _HOUR
_FEWEST_INCIDENTS = 6
"""Incidents of both sides together below which nobody can say what they cost on average."""
_EVERY = (*STRUCK, "rolled_back")
_OUTAGES = ("stalled", "restart", "down")


def compared(one: Side, other: Side) -> list[Figure]:
    """Return the figures of two sides in reading order."""
    theirs = {row.name: row.value for row in _rows(other, one)}
    found = []
    for row in _rows(one, other):
        difference = row.value.minus(theirs[row.name])
        found.append(
            Figure(
                name=row.name,
                title=row.title,
                unit=row.unit,
                higher_is_better=row.better,
                one=row.value,
                other=theirs[row.name],
                difference=difference,
                finding=finding_of(difference, is_sampled=row.is_sampled),
            )
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A figure of one side; `is_sampled` says that chance has a part in it."""

    name: str
    title: str
    unit: str
    better: bool | None
    value: Estimate
    is_sampled: bool = False


def _rows(side: Side, beside: Side) -> Iterator[_Row]:
    """Yield the figures of a side; what stands beside it tells what an incident may cost, too."""
    yield from _goodputs(side, beside)
    yield from _amounts(side)
    yield from _incidents(side)
    yield from _checkpoints(side)
    names = {*side.wall, *beside.wall} - {*CATEGORIES}
    for name in (*CATEGORIES, *sorted(names)):
        yield _share(side, beside, name)


def _goodputs(side: Side, beside: Side) -> Iterator[_Row]:
    for name, title, ratio, gpu_ratio, lost_to in (
        ("training_goodput", "Training goodput", side.training, side.gpu_training, _EVERY),
        (
            "infrastructure_goodput",
            "Infrastructure goodput",
            side.infrastructure,
            side.gpu_infrastructure,
            _OUTAGES,
        ),
    ):
        of_wall, of_gpu = partial(_lost, lost_to), partial(_lost_gpu, lost_to)
        yield _ratio(name, title, ratio, _chance(side, beside, side.elapsed, of_wall))
        reach = _chance(side, beside, side.gpu_elapsed, of_gpu)
        yield _ratio(f"gpu_{name}", f"{title} of GPU time", gpu_ratio, reach)


def _amounts(side: Side) -> Iterator[_Row]:
    elapsed, steps = side.elapsed, side.steps
    productive = side.wall.get("productive", 0)
    yield _counted("elapsed", "Elapsed", "ns", None, elapsed)
    gpus = max(side.world, default=None) if len(side.world) < 2 else None
    yield _counted("gpus", "GPUs", "GPUs", None, gpus)
    yield _counted("steps", "Lasting steps", "steps", None, steps)
    # of different models no step is like another
    alike = len(side.names) == 1 and steps > 0
    low, high = ratio_interval(side.blocks) if alike else (None, None)
    yield _Row(
        name="step_time",
        title="Time per lasting step",
        unit="ns",
        better=False,
        value=estimated(productive / steps if alike else None, (low, high)),
        is_sampled=True,
    )
    rate = steps * _HOUR / elapsed if elapsed else None
    yield _counted("steps_per_hour", "Lasting steps per hour", "steps/h", True, rate)
    yield _counted("attempts", "Attempts", "attempts", None, side.attempts)
    yield _counted("failed_starts", "Failed starts", "attempts", None, side.failed_starts)


def _incidents(side: Side) -> Iterator[_Row]:
    known = side.incidents
    failures = sum(met.is_failure for met in known)
    fewest, most = poisson_interval(failures, CONFIDENCE)
    yield _counted("incidents", "Incidents", "incidents", None, len(known))
    days = side.gpu_elapsed / _THOUSAND_GPU_DAYS
    yield _Row(
        name="failures",
        title="Failures per 1,000 GPU-days",
        unit="failures",
        better=False,
        value=estimated(failures / days, (fewest / days, most / days))
        if days
        else Estimate(low=None, high=None),
        is_sampled=True,
    )
    up = side.up
    yield _Row(
        name="mtbf",
        title="Mean time between failures",
        unit="ns",
        better=True,
        value=Estimate(
            low=up / failures if failures else None,
            high=up / failures if failures else None,
            chance_low=up / most if up else None,
            chance_high=up / fewest if failures else None,
        ),
        is_sampled=True,
    )
    recovered = [met.recovery for met in known if met.recovery is not None]
    yield _percentile("recovery", "Median time to recover", "ns", recovered, 50)
    yield _percentile("recovery_p95", "95th percentile of it", "ns", recovered, 95)
    undone = [met.rollback_steps for met in known if met.rollback_steps is not None]
    yield _counted("rolled_back_steps", "Steps rolled back", "steps", None, sum(undone))
    yield _percentile("rollback", "Median rollback", "steps", undone, 50)


def _checkpoints(side: Side) -> Iterator[_Row]:
    efficiency = checkpoint_efficiency(side.wall)
    yield _counted("checkpoint_efficiency", "Checkpoint efficiency", "ratio", True, efficiency)
    yield _percentile("save_blocking", "Median blocking of a save", "ns", side.saves, 50)


def _share(side: Side, beside: Side, name: str) -> _Row:
    amount, elapsed = side.wall.get(name, 0), side.elapsed
    is_sampled = name in _EVERY
    # time without evidence may have been of any category
    unknown = 0 if name == "unattributed" else side.wall.get("unattributed", 0)
    share = amount / elapsed if elapsed else None
    most = (amount + unknown) / elapsed if elapsed else None
    less, more = None, None
    if is_sampled:
        less, more = _chance(side, beside, elapsed, lambda met: met.losses[name])
    better = True if name == "productive" else None if name == "unattributed" else False
    value = Estimate(
        low=share,
        high=most,
        chance_low=None if share is None or less is None else max(share - less, 0.0),
        chance_high=None if most is None or more is None else min(most + more, 1.0),
        ns=amount,
    )
    return _Row(
        name=f"share:{name}",
        title=category(name).title,
        unit="ratio",
        better=better,
        value=value,
        is_sampled=is_sampled,
    )


def _chance(side: Side, beside: Side, whole: int, cost: Callable[[Met], int]) -> Interval:
    """Return by what share of its time a side's losses might have been lower, and higher.

    None where both sides together met too few incidents that cost any.
    """
    losses = [lost for met in side.incidents if (lost := cost(met)) > 0]
    others = [lost for met in beside.incidents if (lost := cost(met)) > 0]
    if len(losses) + len(others) < _FEWEST_INCIDENTS or not whole:
        return None, None
    low, high = sum_interval(losses, max(*losses, *others))
    lost = sum(losses)
    return (lost - low) / whole, (high - lost) / whole


def _ratio(name: str, title: str, ratio: Range, reach: Interval) -> _Row:
    """Return a goodput; what incidents cost less it would have been higher."""
    less, more = reach
    return _Row(
        name=name,
        title=title,
        unit="ratio",
        better=True,
        value=Estimate(
            low=ratio.low,
            high=ratio.high,
            chance_low=None if ratio.low is None or more is None else max(ratio.low - more, 0.0),
            chance_high=None if ratio.high is None or less is None else min(ratio.high + less, 1.0),
        ),
        is_sampled=True,
    )


def _counted(name: str, title: str, unit: str, better: bool | None, value: float | None) -> _Row:
    return _Row(
        name=name, title=title, unit=unit, better=better, value=estimated(value, (None, None))
    )


def _percentile(name: str, title: str, unit: str, values: Sequence[int], percent: int) -> _Row:
    return _Row(
        name=name,
        title=title,
        unit=unit,
        better=False,
        value=estimated(
            distribution(values)[f"p{percent}"], quantile_interval(values, percent / 100)
        ),
        is_sampled=True,
    )


def _lost(names: Sequence[str], met: Met) -> int:
    return sum(met.losses[name] for name in names)


def _lost_gpu(names: Sequence[str], met: Met) -> int:
    return sum(met.gpu_losses[name] for name in names)
