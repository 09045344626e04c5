"""A comparison in words: terminal and pages say the same."""

from collections.abc import Mapping
from typing import Any

from headway.comparison.estimates import FINDINGS
from headway.comparison.intervals import CONFIDENCE
from headway.wording import UNKNOWN, duration, ratio_range

Object = Mapping[str, Any]
CHANCE = (
    f"The interval holds the difference in {CONFIDENCE:.0%} of such comparisons: which incidents "
    f"strike and what they cost differs by chance, and {1 - CONFIDENCE:.0%} of all figures lie "
    "outside by chance alone."
)


def value(estimate: Object, unit: str) -> str:
    """Return a figure of one side: `71.3 %`, `2 min 13 s`, `1,514`; a share with its time."""
    low, high = estimate["low"], estimate["high"]
    if low is None or high is None:
        return UNKNOWN
    if unit == "ratio":
        share = ratio_range(low, high)
        return share if estimate["ns"] is None else f"{share}, {duration(estimate['ns'])}"
    return duration(round(low)) if unit == "ns" else _number(low)


def difference(estimate: Object, unit: str) -> str:
    """Return a difference with its sign; that of shares is in percentage points."""
    return _between(estimate["low"], estimate["high"], unit)


def chance(estimate: Object, unit: str) -> str:
    """Return between what a difference lies, chance included; empty where nobody can say."""
    low, high = estimate["chance_low"], estimate["chance_high"]
    if low is None and high is None:
        return ""
    if low is None:
        return f"at most {_signed(high, unit)}{_suffix(unit)}"
    if high is None:
        return f"at least {_signed(low, unit)}{_suffix(unit)}"
    return _between(low, high, unit)


def verdict(figure: Object) -> str:
    """Return what can be said of a figure's difference, of the first side against the other."""
    finding, better = figure["finding"], figure["higher_is_better"]
    low = figure["difference"]["low"]
    if finding not in ("distinct", "measured"):
        return FINDINGS[finding]
    if better is None:
        return "" if finding == "measured" else FINDINGS[finding]
    word = "better" if (low > 0) == better else "worse"
    return word if finding == "distinct" else f"{word}, {FINDINGS[finding]}"


def is_told(figure: Object) -> bool:
    """Whether a figure has anything to tell: a value on one side at least that is not zero.

    Of attached results only what differs: they hold settings and bounds, too.
    """
    if figure["name"].startswith("result:") and figure["finding"] == "equal":
        return False
    return any(figure[side]["low"] not in (None, 0) for side in ("one", "other"))


def _between(low: float | None, high: float | None, unit: str) -> str:
    if low is None or high is None:
        return UNKNOWN
    first, last = _signed(low, unit), _signed(high, unit)
    whole = first if first == last else f"{first} to {last}"
    return whole + (_suffix(unit) if whole != "0" else "")


def _signed(amount: float, unit: str) -> str:
    if unit == "ratio":
        text = f"{amount * 100:+.1f}"
        return "0" if float(text) == 0 else text
    if not amount:
        return "0"
    sign, size = ("+" if amount > 0 else "-"), abs(amount)
    return f"{sign}{duration(round(size)) if unit == 'ns' else _number(size)}"


def _suffix(unit: str) -> str:
    return " pp" if unit == "ratio" else ""


def _number(amount: float) -> str:
    """Return a number with its thousands apart: `1,514`, `0.25`, `3.142`."""
    return f"{amount:,.0f}" if amount >= 1_000 or amount == int(amount) else f"{amount:.4g}"
