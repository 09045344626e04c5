"""How often machines fail, with the interval that so few faults leave open."""

import math
from dataclasses import dataclass

NS_PER_DAY = 86_400 * 10**9
_THOUSAND = 1_000
_CONFIDENCE = 0.95
_PRECISION = 1e-12
_NORMAL = 1.959963984540054
"""Quantile of the normal distribution that leaves 2.5 % above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """Faults over an exposure in node-days, and per 1,000 node-days with a 95 % interval.

    The rates are None without exposure.
    """

    faults: int
    node_days: float
    rate: float | None
    low: float | None
    high: float | None


def rate_of(faults: int, exposure: int) -> Rate:
    """Return the rate of faults seen over an exposure in node-ns."""
    days = exposure / NS_PER_DAY
    if exposure <= 0:
        return Rate(faults=faults, node_days=0.0, rate=None, low=None, high=None)
    low, high = poisson_interval(faults)
    scale = _THOUSAND / days
    return Rate(
        faults=faults,
        node_days=days,
        rate=faults * scale,
        low=low * scale,
        high=high * scale,
    )


def poisson_interval(count: int, confidence: float = _CONFIDENCE) -> tuple[float, float]:
    """Return the exact two-sided interval of a Poisson mean of which `count` was seen.

    F. Garwood, Fiducial limits for the Poisson distribution, Biometrika 28 (1936): the low end
    is the mean at which `count` or more has the probability alpha / 2, the high end that at which
    `count` or fewer has it. Equal to chi-square(alpha / 2, 2 count) / 2 and
    chi-square(1 - alpha / 2, 2 count + 2) / 2. Example: of 10, from 4.795 to 18.390.
    """
    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else _mean_with(count - 1, 1 - tail)
    return low, _mean_with(count, tail)


def wilson_interval(hits: int, tries: int) -> tuple[float, float] | None:
    """Return the 95 % interval of a share of which `hits` of `tries` were seen; None without any.

    E. B. Wilson, Probable inference, the law of succession, and statistical inference, Journal of
    the American Statistical Association 22 (1927). Unlike the usual one it never leaves 0 to 1 and
    holds for few tries. Example: of 8 of 10, from 0.490 to 0.943.
    """
    if not tries:
        return None
    share, square = hits / tries, _NORMAL * _NORMAL
    whole = 1 + square / tries
    middle = (share + square / (2 * tries)) / whole
    reach = _NORMAL / whole * math.sqrt(share * (1 - share) / tries + square / (4 * tries**2))
    low, high = max(middle - reach, 0.0), min(middle + reach, 1.0)
    return (0.0 if not hits else low), (1.0 if hits == tries else high)


def _mean_with(count: int, probability: float) -> float:
    """Return the mean at which at most `count` has a probability; it falls as the mean grows."""
    low, high = 0.0, count + 10 * math.sqrt(count + 1) + 10
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if _at_most(count, middle) > probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _at_most(count: int, mean: float) -> float:
    """Return the probability that a Poisson variable is at most `count`.

    The terms are summed from the last one down, each from the one before, so that nothing
    overflows: term(n - 1) = term(n) n / mean.
    """
    term = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1)) if mean else 0.0
    if mean > count:
        return math.fsum(_falling(term, count, mean))
    return 1 - math.fsum(_rising(term, count, mean))


def _falling(term: float, count: int, mean: float) -> list[float]:
    found = [term]
    for number in range(count, 0, -1):
        term *= number / mean
        if term < found[0] * 1e-18:
            break
        found.append(term)
    return found


def _rising(term: float, count: int, mean: float) -> list[float]:
    """Return the terms above `count`, which fall from there on."""
    found = []
    number = count
    while term > 0:
        number += 1
        term *= mean / number
        found.append(term)
        if term < found[0] * 1e-18:
            break
    return found
