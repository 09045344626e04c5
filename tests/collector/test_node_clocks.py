"""The clocks of nodes, from their stored events in any order."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from headway.collector.node_clocks import KEPT, NodeClock, NodeClocks
from headway.events import Clock, Envelope, Note
from records import ANCHOR, SECOND, record


def clock(second: int, offset: int, node: str = "n1", boot: str = "b1") -> Envelope:
    event = Clock(offset=offset * SECOND, error=5)
    return replace(record(second, event), node=node, boot_id=boot)


def note(second: int, node: str | None = "n1", boot: str = "b1") -> Envelope:
    return replace(record(second, Note(text="x")), node=node, boot_id=boot)


def current(*envelopes: Envelope, second: int = 100) -> list[tuple[str, int]]:
    clocks = NodeClocks()
    clocks.add(envelopes)
    found = clocks.current(ANCHOR + second * SECOND)
    return [(item.node, item.offset // SECOND) for item in found]


def test_the_newest_measurement_of_each_node_counts_in_any_order() -> None:
    events = [clock(1, 60), clock(5, 90), clock(3, 0), clock(2, -600, "n2"), note(9, None)]
    assert current(*events) == [("n1", 90), ("n2", -600)]
    assert current(*reversed(events)) == [("n1", 90), ("n2", -600)]


def test_a_new_boot_whose_clock_is_right_ends_the_old_ones_offset() -> None:
    assert current(clock(1, 60), note(2)) == [("n1", 60)]
    assert current(clock(1, 60), note(62, boot="b2")) == []
    assert current(note(62, boot="b2"), clock(1, 60)) == []
    assert current(clock(1, 60), clock(62, 5, boot="b2")) == [("n1", 5)]


def test_the_old_boot_is_the_newest_by_the_collectors_clock_not_by_its_own() -> None:
    assert current(clock(1, 60), note(30, boot="b2")) == [("n1", 60)]


def test_a_node_that_fell_silent_is_forgotten_after_a_day() -> None:
    day = KEPT // SECOND
    assert current(clock(1, 60), second=day + 60) == [("n1", 60)]
    assert current(clock(1, 60), second=day + 61) == []


def test_the_error_is_kept_beside_the_offset() -> None:
    clocks = NodeClocks()
    clocks.add([clock(1, 60)])
    assert clocks.current(ANCHOR) == [NodeClock(node="n1", offset=60 * SECOND, error=5)]


def test_the_newest_event_is_dated_by_the_collectors_clock() -> None:
    clocks = NodeClocks()
    assert clocks.newest() == 0
    clocks.add([note(1000), clock(1, -600), note(300, "n2")])
    assert clocks.newest() == ANCHOR + 400 * SECOND


@given(st.permutations([clock(1, 60), clock(4, 7), clock(4, 8), note(9), clock(2, 1, boot="b0")]))
def test_no_order_of_arrival_changes_what_is_shown(events: list[Envelope]) -> None:
    assert current(*events) == [("n1", 8)]
