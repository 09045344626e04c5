"""How far chance may have moved a figure, and the difference of two.

Every interval is two-sided and answers for what was seen of one side alone; `difference_interval`
puts two of them together. None is an end that so little does not tell.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist, fmean

CONFIDENCE = 0.95
"""How often an interval holds the truth, unless somebody asks for another."""

_FEWEST_BLOCKS = 10

Interval = tuple[float | None, float | None]


def quantile_interval(
    values: Sequence[float], quantile: float, confidence: float = CONFIDENCE
) -> Interval:
    """Return two of the values between which a quantile of what they were drawn from lies.

    From order statistics, whatever the distribution: the number of values below the quantile is
    binomial (H. A. David, Order Statistics, 2nd ed. 1981, section 2.5). Each end is missed with a
    probability of at most (1 - confidence) / 2, and None where no value is far enough out. Example:
    the median of 10 values lies between the 2nd and the 9th with 97.9 %.
    """
    ordered, tail = sorted(values), (1 - confidence) / 2
    below, above = 0.0, 0.0
    low: float | None = None
    high: float | None = None
    for place, value in enumerate(ordered):
        below += _binomial(len(ordered), place, quantile)
        if below > tail:
            break
        low = value
    for place, value in enumerate(reversed(ordered)):
        above += _binomial(len(ordered), place, 1 - quantile)
        if above > tail:
            break
        high = value
    return low, high


def sum_interval(
    losses: Sequence[float], largest: float, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """Return between what the expected sum of losses lies that strike at random moments.

    The gamma interval of M. P. Fay and E. J. Feuer (Statistics in Medicine 16, 1997) for a
    weighted sum of Poisson counts: each loss counts once, with itself as weight. `largest` is what
    one more may cost, at least the largest of them; with it, no loss at all has an interval, too.
    """
    normal = NormalDist().inv_cdf((1 + confidence) / 2)
    whole, squares = math.fsum(losses), math.fsum(loss * loss for loss in losses)
    low = _gamma_quantile(whole, squares, -normal) if whole else 0.0
    return low, _gamma_quantile(whole + largest, squares + largest * largest, normal)


def ratio_interval(
    blocks: Sequence[tuple[float, float]], confidence: float = CONFIDENCE
) -> Interval:
    """Return between what a ratio of two sums lies, from blocks of (numerator, denominator).

    Batch means: the deviations of the blocks from the ratio of the sums, by Student's t (A. M. Law,
    Simulation Modeling and Analysis, section 9.5.3). Holds for blocks that vary without rare huge
    ones. None for fewer than ten blocks.
    """
    whole = math.fsum(denominator for _, denominator in blocks)
    if len(blocks) < _FEWEST_BLOCKS or not whole:
        return None, None
    ratio = math.fsum(numerator for numerator, _ in blocks) / whole
    deviations = [numerator - ratio * denominator for numerator, denominator in blocks]
    free = len(blocks) - 1
    spread = math.sqrt(math.fsum(one * one for one in deviations) / free / len(blocks))
    reach = _student(free, confidence) * spread / fmean(denominator for _, denominator in blocks)
    return ratio - reach, ratio + reach


def difference_interval(one: float, of_one: Interval, other: float, of_other: Interval) -> Interval:
    """Return the interval of `one - other` from those of the two.

    The method of variance estimates recovery (G. Y. Zou and A. Donner, Statistics in Medicine 27,
    2008): the distances to the ends that matter are added as the sides of a right angle are.
    Swapping the two swaps the ends and their signs.
    """
    low = high = None
    if of_one[0] is not None and of_other[1] is not None:
        low = one - other - math.hypot(one - of_one[0], of_other[1] - other)
    if of_one[1] is not None and of_other[0] is not None:
        high = one - other + math.hypot(of_one[1] - one, other - of_other[0])
    return low, high


def _binomial(tries: int, hits: int, share: float) -> float:
    logs = (
        math.lgamma(tries + 1)
        - math.lgamma(hits + 1)
        - math.lgamma(tries - hits + 1)
        + hits * math.log(share)
        + (tries - hits) * math.log1p(-share)
    )
    return math.exp(logs)


def _gamma_quantile(mean: float, variance: float, normal: float) -> float:
    """Return a quantile of the gamma distribution with this mean and variance.

    E. B. Wilson and M. M. Hilferty, The distribution of chi-square, PNAS 17 (1931): its cube root
    is nearly normal.
    """
    freedom = 2 * mean * mean / variance
    step = 2 / (9 * freedom)
    return mean * float(max(1 - step + normal * math.sqrt(step), 0.0) ** 3)


def _student(free: int, confidence: float) -> float:
    """Return a quantile of Student's t; M. Abramowitz and I. A. Stegun (1964), 26.7.5."""
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return float(
        z
        + (z**3 + z) / (4 * free)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * free**3)
    )
