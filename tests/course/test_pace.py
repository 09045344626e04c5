"""How fast a run trained, column by column."""

import math

import pytest

from headway.course.pace import Pace, pace
from headway.events import Steps, StepsSummary
from headway.ledger import Ledger, ledger
from headway.step_blocks import Step, pack
from timeline import Timeline, at, seconds, timeline


def read(text: str, as_of: float) -> Ledger:
    return ledger(timeline(text), at(as_of))


STOPPED = """
    0       attempt A launcher world=1
    0-40    steps 1-10 each=3 wait=1 loss=2
    40      fault exception
    41      launcher stop_workers
    42      exit code=1 by=itself
    80      attempt B launcher world=1
    80      resumed 8
    80-120  steps 9-18 each=3 wait=1 loss=2
    120     run_ended completed
"""


def test_columns_tell_step_time_wait_and_throughput_and_a_stop_is_no_slow_step() -> None:
    found = pace(read(STOPPED, 120), columns=3)

    assert [one.steps for one in found] == [10, 0, 10]
    assert [one.step for one in found] == [seconds(3), None, seconds(3)]
    # the wait before an attempt's first step belongs to its start
    assert [one.wait for one in found] == [seconds(0.9), None, seconds(0.9)]
    assert [one.steps_per_second for one in found] == [0.25, 0.0, 0.25]
    assert [one.loss for one in found] == [2 * (1 + 1 / 10), None, 2 * (1 + 1 / 18)]


def test_the_slowest_steps_are_told_beside_the_median() -> None:
    text = """
    0       attempt A launcher world=1
    0-95    steps 1-95
    95-107  steps 96-101
    107     run_ended completed
    """
    (one,) = pace(read(text, 107), columns=1)

    assert (one.steps, one.step, one.slowest) == (101, seconds(1), seconds(2))
    assert one.tail == seconds(2)


def of_losses(losses: list[float]) -> Pace:
    built = Timeline()
    events = timeline("0 attempt A launcher world=1")
    built.envelopes, built.attempt = events, "A"
    built._sequence[0] = len(events)
    steps = [Step(seconds(n), seconds(1), 0, loss) for n, loss in enumerate(losses)]
    event = Steps(first_step=1, version=1, packed=pack(steps))
    built.emit(seconds(len(losses)), event, count=len(losses))
    (found,) = pace(ledger(built.envelopes, at(len(losses))), columns=1)
    return found


@pytest.mark.parametrize(
    ("losses", "last", "unknown"),
    [
        ([3.0, 2.0, 1.0], 1.0, 0),
        ([3.0, math.nan, 1.0], 1.0, 1),
        ([3.0, 2.0, math.nan], 2.0, 1),
        ([3.0, math.inf, -math.inf], 3.0, 2),
        ([math.nan, math.nan], None, 0),
    ],
)
def test_a_loss_that_is_no_number_leaves_the_others_and_is_counted(
    losses: list[float], last: float | None, unknown: int
) -> None:
    found = of_losses(losses)

    assert found.loss == last
    assert found.unknown_losses == unknown
    assert found.steps == len(losses)


def test_of_a_summary_the_last_steps_loss_is_known() -> None:
    built = Timeline()
    built.envelopes = timeline("0 attempt A launcher world=1")
    built.attempt, built._sequence[0] = "A", len(built.envelopes)
    event = StepsSummary(first_step=1, num_steps=10, duration=seconds(10), loss=1.5)
    built.emit(seconds(10), event)

    (found,) = pace(ledger(built.envelopes, at(10)), columns=1)

    assert (found.steps, found.loss, found.unknown_losses) == (10, 1.5, 0)


@pytest.mark.parametrize("text", ["", "0 attempt A launcher world=1"])
def test_a_run_without_steps_has_columns_without_any(text: str) -> None:
    found = pace(read(text, 10), columns=2)

    assert [one.steps for one in found] == ([0, 0] if text else [])
