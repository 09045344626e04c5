"""Which notices go out as alerts of one subject come, go and come back."""

from collections.abc import Sequence

from headway.alerts.catalogue import RULES
from headway.alerts.evaluation import Sample, evaluate
from headway.alerts.notices import Group, Notice, Told, acknowledged, as_row, group_of, plan
from headway.alerts.site import Site, site

NOW = 1_790_000_000.0
SITE = site(
    """
    default = "hook"
    [receivers.hook]
    kind = "log"
    [receivers.boss]
    kind = "log"
    [[routes]]
    match = ['severity=~"page|ticket"']
    escalate_to = "boss"
    escalate_after = 600
    """
)


def told(rule: str, severity: str, ends_at: float | None = None, **labels: str) -> Told:
    known = {"alertname": rule, "run": "r", "subject": "run r", "severity": severity}
    return Told(labels=known | labels, annotations={}, starts_at=NOW, ends_at=ends_at)


def test_a_page_that_comes_back_while_a_ticket_stays_is_told_again() -> None:
    desk = Desk(SITE)
    ticket, page = told("SuspectedFalseAlarm", "ticket"), told("RestartLoop", "page")
    desk.see(0, ticket, page)
    assert desk.see(3, ticket, page) == [("hook", "firing", ["RestartLoop", "SuspectedFalseAlarm"])]
    desk.acknowledge()
    assert desk.see(600, ticket, told("RestartLoop", "page", NOW + 600)) == []
    assert desk.see(602, ticket) == []
    assert desk.see(3600, ticket, page) == [
        ("hook", "firing", ["RestartLoop", "SuspectedFalseAlarm"])
    ]
    assert desk.group.acknowledged_by is None, "whoever took the first page has not taken this one"


def test_a_page_that_is_over_does_not_go_further_up_for_the_ticket_that_stays() -> None:
    desk = Desk(SITE)
    ticket, page = told("SuspectedFalseAlarm", "ticket"), told("RestartLoop", "page")
    desk.see(0, ticket, page)
    desk.see(3, ticket, page)
    desk.see(400, ticket, told("RestartLoop", "page", NOW + 400))
    assert desk.see(2000, ticket) == []


def test_whatever_was_told_is_named_when_it_is_over_in_the_next_notice() -> None:
    desk = Desk(SITE)
    ticket, page = told("SuspectedFalseAlarm", "ticket"), told("RestartLoop", "page")
    desk.see(0, ticket, page)
    desk.see(3, ticket, page)
    desk.see(400, ticket, told("RestartLoop", "page", NOW + 400))
    desk.see(500, ticket)
    desk.see(600, told("SuspectedFalseAlarm", "ticket", NOW + 600))
    (last,) = desk.sent
    assert last.status == "resolved"
    assert [one.labels["alertname"] for one in last.resolved] == [
        "RestartLoop",
        "SuspectedFalseAlarm",
    ]


def test_a_cause_that_becomes_known_is_no_further_alert() -> None:
    desk = Desk(SITE)
    desk.see(0, told("RestartLoop", "page"))
    assert len(desk.see(3, told("RestartLoop", "page"))) == 1
    assert desk.see(100, told("RestartLoop", "page", cause="gpu_fault")) == []
    desk.see(200, told("RestartLoop", "page", NOW + 200))
    (last,) = desk.sent
    assert [one.labels["alertname"] for one in last.resolved] == ["RestartLoop"]


def test_a_layer_without_restarts_hides_that_it_had_few_and_nothing_of_another_layer() -> None:
    desk = Desk(SITE)
    alerts = (
        told("RestartBudgetExhausted", "page", layer="launcher"),
        told("RestartBudgetLow", "ticket", layer="launcher"),
        told("RestartBudgetLow", "ticket", layer="in_process"),
    )
    desk.see(0, *alerts)
    assert desk.see(3, *alerts) == [
        ("hook", "firing", ["RestartBudgetExhausted", "RestartBudgetLow"])
    ]
    assert [one.labels.get("layer") for one in desk.sent[0].firing] == ["launcher", "in_process"]


def test_a_clock_that_was_ahead_delays_no_notice_once_it_is_right() -> None:
    desk, ahead = Desk(SITE), 86_400.0
    page, more = told("RestartLoop", "page"), told("RunHung", "page")
    desk.see(ahead, page)
    desk.see(ahead + 3, page)
    assert desk.see(0, page, more) == []
    assert desk.see(60, page, more) == [("hook", "firing", ["RestartLoop", "RunHung"])]


def test_a_clock_that_was_ahead_keeps_no_alert_pending_or_firing_once_it_is_right() -> None:
    rule, ahead = RULES["GoodputBurnFast"], NOW + 86_400.0
    high = [Sample(metric=rule.metric, labels={"run": "r", "window": "1h"}, value=9)]
    alerts = evaluate([rule], high, {}, ahead)
    for seconds in (0, rule.hold):
        alerts = evaluate([rule], high, alerts, NOW + seconds)
    assert [one.state for one in alerts.values()] == ["firing"]
    alerts = evaluate([rule], [], alerts, ahead)
    for seconds in (0, rule.keep):
        alerts = evaluate([rule], [], alerts, NOW + seconds)
    assert [one.state for one in alerts.values()] == ["resolved"]


class Desk:
    """Groups from look to look, kept as the book keeps them."""

    def __init__(self, of: Site) -> None:
        self._site = of
        self._groups: dict[tuple[str, tuple[int, ...], str], Group] = {}
        self.sent: Sequence[Notice] = ()

    @property
    def group(self) -> Group:
        (found,) = self._groups.values()
        return found

    def acknowledge(self) -> None:
        self._groups = {key: acknowledged(one, "ada", NOW) for key, one in self._groups.items()}

    def see(self, seconds: float, *alerts: Told) -> list[tuple[str, str, list[str]]]:
        """Return receiver, status and rules of what is sent at a time."""
        found = plan(self._site, alerts, (), self._groups, NOW + seconds)
        kept = [group_of(as_row(one)) for one in found.groups]
        self._groups = {one.identity: one for one in kept}
        self.sent = found.notices
        return [
            (one.receiver, one.status, sorted(told.labels["alertname"] for told in one.firing))
            for one in found.notices
        ]
