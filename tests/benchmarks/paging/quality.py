"""Are the right people woken: months of simulated fleet, told by the rules as they are shipped."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from benchmarks.paging.figures import Judged, figures, judged, seen
from benchmarks.paging.watching import looks, site_of
from headway.alerts.catalogue import RULES
from headway.simulate.month import month

RUNS, DAYS = 200, 30


def of_seed(seed: int, runs: int, days: int) -> list[Judged]:
    """Return every run of a month with what was told of it."""
    site = site_of(RULES)
    found = []
    for run in month(seed, runs=runs, days=days):
        one = judged(seen(seed, run, looks(run)), site)
        found.append(replace(one, seen=replace(one.seen, looks=())))  # they take most of the memory
    return found


def quality(seeds: Sequence[int], runs: int, days: int, processes: int) -> dict[str, Any]:
    """Return the figures of several months, each of a seed, computed side by side."""
    with ProcessPoolExecutor(max_workers=processes) as pool:
        months = pool.map(partial(of_seed, runs=runs, days=days), seeds)
        return figures([one for month in months for one in month], days)


def numbers(text: str) -> list[int]:
    """Return the numbers of a range such as `11-30`, or of a list such as `1,4,7`; none of ''."""
    first, dash, last = text.partition("-")
    if dash:
        return list(range(int(first), int(last) + 1))
    return [int(one) for one in text.split(",") if one]
