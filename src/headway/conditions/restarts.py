"""Conditions of a run that breaks: what repeats, what is left, how long it takes this time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.conditions.gauge import DAY, HOUR, LEAST_TIME, Condition
from headway.conditions.waiting import is_planned, waits
from headway.events import LAYERS, RestartBudget
from headway.incidents.recovery import distribution
from headway.ledger import Ledger

_FEW, _MANY = 3, 20
"""Recoveries from which on a run says what is usual for it, and what happens to one in twenty."""
_OUTLYING = 3
"""Times of the median beyond which one of few recoveries was an accident of its own."""
_STARTING = 60 * 10**9
"""Time in ns within which the ranks of a layer begin that told of its restarts as it started."""


def conditions(ledger: Ledger, report: Mapping[str, Any]) -> Iterator[Condition]:
    """Yield what the incidents of a run say about it now."""
    now = ledger.closed_at
    listed = report["incidents"]
    opened = [one for one in listed if one["state"] == "open"]
    lately = [one for one in listed if one["opened"] > now - DAY]
    without = report["attempts_without_durable_step"]
    yield "headway_attempts_without_durable_step", (), without
    yield "headway_repeated_failures", (), max(map(_repeated, opened), default=0)
    wrong = [one for one in lately if one["recovery_valid"]["valid"] == "no"]
    yield "headway_invalid_recoveries", (), len(wrong)
    alarms = [one for one in lately if one["suspected_false_alarm"]]
    yield "headway_suspected_false_alarms", (), len(alarms)
    layers = _restarts_left(ledger)
    for layer, remaining in layers.items():
        yield "headway_restarts_left", (layer,), remaining
    outermost = next((layer for layer in LAYERS if layer in layers), None)
    if outermost is not None:
        yield "headway_last_restarts_left", (outermost,), layers[outermost]
    yield "headway_recovery_time_ratio", (), _recovery(ledger, listed)
    for one in opened:
        labels = (one["incident"], one["cause"], one["suspect_node"], one["suspect_rank"])
        told = tuple("" if label is None else str(label) for label in labels)
        yield "headway_open_incident_gpu_seconds", told, one["lost_gpu_ns"] / 1e9


def _repeated(incident: Mapping[str, Any]) -> int:
    """Return how many breaks of an open incident in a row share something.

    What broke alike before it does not count: the run had recovered in between. Nor does a stop
    that was announced, be it by what a person says of it.
    """
    ends = (incident, *(one for one in incident["tries"] if one["cause"] is not None))
    broken = sum(not is_planned(one) for one in ends)
    return min(int(incident["alike"]), broken)


def _restarts_left(ledger: Ledger) -> dict[str, int]:
    """Return the restarts that each layer has left.

    Nothing of a layer that allows none by its settings, nor of one that an outer layer started
    anew since it told, and with it its count.
    """
    if not ledger.book.budgets:
        return {}
    times = {
        fact.envelope.event.layer: fact.time
        for fact in ledger.book.facts
        if isinstance(fact.envelope.event, RestartBudget) and fact.time <= ledger.as_of
    }
    found = {}
    for layer, budget in sorted(ledger.book.budgets.items()):
        outer = LAYERS[: LAYERS.index(layer)]
        is_anew = any(
            attempt.layer in outer and attempt.begin > times.get(layer, 0) + _STARTING
            for attempt in ledger.book.attempts
        )
        if budget.limit != 0 and not is_anew:
            found[layer] = budget.remaining
    return found


def _recovery(ledger: Ledger, listed: Sequence[Mapping[str, Any]]) -> float:
    """Return the time since the last step of a run that is down, over what is usual for it.

    An attempt that is alive and has completed a step ends it, be it for the moment. A run that was
    told to stop counts from when it has machines again, and not while it holds none.
    """
    newest = next((one for one in reversed(listed) if one["state"] == "open"), None)
    accounts = ledger.book.accounts
    if newest is None or any(
        ledger.is_alive(number)
        and account.steps is not None
        and account.attempt.begin > newest["opened"]
        for number, account in enumerate(accounts)
    ):
        return 0.0
    done = (int(account.steps.end[-1]) for account in accounts if account.steps is not None)
    since: int = max([newest["opened"], *done])
    since = max([since, *(end for _, end in waits(ledger, newest))])
    return (ledger.closed_at - since) / _usual(ledger, listed)


def _usual(ledger: Ledger, listed: Sequence[Mapping[str, Any]]) -> int:
    """Return the time in ns in which a run usually recovers.

    One long outage among few is no measure, and after an hour people want to know whatever was
    usual. A restart takes at least what the run's first start took.
    """
    times = [
        one["recovered"] - one["opened"]
        for one in listed
        if one["recovered"] is not None and not is_planned(one)
    ]
    known = distribution(times)
    first = next((one for one in ledger.book.accounts if one.steps is not None), None)
    start = (
        0 if first is None or first.steps is None else int(first.steps.end[0]) - first.attempt.begin
    )
    high, middle = known["p95"] or 0, known["p50"] or 0
    if len(times) < _MANY:
        high = min(high, _OUTLYING * middle) if len(times) >= _FEW else 0
    return max(LEAST_TIME, start, min(high, HOUR))
