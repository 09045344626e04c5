"""Steps of a producer's wall clock, which no event time follows."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.clocks import FAR_OFF, STEP, ClockStep, clock_problems, clock_steps
from headway.events import Clock, Envelope, Note
from headway.ledger import ledger
from records import ANCHOR, PRODUCER, SECOND, record, steps
from timeline import at, timeline

MILLISECOND = 10**6


def told(second: int, ahead: int, producer: str = PRODUCER) -> Envelope:
    """Return a record whose wall clock is ahead of anchor and monotonic clock by so many ns."""
    envelope = record(second, Note(text="x"), producer=producer)
    return replace(envelope, wall=envelope.wall + ahead)


def step(second: int, jump: int, producer: str = PRODUCER) -> ClockStep:
    return ClockStep(producer=producer, node="n1", at=ANCHOR + second * SECOND, jump=jump)


@pytest.mark.parametrize(
    ("ahead", "found"),
    [
        ([], []),
        ([5, -3, 2], []),
        ([STEP], []),
        ([STEP + 1], [(1, STEP + 1)]),
        ([-STEP], []),
        ([-STEP - 1], [(1, -STEP - 1)]),
        ([7, 600 * SECOND, 600 * SECOND + 3], [(2, 600 * SECOND - 7)]),
        ([7, 600 * SECOND, 9], [(2, 600 * SECOND - 7), (3, 9 - 600 * SECOND)]),
        # A clock that is slewed by less than the limit between two records is no step.
        ([900 * MILLISECOND, 1800 * MILLISECOND, 2700 * MILLISECOND], []),
    ],
)
def test_a_step_is_a_jump_between_two_records(
    ahead: list[int], found: list[tuple[int, int]]
) -> None:
    records = [told(second, value) for second, value in enumerate(ahead, start=1)]
    assert clock_steps(records) == [step(second, jump) for second, jump in found]


def test_times_that_nobody_read_from_a_wall_clock_show_nothing() -> None:
    records = [
        told(1, 60 * SECOND),
        steps(2, 5),
        told(6, 60 * SECOND + 1),
        record(7, Note(text="x")),
    ]
    assert clock_steps(records) == [step(1, 60 * SECOND)]


def test_each_producer_has_a_clock_of_its_own() -> None:
    other = "cd" * 16
    records = [told(1, 5), told(1, 600 * SECOND, other), told(2, 6), told(2, 600 * SECOND, other)]
    assert clock_steps(records) == [step(1, 600 * SECOND, other)]


@given(
    st.lists(st.integers(-3 * SECOND, 3 * SECOND).filter(bool), max_size=20),
    st.randoms(use_true_random=False),
)
def test_order_and_repetition_change_nothing_and_the_jumps_add_up(ahead, chance) -> None:
    records = [told(second, value) for second, value in enumerate(ahead, start=1)]
    found = clock_steps(records)
    shuffled = [*records, *records[:3]]
    chance.shuffle(shuffled)
    assert clock_steps(shuffled) == found
    assert all(abs(item.jump) > STEP for item in found)
    jumps = [value - before for before, value in zip([0, *ahead], ahead, strict=False)]
    assert [item.jump for item in found] == [jump for jump in jumps if abs(jump) > STEP]


@given(st.lists(st.integers(-(10**18), 10**18), min_size=9, max_size=9))
def test_no_step_of_the_wall_clock_moves_a_ledger(ahead: list[int]) -> None:
    events = timeline(
        """
        0        run_started llama
        0        attempt A
        0-50     steps 1-50
        50       scheduled c50 50
        51       finalized c50 50
        51-60    steps 51-59
        60       fault exception
        60       ended
        90       run_ended failed
        """
    )
    stepped = [
        replace(envelope, wall=max(envelope.wall + jump, 0))
        for envelope, jump in zip(events, ahead, strict=True)
    ]
    before, after = ledger(events, at(100)), ledger(stepped, at(100))
    assert after.intervals() == before.intervals()
    assert after.problems == before.problems


def measured(second: int, offset: int, node: str | None = "n1", boot: str = "b1") -> Envelope:
    """Return a measurement of a node's clock, recorded by its agent."""
    envelope = record(second, Clock(offset=offset), producer=f"{node} {boot}")
    return replace(envelope, node=node, boot_id=boot)


def sentences(*envelopes: Envelope) -> list[str]:
    return [problem.detail for problem in clock_problems(envelopes)]


def test_a_clock_over_a_second_off_is_a_problem_and_the_latest_measurement_counts() -> None:
    assert sentences(measured(1, FAR_OFF), measured(1, -FAR_OFF, "n2")) == []
    assert sentences(measured(2, 0), measured(1, 60 * SECOND)) == []
    assert sentences(
        measured(2, 60 * SECOND), measured(1, 0), measured(3, -FAR_OFF - MILLISECOND, "n2")
    ) == [
        "clock of node n1 is 60.000 s behind the collector's; its events are corrected",
        "clock of node n2 is 1.001 s ahead of the collector's; its events are corrected",
    ]


def test_each_boot_has_its_own_offset_and_a_nameless_node_is_called_unknown() -> None:
    assert len(sentences(measured(1, 60 * SECOND), measured(1, 9 * SECOND, boot="b2"))) == 2
    assert sentences(measured(1, 60 * SECOND, None))[0].startswith("clock of node unknown is")


def test_the_steps_of_one_node_are_one_problem() -> None:
    other = "cd" * 16
    problems = clock_problems(
        [told(1, 600 * SECOND), told(1, 599 * SECOND, other), told(2, 2 * SECOND, other)]
    )
    assert [(problem.kind, problem.count) for problem in problems] == [("clock_step", 3)]
    assert problems[0].detail == "wall clock of node n1 was set by +600.000 s; no event is moved"
