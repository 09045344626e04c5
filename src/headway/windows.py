"""Parts of a run's time: sliding windows, planned maintenance left out, and the time to its target.

A window cuts the ledger's intervals at its edges, with all knowledge the ledger has. Excluded
stretches leave numerator and denominator; whoever prints the figure must say so.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headway.ledger import Ledger, Range
from headway.ledger.ledger import by_category
from headway.ledger.pieces import Span, merge, without
from headway.ledger.ratios import goodput

HOUR = 3_600 * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The ledger of a part of a run; times in UTC ns, durations in ns.

    `excluded` are the stretches within it that do not count.
    """

    start: int
    end: int
    elapsed: int
    categories: Mapping[str, int]
    training_goodput: Range
    infrastructure_goodput: Range
    excluded: tuple[Span, ...] = ()


def window(
    ledger: Ledger, start: int, end: int, excluded: Iterable[tuple[int, int]] = ()
) -> Window:
    """Return the ledger between two times, clipped to the run.

    Raises:
        ValueError: a window or an excluded stretch that ends before it starts.
    """
    excluded = list(excluded)
    for first, last in [(start, end), *excluded]:
        if last < first:
            raise ValueError(f"a stretch cannot end at {last} before it starts at {first}")
    start, end = max(start, ledger.start), min(end, ledger.closed_at)
    whole = [Span(start, end)] if start < end else []
    holes = [
        Span(max(first, start), min(last, end))
        for first, last in merge(excluded)
        if first < end and last > start
    ]
    totals: Counter[tuple[str, str]] = Counter()
    counted = without(whole, holes)
    for first, last in counted:
        totals.update(ledger.amounts(first, last))
    elapsed = sum(last - first for first, last in counted)
    categories = by_category(totals)
    return Window(
        start=start,
        end=max(end, start),
        elapsed=elapsed,
        categories=categories,
        training_goodput=goodput(categories, elapsed, "training", ledger.training_good),
        infrastructure_goodput=goodput(categories, elapsed, "infrastructure", ledger.training_good),
        excluded=tuple(holes),
    )


def sliding(
    ledger: Ledger, length: int, step: int, excluded: Sequence[tuple[int, int]] = ()
) -> list[Window]:
    """Return windows of `length` ns, one every `step` ns, the newest ending at the run's end.

    Raises:
        ValueError: a length or step that is not positive.
    """
    if length <= 0 or step <= 0:
        raise ValueError(f"length and step must be positive, got {length} and {step}")
    ends = range(ledger.closed_at, ledger.start, -step)
    return [window(ledger, end - length, end, excluded) for end in reversed(ends)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """When a run reaches its target step if it goes on as before; times in UTC ns.

    `low` and `high` come from the fastest and the slowest of the rates, in surviving steps per
    hour with faults included: of the whole run and of its recent part.
    """

    low: int | None
    high: int | None
    steps_left: int
    rates: tuple[float, float]


def arrival(ledger: Ledger) -> Arrival | None:
    """Return when the run reaches its target; None without a target or once it has ended.

    The recent part is the last quarter of the run, at least an hour where it ran that long.
    """
    steps = ledger.steps
    if steps.target is None or ledger.end is not None or not ledger.elapsed:
        return None
    newest = ledger.newest_step
    left = max(steps.target - newest, 0)
    recent = min(max(ledger.elapsed // 4, HOUR), ledger.elapsed)
    since = ledger.closed_at - recent
    gained = newest - ledger.surviving_step_at(since)
    whole = newest - ledger.first_base
    rates = (whole * HOUR / ledger.elapsed, max(gained, 0) * HOUR / recent)
    fast, slow = max(rates), min(rates)
    return Arrival(
        low=ledger.as_of + round(left / fast * HOUR) if fast > 0 else None,
        high=ledger.as_of + round(left / slow * HOUR) if slow > 0 else None,
        steps_left=left,
        rates=rates,
    )
