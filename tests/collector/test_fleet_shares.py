"""What wide windows need of a run that is over is reckoned while its ledger is held."""

from collections.abc import Iterable

import pytest

from headway.collector.fleet_shares import SLOTS, FleetShares
from headway.collector.ledgers import Ledgers
from headway.collector.run_ledger import Snapshot
from headway.comparison.parts import Stretch
from headway.comparison.sides import side_of
from headway.events import Envelope, RunEnded, RunStarted
from headway.fleet import spans
from headway.fleet.spans import DAY, HOUR, Span
from headway.ledger import Ledger, pieces
from records import ANCHOR, SECOND, record, steps


def snapshot(told: Iterable[Envelope]) -> Snapshot:
    ledgers = Ledgers(lambda: ANCHOR + 100 * SECOND)
    ledgers.add([record(1, RunStarted(run_name="llama")), steps(2, 20), *told])
    return ledgers.snapshot("llama-1")


def never(_: int) -> Ledger:
    raise AssertionError("the ledger was read again")


def test_a_run_that_is_over_needs_no_ledger_for_wide_windows() -> None:
    shares, found = FleetShares(), snapshot([record(30, RunEnded(reason="completed"))])
    window = Span(ANCHOR - 7 * DAY, ANCHOR + 7 * DAY)
    expected = FleetShares()
    asked = [
        lambda known: known.share(found, window),
        lambda known: known.strip(found, window, SLOTS),
        *(
            lambda known, width=width: known.cells(found, window, width)
            for width in spans.WIDTHS
            if HOUR <= width <= DAY
        ),
    ]
    whole = [one(expected) for one in asked]
    shares.prepare(found)
    found.held, found.again = None, never
    assert [one(shares) for one in asked] == whole
    with pytest.raises(AssertionError, match="read again"):
        shares.share(found, Span(ANCHOR + 5 * SECOND, ANCHOR + DAY))


def test_a_run_that_is_over_is_compared_without_its_ledger() -> None:
    shares, found = FleetShares(), snapshot([record(30, RunEnded(reason="completed"))])
    shares.prepare(found)
    (period,) = shares.periods(found)
    stretch = Stretch(of=found, start=period.start, end=period.end)
    expected = side_of([stretch])
    found.held, found.again = None, never
    known = side_of([stretch] * 20, told=shares.part)
    assert (known.runs, known.steps) == (expected.runs, 20 * expected.steps)
    assert known.wall == {name: 20 * time for name, time in expected.wall.items()}
    elsewhere = [pieces.Span(period.end + 1, period.end + 2)]
    assert side_of([stretch] * 20, elsewhere, shares.part) == known
    with pytest.raises(AssertionError, match="read again"):
        side_of([stretch] * 20, [pieces.Span(period.start, period.start + SECOND)], shares.part)


def test_a_live_run_is_not_reckoned_before_anybody_asks() -> None:
    shares, found = FleetShares(), snapshot([])
    shares.prepare(found)
    found.held, found.again = None, never
    with pytest.raises(AssertionError, match="read again"):
        shares.share(found, Span(ANCHOR - DAY, ANCHOR + DAY))
