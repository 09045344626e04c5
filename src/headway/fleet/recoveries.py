"""How well a fleet recovers: rates, times, phases and attempts over the incidents of all runs.

Of a single run the rates, times and phases are those of its report.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from headway.fleet.course import brief
from headway.fleet.differences import Comparison, compare
from headway.fleet.past import PastIncident
from headway.fleet.rates import wilson_interval
from headway.incidents.model import PHASES
from headway.incidents.recovery import recovery

CURVE_POINTS = 200
"""Most points of one curve of recovery times; its first, its last and equal steps between."""
VALID = ("yes", "no", "unknown")
"""Whether re-executed steps agree with their first pass."""
TAIL = 25
"""Slowest recoveries that are listed."""


def recoveries(known: Sequence[PastIncident]) -> dict[str, Any]:
    """Return the recovery of all incidents as one plain object; durations in ns."""
    found = recovery(known)
    validity = Counter(one.valid for one in known)
    by_layer: dict[str, list[PastIncident]] = defaultdict(list)
    by_cause: dict[str, list[PastIncident]] = defaultdict(list)
    for one in known:
        by_cause[one.cause].append(one)
        if one.layer is not None:
            by_layer[one.layer].append(one)
    return {
        "incidents": len(known),
        "all": {**_with_interval(found["all"], ("not_recovered",)), **_more(known)},
        "by_cause": {
            cause: {**_with_interval(group, ("not_recovered",)), **_more(by_cause[cause])}
            for cause, group in found["by_cause"].items()
        },
        "by_layer": {
            layer: {
                **_with_interval(group, ("not_recovered", "escalated")),
                **_more(by_layer[layer]),
            }
            for layer, group in found["by_layer"].items()
        },
        "phases": found["phases"],
        "validity": {name: validity[name] for name in VALID},
        "tail": [_line(one) for one in _slowest(known)[:TAIL]],
        "slow": _comparison(compare(known)),
    }


def curve(times: Iterable[int]) -> dict[str, Any]:
    """Return the share of recoveries that took at most so long (ECDF), in ns and 0 to 1.

    Of many times only some are told, always the shortest and the longest.
    """
    ordered = sorted(times)
    size = len(ordered)
    points = min(size, CURVE_POINTS)
    places = sorted({round(n * (size - 1) / max(points - 1, 1)) for n in range(points)})
    return {
        "ns": [ordered[place] for place in places],
        "share": [(place + 1) / size for place in places],
    }


def _with_interval(group: Mapping[str, Any], failing: Sequence[str]) -> dict[str, Any]:
    """Return a group with the 95 % interval of its rate (see `wilson_interval`)."""
    outcomes = group["outcomes"]
    settled = group["incidents"] - outcomes["open"]
    held = settled - sum(outcomes[name] for name in failing)
    interval = wilson_interval(held, settled)
    low, high = (None, None) if interval is None else interval
    return {**group, "held": held, "settled": settled, "rate_low": low, "rate_high": high}


def _more(known: Sequence[PastIncident]) -> dict[str, Any]:
    """Return what the report of one run does not tell: curve, phases, attempts and losses."""
    recovered = [one for one in known if one.recovery is not None]
    attempts = Counter(len(one.tries) for one in recovered)
    spent = sum(len(one.tries) for one in known)
    return {
        "curve": curve(one.recovery for one in known if one.recovery is not None),
        "phase_ns": {name: sum(one.phases[name] for one in known) for name in PHASES},
        "attempts_needed": {str(number): attempts[number] for number in sorted(attempts)},
        "attempts_spent": spent,
        "attempts_per_success": spent / len(recovered) if recovered else None,
        "lost_gpu_ns": sum(one.lost_gpu for one in known),
    }


def _slowest(known: Iterable[PastIncident]) -> list[PastIncident]:
    ended = [one for one in known if one.recovery is not None]
    return sorted(ended, key=lambda one: (-(one.recovery or 0), one.incident))


def _line(one: PastIncident) -> dict[str, Any]:
    return {
        **brief(one),
        "layer": one.layer,
        "outcome": one.outcome,
        "attempts": len(one.tries),
        "valid": one.valid,
        "phases": dict(one.phases),
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "slow": found.slow,
        "others": found.others,
        "threshold_ns": found.threshold,
        "differences": [
            {**asdict(one), "stands_out": one.stands_out} for one in found.differences[:TAIL]
        ],
    }
