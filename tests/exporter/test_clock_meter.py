"""Offset and error by asking a clock over a line that takes its time."""

import threading
from collections.abc import Callable
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.exporter.node.clock_meter import RETRY, ClockMeter, Reading, measure
from otlp_endpoint import OtlpEndpoint, otlp_endpoint

SECOND = 10**9


class Line:
    """A collector `ahead` of this node's monotonic clock, over ways that take given times."""

    def __init__(self, ahead: int, ways: list[tuple[int, int]]) -> None:
        self.ahead = ahead
        self.ways = iter(ways)
        self.now = 1_000 * SECOND

    def monotonic(self) -> int:
        return self.now

    def ask(self) -> int:
        there, back = next(self.ways)
        self.now += there
        answer = self.now + self.ahead
        self.now += back
        return answer


def test_the_shortest_round_trip_wins() -> None:
    line = Line(600 * SECOND, [(900, 100), (30, 20), (4_000, 0)])
    assert measure(line.ask, line.monotonic, 3) == Reading(zero=600 * SECOND + 5, error=25)


@given(
    st.integers(-(10**18), 10**18),
    st.lists(st.tuples(st.integers(0, 10**10), st.integers(0, 10**10)), min_size=1, max_size=8),
)
def test_the_truth_lies_within_the_error(ahead: int, ways: list[tuple[int, int]]) -> None:
    line = Line(ahead, ways)
    reading = measure(line.ask, line.monotonic, len(ways))
    assert abs(reading.zero - ahead) <= reading.error
    assert reading.error == (min(there + back for there, back in ways) + 1) // 2


class Now:
    """A monotonic clock that moves when told to."""

    def __init__(self) -> None:
        self.now = 5 * SECOND

    def __call__(self) -> int:
        return self.now


def meter(endpoint: OtlpEndpoint, now: Callable[[], int], interval: float = 60.0) -> ClockMeter:
    return ClockMeter(endpoint=endpoint.address, token=None, interval=interval, monotonic=now)


def test_nothing_is_known_until_the_collector_answered_and_nobody_waits_for_it(
    endpoint: OtlpEndpoint,
) -> None:
    asked, answer = threading.Event(), threading.Event()

    def slow() -> int:
        asked.set()
        answer.wait(10)
        return 65 * SECOND

    endpoint.clock = slow
    with closing(meter(endpoint, Now())) as found:
        assert found.poll() is None
        assert asked.wait(10)
        assert found.poll() is None
        answer.set()
    assert found.poll() == Reading(zero=60 * SECOND, error=0)


def test_it_measures_again_after_the_interval_and_not_before(endpoint: OtlpEndpoint) -> None:
    now, answers = Now(), []

    def clock() -> int:
        answers.append(now.now)
        return now.now

    endpoint.clock = clock
    found = meter(endpoint, now)
    for moved in (0, 60 * SECOND - 1, 1):
        now.now += moved
        found.poll()
        found.close()
    assert sorted(set(answers)) == [5 * SECOND, 65 * SECOND]


def test_a_failure_is_tried_again_soon_said_once_and_the_last_reading_stays(
    endpoint: OtlpEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    now = Now()
    endpoint.clock = lambda: 65 * SECOND
    found = meter(endpoint, now)
    found.poll()
    found.close()
    endpoint.clock = lambda: None  # type: ignore[assignment,return-value]  # a defect over there
    for _ in range(3):
        now.now += 60 * SECOND
        found.poll()
        found.close()
    assert found.poll() == Reading(zero=60 * SECOND, error=0)
    endpoint.clock = lambda: 1_000 * SECOND
    now.now += round(RETRY * SECOND)
    found.poll()
    found.close()
    assert found.poll() == Reading(zero=1_000 * SECOND - now.now, error=0)
    assert caplog.text.count("cannot read the clock") == 1


def test_an_absent_collector_is_left_to_those_who_send_to_say(
    endpoint: OtlpEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    with otlp_endpoint() as gone:
        pass
    found = meter(gone, Now())
    found.poll()
    found.close()
    assert found.poll() is None
    assert caplog.records == []
