"""What must hold of the incidents of any run, tried on made-up ones."""

import random

import pytest

from headway.incidents import Incident, incidents
from headway.ledger import Ledger, ledger
from headway.report import report
from oracle.random_timelines import random_as_of, random_run

RUNS = 150


def read(seed: int) -> Ledger:
    events = random_run(seed)
    return ledger(events, random_as_of(seed, events))


@pytest.mark.parametrize("seed", range(RUNS))
def test_incidents_are_in_order_and_share_no_attempt_to_recover(seed: int) -> None:
    book = read(seed)
    found = incidents(book)
    tried = [one.attempt for incident in found for one in incident.tries]
    assert tried == [attempt.identity for attempt in book.book.attempts[1:]][: len(tried)]
    assert len({incident.incident for incident in found}) == len(found)
    for incident in found:
        check_times(incident, book)
    assert report(book)["recovery"]["all"]["incidents"] == len(found)


def check_times(incident: Incident, book: Ledger) -> None:
    assert book.start <= incident.opened <= book.closed_at
    assert (incident.closed is not None) == incident.outcome.startswith(("held", "escalated"))
    assert all(0 <= amount <= book.elapsed for amount in incident.phases.values())
    if incident.tries:
        for name, amount in incident.phases.items():
            assert amount == sum(one.phases[name] for one in incident.tries)
    if incident.recovered is None:
        assert incident.caught_up is None
        return
    assert incident.opened <= incident.recovered
    held = next(a for a in book.book.accounts if a.attempt.identity == incident.attempts[-1])
    assert held.steps is not None
    begun = int(held.steps.begin[0])
    outage = sum(ns for name, ns in incident.phases.items() if name != "recompute")
    assert outage <= max(begun - incident.opened, 0)
    if incident.caught_up is not None:
        assert incident.recovered <= incident.caught_up
    if incident.closed is not None:
        assert begun <= incident.closed


@pytest.mark.parametrize("seed", range(20))
def test_the_order_in_which_events_arrive_changes_nothing(seed: int) -> None:
    events = random_run(seed)
    until = random_as_of(seed, events)
    first = incidents(ledger(events, until))
    random.Random(seed).shuffle(events)  # noqa: S311  # no secret
    assert incidents(ledger([*events, *events[::3]], until)) == first
