"""A training that breaks on one sample again and again, and what both engines tell of it.

A ticket that becomes a page under the same key, is escalated, silenced, taken and over.
"""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from alert_drill import PAGES, RUN, TOKEN, Course, drill
from alert_hearing import EVENTS, Taken, at, names
from alert_payloads import check_course, check_events, check_notice

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Let it happen once."""
    return drill(tmp_path_factory.mktemp("drill"))


def test_the_training_gives_up_and_is_mended(course: Course) -> None:
    assert course.exits[0] != 0
    assert course.exits[1] == 0
    assert course.checks == (1, 0), "`headway alerts check` says by its status whether a page fires"
    (incident,) = course.incidents
    assert incident["cause"] == "exception"
    assert incident["suspect_rank"] == 1
    assert incident["attempts"] == 3


def test_the_embedded_notifier_tells_a_ticket_that_becomes_a_page_and_is_over(
    course: Course,
) -> None:
    bodies = at("/hook", course.embedded)
    outside = "http://127.0.0.1:8752"
    key = bodies[0]["groupKey"]
    assert re.fullmatch("headway-[0-9a-f]{24}", key)
    for receiver, told in (("hook", bodies), ("lead", at("/lead", course.embedded))):
        for body in told:
            source = f"{outside}/alerts?rule="
            check_notice(course, body, receiver=receiver, key=key, outside=outside, source=source)
    check_course(bodies)
    check_events(at(EVENTS, course.embedded))


def test_alertmanager_tells_the_same(course: Course) -> None:
    bodies = at("/hook", course.standard)
    key = bodies[0]["groupKey"]
    assert key.endswith(f'{{subject="run {RUN}"}}')
    for body in bodies:
        outside, source = bodies[0]["externalURL"], "http://"
        check_notice(course, body, receiver="hook", key=key, outside=outside, source=source)
    check_course(bodies)
    check_events(at(EVENTS, course.standard))


@pytest.mark.parametrize("engine", ["embedded", "standard"])
def test_each_notice_carries_the_token_and_is_json(course: Course, engine: str) -> None:
    taken = course.embedded if engine == "embedded" else course.standard
    for path, headers, _ in taken:
        assert headers["Content-Type"] == "application/json"
        token = headers.get("Authorization")
        assert token == (f"Bearer {TOKEN}" if path == "/hook" else None)


def test_a_page_that_nobody_took_went_to_the_lead_once(course: Course) -> None:
    first, last = at("/lead", course.embedded)
    assert names(first) & PAGES
    assert last["status"] == "resolved"
    assert [one["why"] for one in course.log if one["receiver"] == "lead"] == [
        "it is over",
        "nobody acknowledged it in 3 s",
    ]


def test_while_it_was_silenced_nobody_was_told(course: Course) -> None:
    begin, end = course.silenced
    ours = [one for one in course.log if one["subject"] == f"run {RUN}"]
    assert [one for one in ours if begin < one["created"] <= end] == []
    listed = [one for one in course.suppressed if one["labels"].get("run") == RUN]
    assert {one["status"]["state"] for one in listed} == {"suppressed"}
    assert all(one["status"]["silencedBy"] for one in listed)
    # What Alertmanager was sending at that moment may still arrive.
    assert course.through_silence <= 2


def test_what_somebody_took_is_said_again_no_more_but_for_its_end(course: Course) -> None:
    ours = [one for one in course.log if one["subject"] == f"run {RUN}"]
    before = {one["why"] for one in ours if one["created"] <= course.acknowledged}
    assert "it still fires" in before
    after = [one for one in ours if one["created"] > course.acknowledged]
    assert {one["why"] for one in after} == {"it is over"}
    assert {one["state"] for one in ours} == {"delivered"}


def test_both_engines_say_the_same_of_each_alert(course: Course) -> None:
    def said_of(taken: Sequence[Taken]) -> dict[str, Any]:
        """Return of each rule the labels and what does not change while it fires."""
        return {
            one["labels"]["alertname"]: (
                one["labels"],
                {k: v for k, v in one["annotations"].items() if k not in ("summary", "stake")},
            )
            for body in at("/hook", taken)
            for one in body["alerts"]
            if one["status"] == "firing"
        }

    own, theirs = said_of(course.embedded), said_of(course.standard)
    for rule in ("RestartBudgetLow", *PAGES):
        assert own[rule] == theirs[rule]


def test_that_it_loops_is_hidden_while_its_fault_persists(course: Course) -> None:
    (loop,) = [one for one in course.state["alerts"] if one["rule"] == "RestartLoop"]
    assert (loop["state"], loop["hidden"]) == ("firing", "PersistentFault says more")
    (theirs,) = [one for one in course.suppressed if one["labels"]["alertname"] == "RestartLoop"]
    assert theirs["status"]["inhibitedBy"]
    for taken in (course.embedded, course.standard):
        for body in at("/hook", taken):
            assert not {"RestartLoop", "PersistentFault"} <= names(body)
