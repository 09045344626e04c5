"""Which notices go out: alerts grouped by what they are about, each said once and kept up to date.

One group per way and subject, so that a run's alerts are one page however many rules and ranks
they come from. A group is told after its wait, told again when it changed, at once when it became
graver, after its repeat interval while nobody acknowledged it, and once when it is over. Silences,
inhibitions and maintenance keep alerts out of it; what they hide resolves like any other. Pure.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from headway.alerts.matching import Matcher, matching
from headway.alerts.routing import Way, ways
from headway.alerts.rule import SAME, SEVERITIES
from headway.alerts.site import Site

_GRAVITY: Mapping[str, int] = {name: depth for depth, name in enumerate(reversed([*SEVERITIES]))}
"""Severities, the greater the graver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An alert with its words, as receivers are told of it; times in seconds UTC."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    starts_at: float
    ends_at: float | None = None

    @property
    def fingerprint(self) -> str:
        """What identifies it among all alerts, in hex, also after its cause became known."""
        kept = sorted(item for item in self.labels.items() if item[0] != "cause")
        whole = "\0".join(f"{name}\0{value}" for name, value in kept)
        return hashlib.sha256(whole.encode()).hexdigest()[:16]

    @property
    def severity(self) -> str:
        """Its severity."""
        return self.labels["severity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Alerts that nobody is to hear of for a time; times in seconds UTC."""

    silence: str
    matchers: tuple[Matcher, ...]
    owner: str
    reason: str
    begins: float
    ends: float

    def hides(self, labels: Mapping[str, str], now: float) -> bool:
        """Return whether it keeps an alert quiet at a time."""
        return self.begins <= now < self.ends and matching(self.matchers, labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What a receiver was told about a subject; times in seconds UTC.

    `key` stays the same from the first notice to the last, so that a pager keeps one incident.
    """

    key: str
    receiver: str
    path: tuple[int, ...]
    subject: str
    opened_at: float
    told_at: float | None = None
    first_told_at: float | None = None
    told: tuple[str, ...] = ()
    over: tuple[Told, ...] = ()
    severity: str = "none"
    acknowledged_by: str | None = None
    acknowledged_at: float | None = None
    escalated_at: float | None = None
    escalated_to: str | None = None

    @property
    def identity(self) -> tuple[str, tuple[int, ...], str]:
        """Which group it is, however often it opens."""
        return self.receiver, self.path, self.subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One message for one receiver: what fires of a group now, and what of it is over.

    It keeps who had taken the group by then, since a group that is over is forgotten.
    """

    receiver: str
    key: str
    subject: str
    status: Literal["firing", "resolved"]
    severity: str
    why: str
    firing: tuple[Told, ...]
    resolved: tuple[Told, ...] = ()
    acknowledged_by: str | None = None
    acknowledged_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """An alert that fires and that nobody is told of, and why."""

    alert: Told
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be sent, what is hidden, and the groups as they are after that."""

    notices: tuple[Notice, ...]
    groups: tuple[Group, ...]
    hidden: tuple[Hidden, ...] = ()


Groups = Mapping[tuple[str, tuple[int, ...], str], Group]


@dataclass(slots=True)
class _Gathered:
    way: Way
    firing: list[Told] = field(default_factory=list)
    hidden: list[Told] = field(default_factory=list)
    over: list[Told] = field(default_factory=list)


def plan(
    site: Site, alerts: Sequence[Told], silences: Sequence[Silence], before: Groups, now: float
) -> Plan:
    """Return what to send at `now` (seconds UTC); `alerts` are those that fire or just resolved."""
    hidden = list(_hidden(site, alerts, silences, now))
    quiet = {one.alert.fingerprint for one in hidden}
    gathered: dict[tuple[str, tuple[int, ...], str], _Gathered] = {}
    for alert in alerts:
        for way in ways(site.root, alert.labels):
            identity = way.receiver, way.path, alert.labels["subject"]
            group = gathered.setdefault(identity, _Gathered(way))
            if alert.ends_at is not None:
                group.over.append(alert)
            elif alert.fingerprint in quiet or _is_muted(site, way, now):
                group.hidden.append(alert)
                if alert.fingerprint not in quiet:
                    hidden.append(Hidden(alert=alert, reason=f"maintenance {', '.join(way.mute)}"))
            else:
                group.firing.append(alert)
    notices: list[Notice] = []
    groups: list[Group] = []
    for identity in {**before, **gathered}:
        found = gathered.get(identity)
        known = before.get(identity)
        group_after, sent = _group(identity, found, known, now)
        notices += sent
        if group_after is not None:
            groups.append(group_after)
    return Plan(notices=tuple(notices), groups=tuple(groups), hidden=tuple(hidden))


def acknowledged(group: Group, by: str, now: float) -> Group:
    """Return a group after somebody took it: it is not repeated, and it does not escalate."""
    return replace(group, acknowledged_by=by, acknowledged_at=now)


def _hidden(
    site: Site, alerts: Sequence[Told], silences: Sequence[Silence], now: float
) -> Iterable[Hidden]:
    firing = [alert for alert in alerts if alert.ends_at is None]
    for alert in firing:
        silence = next((one for one in silences if one.hides(alert.labels, now)), None)
        if silence is not None:
            reason = f"silence {silence.silence} of {silence.owner}: {silence.reason}"
            yield Hidden(alert=alert, reason=reason)
            continue
        stronger = next((one for one in firing if _inhibits(site, one, alert)), None)
        if stronger is not None:
            yield Hidden(alert=alert, reason=f"{stronger.labels['alertname']} says more")


def _inhibits(site: Site, stronger: Told, weaker: Told) -> bool:
    rule = site.rules.get(stronger.labels["alertname"])
    if rule is None or weaker.labels["alertname"] not in rule.inhibits:
        return False
    return all(stronger.labels.get(one) == weaker.labels.get(one) for one in SAME)


def _is_muted(site: Site, way: Way, now: float) -> bool:
    moment = datetime.fromtimestamp(now, UTC)
    return any(site.maintenance[name].holds(moment) for name in way.mute)


def _group(
    identity: tuple[str, tuple[int, ...], str],
    found: _Gathered | None,
    known: Group | None,
    now: float,
) -> tuple[Group | None, list[Notice]]:
    # The gravest first: what a notice begins with is what people read.
    firing = sorted(
        found.firing if found else (), key=lambda one: _GRAVITY[one.severity], reverse=True
    )
    still = {one.fingerprint for one in (firing + found.hidden if found else [])}
    over = [] if known is None or found is None else _over(known, found)
    if found is None or not still:
        if known is None or known.first_told_at is None:
            return None, []
        readers = [known.receiver, *([known.escalated_to] if known.escalated_to else [])]
        return None, [
            _notice(replace(known, receiver=name), "resolved", "it is over", (), over)
            for name in readers
        ]
    if known is not None:
        known = _not_ahead(_less(known, found, over), now)
    if not firing:
        return known, []  # hidden: told of again when it is heard again, resolved when it is over
    group = known or _opened(identity, now)
    way = found.way
    severity = max((one.severity for one in firing), key=_GRAVITY.__getitem__)
    why = _why(group, way, firing, severity, now)
    notices = []
    if why is not None:
        told = tuple(sorted(one.fingerprint for one in firing))
        first = now if group.first_told_at is None else group.first_told_at
        graver = _GRAVITY[severity] > _GRAVITY[group.severity] and group.told_at is not None
        group = replace(
            group, told_at=now, first_told_at=first, told=told, over=(), severity=severity
        )
        if graver:  # whoever took the ticket, or the page before, has not taken this page
            group = replace(
                group,
                acknowledged_by=None,
                acknowledged_at=None,
                escalated_at=None,
                first_told_at=now,
            )
        notices.append(_notice(group, "firing", why, firing, over))
    if _escalates(group, way, now):
        group = replace(group, escalated_at=now, escalated_to=way.escalate_to)
        why = f"nobody acknowledged it in {way.escalate_after} s"
        further = replace(group, receiver=way.escalate_to or group.receiver)
        notices.append(_notice(further, "firing", why, firing, over))
    return group, notices


def _over(known: Group, found: _Gathered) -> list[Told]:
    """Return what a group's readers were told of and is over, but for what they were told of."""
    return [*known.over, *(one for one in found.over if one.fingerprint in known.told)]


def _less(known: Group, found: _Gathered, over: Sequence[Told]) -> Group:
    """Return a group without what is over, so that it is told of at once if it comes back.

    What is over is kept until the next notice names it.
    """
    ended = {one.fingerprint for one in over}
    left = [one for one in found.firing + found.hidden if one.fingerprint in known.told]
    told = tuple(one for one in known.told if one not in ended)
    severity = max((one.severity for one in left), key=_GRAVITY.__getitem__, default="none")
    return replace(
        known, told=told, over=tuple(over), severity=severity if ended else known.severity
    )


def _not_ahead(known: Group, now: float) -> Group:
    """Return a group as if nothing of it were still to come: the clock may have been ahead."""
    told, first = (
        None if time is None else min(time, now) for time in (known.told_at, known.first_told_at)
    )
    return replace(known, opened_at=min(known.opened_at, now), told_at=told, first_told_at=first)


def _opened(identity: tuple[str, tuple[int, ...], str], now: float) -> Group:
    receiver, path, subject = identity
    words = f"{receiver}\0{path}\0{subject}\0{now:.3f}"
    key = f"headway-{hashlib.sha256(words.encode()).hexdigest()[:24]}"
    return Group(key=key, receiver=receiver, path=path, subject=subject, opened_at=now)


def _why(group: Group, way: Way, firing: Sequence[Told], severity: str, now: float) -> str | None:
    """Return why a group is told of now, or None."""
    if group.told_at is None:
        return "it fires" if now - group.opened_at >= way.group_wait else None
    if _GRAVITY[severity] > _GRAVITY[group.severity]:
        return f"it became a {severity}"
    since = now - group.told_at
    if {one.fingerprint for one in firing} - set(group.told) and since >= way.group_interval:
        return "more of it fires"
    if since >= way.repeat_interval and group.acknowledged_at is None:
        return "it still fires"
    return None


def _escalates(group: Group, way: Way, now: float) -> bool:
    return (
        way.escalate_to is not None
        and way.escalate_after is not None
        and group.severity == "page"
        and group.first_told_at is not None
        and group.acknowledged_at is None
        and group.escalated_at is None
        and now - group.first_told_at >= way.escalate_after
    )


def _notice(
    group: Group,
    status: Literal["firing", "resolved"],
    why: str,
    firing: Sequence[Told],
    resolved: Sequence[Told],
) -> Notice:
    return Notice(
        receiver=group.receiver,
        key=group.key,
        subject=group.subject,
        status=status,
        severity=group.severity,
        why=why,
        firing=tuple(firing),
        resolved=tuple(resolved),
        acknowledged_by=group.acknowledged_by,
        acknowledged_at=group.acknowledged_at,
    )


def as_row(group: Group) -> dict[str, Any]:
    """Return a group as plain values, to be kept."""
    return asdict(group)


def group_of(row: Mapping[str, Any]) -> Group:
    """Return a group from what was kept of it."""
    over = tuple(Told(**one) for one in row.get("over", ()))
    return Group(**{**row, "path": tuple(row["path"]), "told": tuple(row["told"]), "over": over})
