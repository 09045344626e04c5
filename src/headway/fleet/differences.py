"""What is different about the slow recoveries: how often each circumstance is among them.

The slow ones are the slowest quarter. Each circumstance is compared with the others by Fisher's
exact test (R. A. Fisher, Statistical Methods for Research Workers, 5th ed. 1934), and since many
are compared, its probability is multiplied by their number (Bonferroni). Counts are always told; a
circumstance is said to stand out only where chance explains it in less than one of twenty cases.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from headway.fleet.past import PastIncident
from headway.wording import count, duration, plain, size

FEWEST = 12
"""Recoveries below which nothing is compared; a quarter of fewer is two."""
_SHARE_SLOW = 4
_LABELS = ("team", "cluster", "gpu_type")
_CERTAIN = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How often one circumstance is met among slow recoveries, and among the others.

    `chance` is the probability that chance alone makes it differ so much or more, over all
    circumstances that were compared; `stands_out` says that it is below one in twenty.
    """

    what: str
    value: str
    slow: int
    others: int
    chance: float

    @property
    def stands_out(self) -> bool:
        """Whether it is met among the slow ones more often than chance explains."""
        return self.chance < _CERTAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The slow recoveries against the others; `threshold` is the shortest of the slow, in ns.

    Differences are the circumstances that are more frequent among the slow ones. Without a
    threshold there are too few to compare.
    """

    slow: int
    others: int
    threshold: int | None
    differences: Sequence[Difference] = ()


def compare(known: Iterable[PastIncident]) -> Comparison:
    """Compare the slowest quarter of all recoveries with the others, the clearest first."""
    ended = [(one.recovery, one) for one in known if one.recovery is not None]
    ended.sort(key=lambda pair: (-pair[0], pair[1].incident))
    if len(ended) < FEWEST:
        return Comparison(slow=0, others=len(ended), threshold=None)
    threshold = ended[len(ended) // _SHARE_SLOW - 1][0]
    slow = [one for recovery, one in ended if recovery >= threshold]
    others = [one for recovery, one in ended if recovery < threshold]
    names = _circumstances([one for _, one in ended])
    in_slow = Counter(each for one in slow for each in names[one.incident])
    in_others = Counter(each for one in others for each in names[one.incident])
    # What all have in common, or one alone has, cannot tell them apart.
    compared = [
        key for key in {**in_slow, **in_others} if 1 < in_slow[key] + in_others[key] < len(ended)
    ]
    found = [
        Difference(
            what=key[0],
            value=key[1],
            slow=in_slow[key],
            others=in_others[key],
            chance=min(
                len(compared) * at_least(in_slow[key], len(slow), in_others[key], len(others)),
                1.0,
            ),
        )
        for key in compared
        if in_slow[key] * len(others) > in_others[key] * len(slow)
    ]
    found.sort(key=lambda one: (one.chance, -one.slow, one.what, one.value))
    return Comparison(slow=len(slow), others=len(others), threshold=threshold, differences=found)


def at_least(hits: int, size: int, other_hits: int, other_size: int) -> float:
    """Return the chance of `hits` or more of all hits in the first of two groups.

    One-sided exact test of Fisher: the margins are fixed, the hits in the first group follow the
    hypergeometric distribution. Example: 3 of 4 against 1 of 4, the lady tasting tea: 17 of 70.
    """
    all_hits = hits + other_hits
    most = min(size, all_hits)
    term = math.comb(size, hits) * math.comb(other_size, other_hits)
    found = term
    for n in range(hits, most):
        # the next table's number of ways from this one's, an exact division of whole numbers
        term = term * (size - n) * (all_hits - n) // ((n + 1) * (other_size - all_hits + n + 1))
        found += term
    return found / math.comb(size + other_size, all_hits)


def _circumstances(known: Sequence[PastIncident]) -> dict[str, list[tuple[str, str]]]:
    """Return by incident what is known around it; amounts as above the median or not."""
    found: dict[str, list[tuple[str, str]]] = {
        one.incident: [
            ("cause", plain(one.cause)),
            *((("layer", plain(one.tries[0].layer)),) if one.tries else ()),
            *((("node", one.node),) if one.node is not None else ()),
            ("run", one.run_name),
            *((plain(name), one.labels[name]) for name in _LABELS if name in one.labels),
        ]
        for one in known
    }
    for what, amounts, words in (
        ("checkpoint size", {one.incident: one.checkpoint_bytes for one in known}, size),
        ("checkpoint age", {one.incident: one.checkpoint_age for one in known}, duration),
        ("ranks", {one.incident: one.ranks for one in known}, count),
    ):
        there = {name: amount for name, amount in amounts.items() if amount is not None}
        if not there:
            continue
        middle = median_low(there.values())
        for name, amount in there.items():
            side = "above" if amount > middle else "at most"
            found[name].append((what, f"{side} {words(middle)}"))
    return found
