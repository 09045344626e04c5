"""The fleet's figures in words: terminal and pages say the same."""

from collections.abc import Callable, Mapping
from typing import Any

from headway import metrics
from headway.fleet.sides import SIDES
from headway.wording import UNKNOWN, counted, duration, gpu_hours, money, percent, plain

SETTING_OF_PRICE = "HEADWAY_COLLECTOR_GPU_HOUR_PRICE"
NO_PRICE = f"Set {SETTING_OF_PRICE} at the collector to see what lost time costs."


def lost(amount: Mapping[str, int]) -> str:
    """Return lost GPU time, at least and at most: `312 GPU-h`, `300 to 312 GPU-h`."""
    return _between(amount["low"], amount["high"], gpu_hours)


def cost(amount: Mapping[str, float] | None, price: Mapping[str, Any] | None) -> str:
    """Return what lost GPU time costs, at least and at most; without a price it is unknown."""
    if amount is None or price is None:
        return UNKNOWN
    return _between(amount["low"], amount["high"], lambda one: money(one, price["currency"]))


def mtbf(found: Mapping[str, Any]) -> str:
    """Return the mean time between failures; without any, what it is at least."""
    if found["ns"] is not None:
        return duration(found["ns"])
    return UNKNOWN if found["low_ns"] is None else f"over {duration(found['low_ns'])}"


def mtbf_interval(found: Mapping[str, Any]) -> str:
    """Return how many failures a mean time between them rests on, and its interval."""
    seen = f"{counted(found['failures'], 'failure')} in {duration(found['up_ns'])} up"
    if found["ns"] is None:
        return seen
    return f"{seen}; {duration(found['low_ns'])} to {duration(found['high_ns'])}"


def side_shares(group: Mapping[str, Any]) -> str:
    """Return what incidents cost by side: `machines 71.0 %, software 29.0 %`; empty for none."""
    whole = sum(one["lost_gpu_ns"] for one in group["sides"])
    if not whole:
        return ""
    parts = sorted(group["sides"], key=lambda one: -one["lost_gpu_ns"])
    return ", ".join(
        f"{SIDES[one['side']].title.lower()} {percent(one['lost_gpu_ns'] / whole)}"
        for one in parts
        if one["lost_gpu_ns"]
    )


def headline(group: Mapping[str, Any], worst: Mapping[str, Any] | None) -> str:
    """Return the fleet in two sentences: who loses most, to what, and whose fault incidents are.

    `group` are the totals, `worst` is the run that lost most, as the API tells both.
    """
    if worst is None or not worst["lost_gpu_ns"]["high"] or worst["largest_loss"] is None:
        return "Nothing was lost."
    share = worst["lost_gpu_ns"]["low"] / max(group["lost_gpu_ns"]["low"], 1)
    of_all = "" if group["runs"] == 1 else f", {percent(min(share, 1.0))} of all losses"
    title = metrics.category(worst["largest_loss"]["category"]).title.lower()
    text = (
        f"{worst['run_name']} loses most: {lost(worst['lost_gpu_ns'])}{of_all}, "
        f"mainly {title} ({gpu_hours(worst['largest_loss']['gpu_ns'])})"
    )
    incident = worst["worst_incident"]
    if incident is not None:
        where = "" if incident["node"] is None else f" on {incident['node']}"
        text += f"; its costliest incident was {plain(incident['cause'])}{where}"
    sides = side_shares(group)
    if not sides:
        return f"{text}. No incident cost anything."
    spent = gpu_hours(sum(one["lost_gpu_ns"] for one in group["sides"]))
    return f"{text}. All incidents cost {spent}: {sides}."


def _between(low: float, high: float, words: Callable[[Any], str]) -> str:
    first, last = words(low), words(high)
    if first == last:
        return first
    unit = last.rpartition(" ")[2]
    return f"{first.removesuffix(f' {unit}')} to {last}"
