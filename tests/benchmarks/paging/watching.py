"""What Headway tells people about one simulated run: its real conditions, rules and groups.

The embedded engine looks every 2 s; here it looks where something can have changed. Between two
events every condition but the shares of sliding windows only grows with time or is constant, and a
window's share moves no faster than time over its length. So a look follows at once each event that
may raise a condition. Looks are a minute apart while a run that stands still comes near to being
called hung or not recovered, ten minutes for an hour after such an event and while an alert is
pending or a sliding window near its threshold, and two hours otherwise. No firing is lost that
lasts. Delays are exact for events, to a minute for what stands still, to ten for sliding windows,
and to two hours for what gets worse in a run that goes on: tickets, and starving of data.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from benchmarks.paging.feeding import Feed
from headway.alerts.catalogue import RULES
from headway.alerts.evaluation import Alerts, Sample, evaluate
from headway.alerts.notices import Group, Notice, plan
from headway.alerts.rule import Rule
from headway.alerts.site import DEFAULT, Site
from headway.alerts.sounding import sounding
from headway.conditions import conditions
from headway.incidents import incidents
from headway.ledger import Ledger, Timeline
from headway.metrics import METRICS
from headway.report import watched
from headway.settings import GOODPUT_TARGET
from headway.simulate.month import MonthRun

_SECOND = 10**9
_MINUTE = 60 * _SECOND
_HOUR = 60 * _MINUTE
_SELDOM = 2 * _HOUR
_NEAR = 0.7
"""Share of its threshold from which a condition that time moves is watched closely."""
_MOVING = (
    "headway_progress_silence_ratio",
    "headway_recovery_time_ratio",
    "headway_checkpoint_interval_ratio",
    "headway_window_goodput_gap_ratio",
    "headway_window_infrastructure_loss_ratio",
    "headway_goodput_burn_ratio",
)
"""Conditions that time alone moves."""
_GROWING = {"headway_progress_silence_ratio", "headway_recovery_time_ratio"}
"""Those of them that wake people at their threshold; beyond it nothing more is to be seen."""


@dataclass(slots=True, kw_only=True)
class Told:
    """What a receiver was told under one key; times in ns since the run began.

    `rules` has for each rule of this severity when it was first told of, `beside` for each other;
    what was told under the key already, as of a ticket that is left of a page, is in neither.
    `end` is None while it goes on.
    """

    severity: str
    begin: int
    rules: dict[str, int]
    beside: dict[str, int] = field(default_factory=dict)
    end: int | None = None
    suspect: str = ""


OF_RUNS = [rule for rule in RULES.values() if "run" in rule.labels]
"""Rules about runs; those about the collector itself and its nodes see no month."""


def site_of(rules: Mapping[str, Rule]) -> Site:
    """Return a site with rules that tells at the look that decides."""
    return replace(DEFAULT, rules=rules, root=replace(DEFAULT.root, group_wait=0))


class Look(NamedTuple):
    """What was published about a run at a time in UTC ns."""

    time: int
    samples: tuple[Sample, ...]


def looks(run: MonthRun) -> list[Look]:
    """Return what is published about a run, at the times at which that may have changed."""
    simulated = run.simulated
    feed, timeline = Feed(simulated.events), Timeline(simulated.run)
    alerts: Alerts = {}
    found = []
    now: int | None = simulated.events[0].wall + 1
    while now is not None:
        timeline.add(feed.until(now))
        samples = tuple(_samples(timeline.ledger(now)))
        found.append(Look(now, samples))
        alerts = evaluate(OF_RUNS, samples, alerts, now / _SECOND)
        now = _next(now, feed, samples, alerts, simulated.end)
    return found


def told(seen: Sequence[Look], site: Site) -> list[Told]:
    """Return all that people are told of a run, in order of time."""
    rules = [rule for rule in site.rules.values() if "run" in rule.labels]
    alerts: Alerts = {}
    groups: tuple[Group, ...] = ()
    pager = _Pager(seen[0].time)
    for now, samples in seen:
        seconds = now / _SECOND
        alerts = evaluate(rules, samples, alerts, seconds)
        if not alerts and not groups:
            continue
        words = sounding(alerts.values(), site.rules, samples, "")
        loud = [told for alert, told in words if alert.state != "pending"]
        decided = plan(site, loud, (), {one.identity: one for one in groups}, seconds)
        groups = decided.groups
        for notice in decided.notices:
            pager.take(notice, now)
        pager.less({one.key: one.severity for one in groups}, now)
    return pager.told


def _samples(ledger: Ledger) -> Iterator[Sample]:
    seen = watched(ledger, incidents(ledger))
    for name, labels, value in conditions(ledger, seen, GOODPUT_TARGET):
        names = METRICS[name].labels
        yield Sample(
            metric=name, labels=dict(zip(names, (ledger.run, *labels), strict=True)), value=value
        )


def _next(
    now: int,
    feed: Feed,
    samples: Sequence[Sample],
    alerts: Alerts,
    end: int,
) -> int | None:
    """Return when to look next, None after the run's end and what followed it."""
    if now > end:
        return None if not alerts else now + 5 * _MINUTE
    moves = any(one.state == "pending" or one.absent_since is not None for one in alerts.values())
    silent, quiet = now - feed.stepped, now - feed.telling_before(now)
    near = _near(samples)
    if near & _GROWING:
        after = _MINUTE
    elif quiet < _HOUR or silent > 2 * _MINUTE or moves or near:
        after = 10 * _MINUTE
    else:
        after = _SELDOM
    due = [now + after, end + _SECOND]
    other = feed.telling_after(now)
    due += [] if other is None else [other + _SECOND]
    due += [
        round((alert.active_at + rule.hold) * _SECOND)
        for rule in OF_RUNS
        for alert in alerts.values()
        if alert.rule == rule.name and alert.state == "pending"
    ]
    return max(min(due), now + _SECOND)


