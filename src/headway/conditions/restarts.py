"""Conditions of a run that breaks: what repeats, what is left, how long it takes this time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headway.conditions.gauge import DAY, LEAST_TIME, Condition
from headway.events import LAYERS, RestartBudget
from headway.incidents.recovery import distribution
from headway.ledger import Ledger

_STARTING = 60 * 10**9
"""Time in ns within which the ranks of a layer begin that told of its restarts as it started."""


def conditions(ledger: Ledger, report: Mapping[str, Any]) -> Iterator[Condition]:
    """Yield what the incidents of a run say about it now."""
    now = ledger.closed_at
    listed = report["incidents"]
    opened = [one for one in listed if one["state"] == "open"]
    lately = [one for one in listed if one["opened"] > now - DAY]
    repeated = max((count for one in opened for count in one["persistent"].values()), default=0)
    without = report["attempts_without_durable_step"]
    yield "headway_attempts_without_durable_step", (), without
    yield "headway_repeated_failures", (), repeated
    for layer, remaining in _restarts_left(ledger).items():
        yield "headway_restarts_left", (layer,), remaining
    wrong = [one for one in lately if one["recovery_valid"]["valid"] == "no"]
    yield "headway_invalid_recoveries", (), len(wrong)
    alarms = [one for one in lately if one["suspected_false_alarm"]]
    yield "headway_suspected_false_alarms", (), len(alarms)
    yield "headway_recovery_time_ratio", (), _recovery(ledger, listed)
    for one in opened:
        labels = (one["incident"], one["cause"], one["suspect_node"], one["suspect_rank"])
        told = tuple("" if label is None else str(label) for label in labels)
        yield "headway_open_incident_gpu_seconds", told, one["lost_gpu_ns"] / 1e9


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

    An attempt that is alive and has completed a step ends it, be it for the moment.
    """
    opened = [one["opened"] for one in listed if one["state"] == "open"]
    accounts = ledger.book.accounts
    if not opened or any(
        ledger.is_alive(number) and account.steps is not None and account.attempt.begin > opened[-1]
        for number, account in enumerate(accounts)
    ):
        return 0.0
    done = (int(account.steps.end[-1]) for account in accounts if account.steps is not None)
    times = [one["recovered"] - one["opened"] for one in listed if one["recovered"] is not None]
    usual = max(LEAST_TIME, distribution(times)["p95"] or 0)
    since: int = max([opened[-1], *done])
    return (ledger.closed_at - since) / usual
