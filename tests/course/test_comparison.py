"""Two runs side by side."""

import pytest

from headway.course.comparison import Figure, Span, compared
from headway.ledger import ledger
from headway.metrics import CATEGORIES
from headway.report import report
from timeline import at, timeline


def of(text: str, as_of: float) -> dict[str, object]:
    return report(ledger(timeline(text), at(as_of)))


QUIET = """
    0       attempt A launcher world=1
    0-100   steps 1-100
    100     run_ended completed
"""
BROKEN = """
    0       attempt A launcher world=1
    0-100   steps 1-100
    100     fault exception
    110     launcher stop_workers
    120     exit code=1 by=itself
    150     attempt B launcher world=1
    150     resumed 0
    150-200 steps 1-50
    200     run_ended completed
"""


def figures(one: str, other: str) -> dict[str, Figure]:
    ends = {QUIET: 100, BROKEN: 200}
    return {item.name: item for item in compared(of(one, ends[one]), of(other, ends[other]))}


def test_figures_stand_side_by_side_with_their_difference() -> None:
    found = figures(QUIET, BROKEN)

    goodput = found["training_goodput"]
    assert (goodput.one, goodput.other) == (Span(low=1.0, high=1.0), Span(low=0.25, high=0.25))
    assert goodput.difference == Span(low=0.75, high=0.75)
    assert (goodput.unit, goodput.higher_is_better) == ("ratio", True)
    assert found["step_time"].difference == Span(low=0.0, high=0.0)
    assert found["steps_per_hour"].one.low == 3600.0
    assert found["rework"].difference == Span(low=-50, high=-50)
    assert found["elapsed"].difference == Span(low=-(10**11), high=-(10**11))
    assert found["incidents"].other.low == 1


def test_the_shares_of_all_categories_sum_to_the_whole() -> None:
    for one in ("one", "other"):
        shares = [
            getattr(item, one).low
            for name, item in figures(QUIET, BROKEN).items()
            if name.startswith("share:")
        ]
        assert len(shares) == len(CATEGORIES)
        assert sum(shares) == pytest.approx(1)


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ((5, 6), (1, 3), (2, 5)),
        ((1, 1), (1, 1), (0, 0)),
        ((None, None), (1, 1), (None, None)),
        ((1, 1), (None, None), (None, None)),
    ],
)
def test_the_difference_of_ranges_is_a_range(
    one: tuple[float, float], other: tuple[float, float], difference: tuple[float, float]
) -> None:
    found = Span(low=one[0], high=one[1]).minus(Span(low=other[0], high=other[1]))

    assert (found.low, found.high) == difference


def test_what_a_run_has_not_done_yet_is_unknown() -> None:
    begun = report(ledger(timeline("0 attempt A launcher world=1"), at(0)))

    found = {item.name: item for item in compared(begun, begun)}

    assert found["step_time"].one == Span(low=None, high=None)
    assert found["recovery"].difference == Span(low=None, high=None)
