"""Rule 1 and 2: offsets of boots, the limits of what is credible, order and lateness."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.events import Clock, Envelope, Note
from headway.ledger import Ledger, Timeline, ledger
from timeline import EPOCH, SECOND, at, timeline

DAY = 86_400 * SECOND
AS_OF = at(500)
NOTE = Note(text="x")
BASE = timeline(
    """
    0        run_started llama
    0        allocation 8
    0        attempt A launcher world=8 rank=0..7
    0-100    steps 1-100 rank=0..7
    100      ended rank=0..7
    220      attempt B launcher world=8 rank=0..7
    222      resumed 100 rank=0..7
    222-322  steps 101-200 rank=0..7
    322      run_ended completed
    """
)
"""Two attempts on the nodes node-a (ranks 0-3) and node-b (ranks 4-7), whose clocks are right."""


def stray(time: int, producer: str = "stray", sequence: int = 0) -> Envelope:
    """Return an event at an absolute time."""
    return replace(
        BASE[0],
        producer=producer,
        first_sequence=sequence,
        last_sequence=sequence,
        attempt=None,
        rank=None,
        node="node-z",
        anchor=time,
        monotonic=0,
        event=NOTE,
    )


def clock(
    second: float, offset: float, *, node: str = "node-b", boot: str = "boot", sequence: int = 0
) -> Envelope:
    """Return a measurement that the node's agent recorded when its own clock showed `second`."""
    return replace(
        BASE[0],
        producer=f"agent of {node} {boot}",
        first_sequence=sequence,
        last_sequence=sequence,
        attempt=None,
        rank=None,
        node=node,
        boot_id=boot,
        monotonic=round(second * SECOND),
        event=Clock(offset=round(offset * SECOND), error=1_000_000),
    )


def behind(envelopes: list[Envelope], seconds: float, node: str = "node-b") -> list[Envelope]:
    """Return the envelopes as recorded where a node's clock is behind by some seconds."""
    return [
        replace(envelope, anchor=envelope.anchor - round(seconds * SECOND))
        if envelope.node == node
        else envelope
        for envelope in envelopes
    ]


def quarantined(found: Ledger) -> dict[str, int]:
    return {
        problem.detail: problem.count for problem in found.problems if problem.kind == "absurd_time"
    }


def same(found: Ledger, expected: Ledger) -> bool:
    return (found.start, found.end, found.state, found.intervals()) == (
        expected.start,
        expected.end,
        expected.state,
        expected.intervals(),
    )


@pytest.mark.parametrize(
    ("time", "count"),
    [
        (AS_OF + DAY, 0),
        (AS_OF + DAY + 1, 1),
        (EPOCH - 30 * DAY, 0),
        (EPOCH - 30 * DAY - 1, 1),
        (0, 1),
        (2**62, 1),
    ],
)
def test_the_limits_of_what_is_credible_hold_to_the_nanosecond(time: int, count: int) -> None:
    found = ledger([*BASE, stray(time)], AS_OF)
    assert sum(quarantined(found).values()) == count
    assert same(found, ledger(BASE, AS_OF))


def test_absurd_stamps_are_counted_by_producer() -> None:
    absurd = [stray(AS_OF + 2 * DAY, "one", number) for number in range(3)]
    found = ledger([*BASE, *absurd, stray(0, "two"), stray(at(50), "three")], AS_OF)
    assert quarantined(found) == {
        "stamps of producer one": 3,
        "stamps of producer two": 1,
    }


def test_without_a_recorded_start_only_the_future_is_absurd() -> None:
    events = [envelope for envelope in BASE if envelope.event.name != "run.started"]
    found = ledger([*events, stray(EPOCH - 31 * DAY)], AS_OF)
    assert quarantined(found) == {}


def test_what_was_too_early_to_be_credible_counts_once_its_time_has_come() -> None:
    ahead = stray(AS_OF + 2 * DAY)
    assert sum(quarantined(ledger([*BASE, ahead], AS_OF)).values()) == 1
    assert quarantined(ledger([*BASE, ahead], AS_OF + DAY)) == {}


def test_an_offset_is_added_before_a_stamp_is_judged() -> None:
    lost = 400 * 86_400
    events = behind(BASE, lost)
    assert quarantined(ledger(events, AS_OF))
    corrected = ledger([*events, *behind([clock(300, lost)], lost)], AS_OF)
    assert quarantined(corrected) == {}
    assert same(corrected, ledger(BASE, AS_OF))


@pytest.mark.parametrize("seconds", [60, -60, 600, -600, 0.001, -7200])
def test_an_offset_corrects_every_event_of_its_boot(seconds: float) -> None:
    events = behind(BASE, seconds)
    measured = behind([clock(300, seconds)], seconds)
    assert same(ledger([*events, *measured], AS_OF), ledger(BASE, AS_OF))
    if seconds >= 60:
        assert not same(ledger(events, AS_OF), ledger(BASE, AS_OF))


def test_an_offset_is_of_one_node_and_one_boot() -> None:
    others = [clock(300, 60, node="node-c"), clock(300, 60, boot="another")]
    assert same(ledger([*BASE, *others], AS_OF), ledger(BASE, AS_OF))


def test_the_latest_offset_known_counts_and_a_later_one_is_not_known_yet() -> None:
    one = behind([*BASE, clock(10, 5)], 60)
    two = [*one, *behind([clock(400, 60, sequence=1)], 60)]
    assert same(ledger(two, at(400)), ledger(BASE, at(400)))
    assert same(ledger(two, at(400) - 1), ledger(one, at(400) - 1))
    assert not same(ledger(two, at(400) - 1), ledger(BASE, at(400) - 1))


def test_a_node_ahead_is_known_as_soon_as_it_was_measured() -> None:
    """The measurement of a clock an hour ahead is stamped an hour ahead itself."""
    events = [*behind(BASE, -3600), *behind([clock(330, -3600)], -3600)]
    assert same(ledger(events, at(331)), ledger(BASE, at(331)))


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_late_and_reordered_events_and_offsets_change_nothing(chance: random.Random) -> None:
    first = [
        clock(150, 3, node="node-a"),
        clock(300, 60, node="node-a", sequence=1),
    ]
    second = [clock(120, -540), clock(310, -540, sequence=1)]
    events = [
        *behind(behind([*BASE, *first], 60, "node-a"), -540, "node-b"),
        *behind(second, -540),
        stray(0),
    ]
    expected = ledger(events, AS_OF)
    assert same(expected, ledger(BASE, AS_OF))
    arriving = [*events, *chance.sample(events, 5)]
    chance.shuffle(arriving)
    run = Timeline("run")
    while arriving:
        count = chance.randint(1, 8)
        run.add(arriving[:count])
        arriving = arriving[count:]
        run.ledger(chance.choice([AS_OF, at(250)]))
    found = run.ledger(AS_OF)
    assert same(found, expected)
    assert quarantined(found) == quarantined(expected) == {"stamps of producer stray": 1}