def _near(samples: Sequence[Sample]) -> set[str]:
    """Return the conditions that time alone moves and that come near the thresholds of rules."""
    return {
        one.metric
        for one in samples
        for rule in OF_RUNS
        if rule.metric == one.metric and one.metric in _MOVING
        if all(one.labels.get(name) == value for name, value in rule.only.items())
        if _NEAR * rule.threshold < one.value
        and not (one.metric in _GROWING and rule.holds(one.value))
    }


class _Pager:
    """Keeps what each notice adds."""

    def __init__(self, begin: int) -> None:
        self._begin = begin
        self._open: dict[str, Told] = {}
        self._said: dict[str, set[tuple[str, float]]] = {}
        self.told: list[Told] = []

    def take(self, notice: Notice, now: int) -> None:
        """Take in a notice at a time in UTC ns."""
        time = now - self._begin
        known = self._open.get(notice.key)
        if notice.status == "resolved":
            return
        said = self._said.get(notice.key, set())
        self._said[notice.key] = {(one.fingerprint, one.starts_at) for one in notice.firing}
        if known is None or known.severity != notice.severity:
            if known is not None:
                known.end = time
            known = Told(severity=notice.severity, begin=time, rules={})
            self._open[notice.key] = known
            self.told.append(known)
        for one in notice.firing:
            rule = one.labels["alertname"]
            is_known = rule in known.rules or rule in known.beside
            if not is_known and (one.fingerprint, one.starts_at) in said:
                continue  # it was told of before the notice became a graver or a lesser one
            kept = known.rules if one.severity == known.severity else known.beside
            kept.setdefault(rule, time)
            known.suspect = one.annotations.get("suspect", "") or known.suspect

    def less(self, severities: Mapping[str, str], now: int) -> None:
        """End what fires no more, or no more as gravely; `severities` are those of open groups."""
        self._said = {key: said for key, said in self._said.items() if key in severities}
        for key, known in list(self._open.items()):
            if severities.get(key) != known.severity:
                known.end = now - self._begin
                del self._open[key]
