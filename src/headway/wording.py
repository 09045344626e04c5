"""Numbers as people read them: the terminal report, the dashboard and alerts say the same.

Pure functions, standard library only. `None` is unknown and reads so, never as zero.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

UNKNOWN = "unknown"

_MILLISECOND = 1_000_000
_SECOND = 1_000 * _MILLISECOND


def duration(ns: int | None) -> str:
    """Return a duration with at most two units: `340 ms`, `3.4 s`, `2 min 13 s`, `3 d 4 h`."""
    if ns is None:
        return UNKNOWN
    if ns == 0:
        return "0 s"
    if abs(ns) < _MILLISECOND:
        return "< 1 ms"
    if ns < 0:
        return f"-{duration(-ns)}"
    milliseconds = _rounded(ns, _MILLISECOND)
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    tenths = _rounded(ns, _SECOND // 10)
    if tenths < 100:
        return f"{tenths / 10:.1f} s"
    seconds = _rounded(ns, _SECOND)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3_600:
        return f"{seconds // 60} min {seconds % 60} s"
    minutes = _rounded(ns, 60 * _SECOND)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = _rounded(ns, 3_600 * _SECOND)
    return f"{count(hours // 24)} d {hours % 24} h"


def percent(ratio: float | None) -> str:
    """Return a ratio of 0 to 1 as a percentage with one decimal.

    Only nothing reads `0.0 %` and only everything reads `100.0 %`.
    """
    if ratio is None:
        return UNKNOWN
    digits = f"{ratio * 100:.1f}"
    if digits == "0.0" and ratio > 0:
        return "< 0.1 %"
    if digits == "100.0" and ratio < 1:
        return "> 99.9 %"
    return f"{digits} %"


def ratio_range(low: float | None, high: float | None) -> str:
    """Return `71.3 %`, or `61.2 to 71.3 %` where the two ends read differently."""
    if low is None or high is None:
        return UNKNOWN
    first, last = percent(low), percent(high)
    if first == last:
        return first
    return f"{first.removesuffix(' %')} to {last}"


def count(n: int | None) -> str:
    """Return a whole number with its thousands apart: `12,345`."""
    return UNKNOWN if n is None else f"{n:,}"


def counted(n: int | None, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `1 step`, `12,345 steps`."""
    return f"{count(n)} {noun if n == 1 else plural or noun + 's'}"


def size(amount: int | None) -> str:
    """Return bytes as people read them, in powers of 1,000: `340 B`, `5.4 MB`, `2.1 TB`."""
    if amount is None:
        return UNKNOWN
    unit, rest = "B", float(amount)
    for larger in ("kB", "MB", "GB", "TB", "PB"):
        if rest < 999.5:
            break
        unit, rest = larger, rest / 1_000
    return f"{rest:.0f} {unit}" if unit == "B" or rest >= 99.95 else f"{rest:.1f} {unit}"


def gpu_hours(gpu_ns: int | None) -> str:
    """Return GPU time in GPU-hours: `0 GPU-h`, `< 0.1 GPU-h`, `3.4 GPU-h`, `12,345 GPU-h`."""
    if gpu_ns is None:
        return UNKNOWN
    hours = gpu_ns / (3_600 * _SECOND)
    if gpu_ns and hours < 0.05:
        return "< 0.1 GPU-h"
    return f"{hours:.1f} GPU-h" if 0 < hours < 99.95 else f"{hours:,.0f} GPU-h"


def money(amount: float | None, currency: str) -> str:
    """Return an amount of money: `12,345 EUR`; below 100 with two decimals."""
    if amount is None:
        return UNKNOWN
    return f"{amount:,.0f} {currency}" if amount >= 100 else f"{amount:.2f} {currency}"


_ABBREVIATIONS = {"gpu": "GPU", "oom": "OOM"}


def plain(name: str) -> str:
    """Return a declared word for people: `in_process` is `in process`, `gpu_fault` `GPU fault`."""
    return " ".join(_ABBREVIATIONS.get(word, word) for word in name.split("_"))


def titled(name: str) -> str:
    """Return a declared word as it begins a line: `In process`, `GPU fault`."""
    words = plain(name)
    return words[:1].upper() + words[1:]


_FLAGS = {
    "no_allocation": "no record of the GPUs that were held, so one per rank is assumed",
    "revised_after_abandonment": "an attempt that followed a day without any sign of life",
    "single_rank": "an attempt with records of a single rank",
    "split_brain": "two attempts that trained at the same time",
}


def flag(name: str) -> str:
    """Return what a flag of a ledger says; some are sentences already."""
    return _FLAGS.get(name, plain(name))


def when(ns: int | None, zone: tzinfo = UTC) -> str:
    """Return a wall-clock time to the second with its zone: `2026-11-29 16:34:08 UTC`."""
    if ns is None:
        return UNKNOWN
    moment = datetime.fromtimestamp(ns // _SECOND, tz=zone)
    return f"{moment:%Y-%m-%d %H:%M:%S} {moment.tzname()}"


def last_heard(run: Mapping[str, Any]) -> str | None:
    """Return how old the last sign of a run is, `last heard 4 min 10 s ago`; None once it is over.

    All processes of a run may be gone long before a day without a sign ends it as abandoned.
    """
    if not run["provisional"] or run["last_event"] is None:
        return None
    return f"last heard {duration(max(run['as_of'] - run['last_event'], 0))} ago"


def remark(said: Mapping[str, Any]) -> str:
    """Return what a person said, as one line: `corrected the cause to hang: rank 3 stood still`."""
    parts = []
    if said["action"] == "acknowledged":
        parts.append("took charge")
    elif said["action"] == "corrected":
        parts.append(f"corrected the cause to {plain(said['cause'])}")
    if said["text"]:
        parts.append(said["text"])
    words = (": " if said["action"] == "corrected" else "; ").join(parts)
    changed = (("labelled it", said["labels"]), ("took away", said["labels_removed"]))
    labelled = "; ".join(f"{verb} {', '.join(labels)}" for verb, labels in changed if labels)
    return f"{words} ({labelled})" if words and labelled else words or labelled


def _rounded(ns: int, unit: int) -> int:
    """Return the nearest whole number of units, halves upwards, without floating point."""
    return (2 * ns + unit) // (2 * unit)
