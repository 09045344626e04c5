"""What a rank tells of a time before its attempt began is clipped, by both ledgers alike."""

import pytest

from headway.events import AttemptStarted, Envelope, StepsSummary
from headway.ledger import ledger
from oracle.comparison import disagreements

SECOND = 10**9
DAY = 1_750_000_000 * SECOND


def told(attempt, sequence, second, record):
    return Envelope(
        producer=attempt * 32,
        anchor=0,
        first_sequence=sequence,
        last_sequence=sequence,
        run="run",
        attempt=attempt,
        rank=0,
        node=None,
        wall=DAY + second * SECOND,
        monotonic=DAY + second * SECOND,
        event=record,
    )


def started(attempt, second):
    return told(attempt, 0, second, AttemptStarted(layer="scheduler"))


def steps(attempt, sequence, end, first, lasted):
    record = StepsSummary(first_step=first, num_steps=10, duration=lasted * SECOND)
    return told(attempt, sequence, end, record)


@pytest.mark.parametrize(
    ("early", "expected"),
    [
        # within the attempt before it, across its own begin, across both
        ([steps("b", 1, 190, 11, 30)], {"productive": 151, "down": 100, "unattributed": 59}),
        ([steps("b", 1, 260, 11, 100)], {"productive": 210, "down": 100}),
        ([steps("b", 1, 150, 11, 100)], {"productive": 151, "down": 100, "unattributed": 59}),
    ],
)
def test_steps_of_before_the_attempt_take_no_time_of_what_came_before(early, expected):
    events = [
        started("a", 0),
        steps("a", 1, 100, 1, 100),
        started("b", 200),
        *early,
        steps("b", 2, 310, 21, 50),
    ]
    as_of = DAY + 310 * SECOND

    found = ledger(events, as_of)

    assert sum(found.categories.values()) == found.elapsed == 310 * SECOND
    spent = {name: time / SECOND for name, time in found.categories.items() if time}
    assert spent == pytest.approx(expected)
    assert found.steps.executed == 30
    assert disagreements(events, as_of) == []
