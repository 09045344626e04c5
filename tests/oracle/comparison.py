"""What two ledgers of one run disagree about; empty where they agree to the nanosecond."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from headway.events import Envelope
from headway.ledger import Ledger, ledger
from oracle.naive_ledger import NaiveLedger, naive_ledger

PARTS = ("productive", "rolled_back", "down", "restart", "startup")
"""Categories whose parts are compared, too."""
WINDOWS = 5


def disagreements(envelopes: Sequence[Envelope], as_of: int, seed: int = 0) -> list[str]:
    """Return one line per figure on which the product and the oracle differ."""
    mine, naive = ledger(envelopes, as_of), naive_ledger(envelopes, as_of)
    if naive.start is None or naive.end is None:
        return ["no run"] if mine.elapsed else []
    found = _differ("category", naive.categories, mine.categories)
    for name in PARTS:
        found += _differ(f"{name}:", naive.parts.get(name, {}), mine.parts.get(name, {}))
    figures = {
        "start": (naive.start, mine.start),
        "end": (naive.end, mine.closed_at),
        "highest step": (naive.highest_step, mine.steps.highest),
        "executed steps": (naive.executed_steps, mine.steps.executed),
        "surviving steps": (naive.surviving_steps, mine.steps.surviving),
        "attempts": (naive.attempts, len(mine.attempts)),
    }
    found += [f"{name} {one} {other}" for name, (one, other) in figures.items() if one != other]
    return found or _in_windows(mine, naive, random.Random(seed))  # noqa: S311


def _differ(name: str, naive: Mapping[str, int], mine: Mapping[str, int]) -> list[str]:
    return [
        f"{name} {key} {naive.get(key, 0)} {mine.get(key, 0)}"
        for key in sorted({*naive, *mine})
        if naive.get(key, 0) != mine.get(key, 0)
    ]


def _in_windows(mine: Ledger, naive: NaiveLedger, rng: random.Random) -> list[str]:
    """Compare what lies between some random times, edges of intervals among them."""
    edges = [edge for begin, end, *_ in naive.intervals for edge in (begin, end)]
    if not edges:
        return []
    times = [rng.choice((rng.choice(edges), rng.randint(edges[0], edges[-1])))]
    times += [rng.randint(edges[0], edges[-1]) for _ in range(WINDOWS)]
    found = []
    for begin, end in pairwise(sorted(times)):
        expected: Counter[str] = Counter()
        for first, last, category, part in naive.intervals:
            overlap = min(last, end) - max(first, begin)
            if overlap > 0:
                expected[f"{category} {part or ''}"] += overlap
        amounts = mine.amounts(begin, end).items()
        told = {f"{category} {part}": amount for (category, part), amount in amounts}
        found += _differ("window", expected, told)
    return found
