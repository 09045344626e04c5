"""Alerting as people see it: what fires and why, whom it reached, silences, a trial.

Answers are plain values, times in seconds UTC.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from headway.alerts.engine import Engine
from headway.alerts.evaluation import Alert, values
from headway.alerts.handover import AGAIN, Handover
from headway.alerts.matching import matcher
from headway.alerts.notice_log import NoticeLog
from headway.alerts.notices import Notice, Told
from headway.alerts.routing import Route, Way, ways
from headway.alerts.rule import Rule
from headway.alerts.site import Site
from headway.alerts.texts import condition
from headway.storage.alert_book import AlertBook
from headway.wording import counted, duration

_SECOND = 10**9
_TRIAL = "HeadwayTest"


class Desk:
    """Where the API asks and orders; the engine does the work."""

    def __init__(
        self, engine: Engine, book: AlertBook, site: Site, clock: Callable[[], float]
    ) -> None:
        """Sit before an engine and its book; `clock` gives seconds UTC."""
        self._engine, self._book, self._site, self._clock = engine, book, site, clock
        self._log = NoticeLog(book)

    def start(self) -> None:
        """Begin to work."""
        self._engine.start()

    def stop(self) -> None:
        """End; what was decided is written down."""
        self._engine.stop()
        self._book.close()

    def look(self) -> None:
        """Look now, beside the looks at their interval."""
        self._engine.turn()

    def state(self) -> dict[str, Any]:
        """Return what fires, is pending or hidden, and what was told of it."""
        current = self._engine.current()
        hidden = {one.alert.fingerprint: one.reason for one in current.hidden}
        listed = [
            _alert(alert, told, self._site.rules[alert.rule], hidden.get(told.fingerprint))
            for alert, told in current.alerts
        ]
        handed = self._engine.handover
        return {
            "looked_at": current.looked_at,
            "alertmanager": None
            if handed is None
            else {"address": handed.shown, "failure": handed.failure},
            "undelivered": [_undelivered(row, self._clock()) for row in self._book.undelivered()],
            "alerts": sorted(listed, key=lambda one: (one["state"] != "firing", -one["since"])),
            "groups": [
                {
                    "key": group.key,
                    "receiver": group.receiver,
                    "subject": group.subject,
                    "severity": group.severity,
                    "opened": group.opened_at,
                    "told": group.told_at,
                    "acknowledged_by": group.acknowledged_by,
                    "acknowledged_at": group.acknowledged_at,
                    "escalated_to": group.escalated_to,
                }
                for group in current.groups
            ],
        }

    def rules(self) -> list[dict[str, Any]]:
        """Return the rules as the site has them."""
        return [_rule(rule) for rule in self._site.rules.values()]

    def values(self, rule: str) -> list[dict[str, Any]] | None:
        """Return what a rule compares now, of each series that there is; None if it is none."""
        known = self._site.rules.get(rule)
        if known is None:
            return None
        found = values(known, self._engine.current().samples)
        return [
            {"labels": dict(labels), "value": value, "holds": known.holds(value)}
            for labels, value in sorted(found.items())
        ]

    def route(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return whom an alert with these labels would reach, and why."""
        if self._engine.handover is not None:
            return [_elsewhere(self._engine.handover)]
        return [self._way(one) for one in ways(self._site.root, labels)]

    def silences(self) -> list[dict[str, Any]]:
        """Return every silence, the newest first."""
        now = self._clock()
        return [{**row, "state": _phase(row, now)} for row in self._book.silences()]

    def silence(
        self, matchers: Sequence[str], owner: str, reason: str, begins: float | None, ends: float
    ) -> dict[str, Any]:
        """Keep alerts quiet for a time.

        Raises:
            ValueError: a matcher that is none, no matcher, a time that has passed, or an
                Alertmanager that decides.
        """
        handover = self._engine.handover
        if handover is not None:
            raise ValueError(
                f"Alertmanager at {handover.shown} decides who is told, and knows no silence of "
                f"ours; use amtool silence add --alertmanager.url={handover.shown}"
            )
        now = self._clock()
        begins = now if begins is None else begins
        if ends <= max(now, begins):
            moment = datetime.fromtimestamp(ends, UTC).isoformat(timespec="seconds")
            raise ValueError(f"a silence until {moment} is over before it begins; give a later end")
        if not matchers:
            raise ValueError("a silence without matchers would hide every alert; name some")
        if not owner or not reason:
            raise ValueError("a silence needs an owner and a reason, for whoever wonders at night")
        words = [str(matcher(one)) for one in matchers]
        row = {
            "matchers": words,
            "owner": owner,
            "reason": reason,
            "begins": begins,
            "ends": ends,
        }
        return {**row, "silence": self._book.silence(row), "state": _phase(row, now)}

    def end_silence(self, silence: int) -> bool:
        """End a silence now; return whether there is one of this number."""
        return self._book.end_silence(silence, self._clock())

    def acknowledge(self, key: str, by: str) -> bool:
        """Let somebody take what was told under a key; return whether it still fires."""
        return self._engine.acknowledge(key, by) is not None

    def deliveries(self, limit: int, before: int | None) -> list[dict[str, Any]]:
        """Return the newest notices with what became of each."""
        return self._log.newest(limit, before)

    def told(self, subjects: Sequence[str], since: float, until: float) -> list[dict[str, Any]]:
        """Return the notices about subjects between two times, and who took what they tell."""
        return self._log.told(subjects, since, until)

    def waits(self) -> dict[str, float]:
        """Return for how long each receiver has not taken the oldest notice for it, in seconds."""
        now = self._clock()
        waits = dict.fromkeys(self._site.receivers, 0.0)
        waits |= {one["receiver"]: max(0.0, now - one["since"]) for one in self._book.undelivered()}
        return waits

    def failure(self) -> str | None:
        """Return why what alerting keeps could not be read or written, None where it could."""
        return self._engine.failure

    def test(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """Send a notice that says that it is a test, to whom labels lead; return these.

        Raises:
            ValueError: an Alertmanager that does not take it.
        """
        now = self._clock()
        known = {"severity": "info", "subject": "test", "area": "headway", **labels}
        told = Told(
            labels={**known, "alertname": _TRIAL},
            annotations={"summary": "A test of Headway's alerts: nothing is wrong"},
            starts_at=now,
        )
        handover = self._engine.handover
        if handover is not None:
            failure = handover.test(told, now)
            if failure is not None:
                raise ValueError(failure)
            return [_elsewhere(handover)]
        found = ways(self._site.root, told.labels)
        for number, way in enumerate(found):
            notice = Notice(
                receiver=way.receiver,
                key=f"headway-test-{now:.3f}-{number}",
                subject=known["subject"],
                status="firing",
                severity=known["severity"],
                why="somebody tests the way",
                firing=(told,),
            )
            over = replace(notice, status="resolved", firing=(), resolved=(_ended(told, now),))
            self._engine.post([notice, over])
        return [self._way(one) for one in found]

    def _way(self, way: Way) -> dict[str, Any]:
        moment = datetime.fromtimestamp(self._clock(), UTC)
        return {
            "receiver": way.receiver,
            "kind": self._site.receivers[way.receiver].kind,
            "because": _because(self._site.root, way),
            "repeat_s": way.repeat_interval,
            "escalate_to": way.escalate_to,
            "escalate_after_s": way.escalate_after,
            "muted": any(self._site.maintenance[name].holds(moment) for name in way.mute),
        }


def _elsewhere(handover: Handover) -> dict[str, Any]:
    """Return the way of every alert while an Alertmanager decides who is told."""
    return {
        "receiver": handover.shown,
        "kind": "alertmanager",
        "because": "alerts are handed over to it, and its own routes count",
        "repeat_s": round(AGAIN),
        "escalate_to": None,
        "escalate_after_s": None,
        "muted": False,
    }


def _because(root: Route, way: Way) -> str:
    """Return the matchers that lead to a receiver, in words."""
    if way.is_default:
        return "no route takes it, so the default receiver has it"
    words, routes = [], root.routes
    for position in way.path:
        route = routes[position]
        words += [str(one) for one in route.matchers]
        routes = route.routes
    return " and ".join(words)


def _alert(alert: Alert, told: Told, rule: Rule, hidden: str | None) -> dict[str, Any]:
    pending = alert.state == "pending"
    return {
        "rule": alert.rule,
        "state": alert.state,
        "value": alert.value,
        "condition": condition(rule),
        "labels": dict(told.labels),
        "annotations": dict(told.annotations),
        "since": alert.active_at,
        "fired": alert.fired_at,
        "hidden": hidden,
        "fires_at": alert.active_at + rule.hold if pending else None,
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "rule": rule.name,
        "condition": condition(rule),
        "severity": rule.severity,
        "area": rule.area,
        "hold_s": rule.hold,
        "keep_s": rule.keep,
        "meaning": rule.meaning,
        "change": rule.change,
        "look": list(rule.look),
        "act": list(rule.act),
        "inhibits": list(rule.inhibits),
    }


def _phase(row: Mapping[str, Any], now: float) -> str:
    if now < row["begins"]:
        return "pending"
    return "active" if now < row["ends"] else "over"


def _ended(told: Told, now: float) -> Told:
    return replace(told, ends_at=now)


def _undelivered(row: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Return a receiver that has not taken notices, with words for people."""
    verb = "refuses" if row["state"] == "refused" else "has not taken"
    age = duration(round(max(0.0, now - row["since"])) * _SECOND)
    words = f"receiver {row['receiver']} {verb} {counted(row['notices'], 'notice')} for {age}"
    return {**row, "words": words + (f": {row['answer']}" if row["answer"] else "")}
