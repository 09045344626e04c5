"""Results of benchmarks and drills: the numbers in them, and two sides of them compared."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median_low
from typing import Any

from headway.comparison.estimates import Figure, estimated, finding_of
from headway.comparison.intervals import quantile_interval

MOST_NUMBERS = 500
"""Numbers of one result that are kept apart."""

_LARGEST = 1e300

Numbers = Mapping[str, float]


def numbers_of(content: Any) -> dict[str, float]:
    """Return the numbers in a JSON value by their place: `recovery.p50`, `incidents.0.attempts`."""
    found: dict[str, float] = {}
    for place, number in _numbers(content, ()):
        if len(found) == MOST_NUMBERS:
            break
        found[".".join(place)] = number
    return found


def compared_results(
    one: Sequence[tuple[str, Numbers]], other: Sequence[tuple[str, Numbers]]
) -> list[Figure]:
    """Return the numbers that results of one title have on both sides; of several the median.

    What is better, only who wrote the benchmark knows.
    """
    ours, theirs = _gathered(one), _gathered(other)
    return [
        _figure(f"{title}: {place}", ours[title, place], theirs[title, place])
        for title, place in ours
        if (title, place) in theirs
    ]


def _figure(title: str, ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    left, right = (
        estimated(median_low(values), quantile_interval(values, 0.5)) for values in (ours, theirs)
    )
    difference = left.minus(right)
    # a result alone says nothing of how others would have come out
    is_sampled = len(ours) > 1 or len(theirs) > 1
    return Figure(
        name=f"result:{title}",
        title=title,
        unit="",
        higher_is_better=None,
        one=left,
        other=right,
        difference=difference,
        finding=finding_of(difference, is_sampled=is_sampled),
    )


def _gathered(results: Sequence[tuple[str, Numbers]]) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for title, numbers in results:
        for place, number in numbers.items():
            found.setdefault((title, place), []).append(number)
    return found


def _numbers(content: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    if isinstance(content, Mapping):
        for name, value in content.items():
            yield from _numbers(value, (*place, str(name)))
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from _numbers(value, (*place, str(number)))
    elif isinstance(content, int | float) and _is_number(content):
        yield place, float(content)


def _is_number(value: float) -> bool:
    """Whether a value is a number that a float holds: no flag, and neither infinite nor NaN."""
    return not isinstance(value, bool) and -_LARGEST < value < _LARGEST
