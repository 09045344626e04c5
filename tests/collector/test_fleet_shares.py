"""What wide windows need of a run that is over is reckoned while its ledger is held."""

from collections.abc import Iterable

import pytest

from headway.collector.fleet_shares import SLOTS, FleetShares
from headway.collector.ledgers import Ledgers
from headway.collector.run_ledger import Snapshot
from headway.events import Envelope, RunEnded, RunStarted
from headway.fleet import spans
from headway.fleet.spans import DAY, HOUR, Span
from headway.ledger import Ledger
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


def test_a_live_run_is_not_reckoned_before_anybody_asks() -> None:
    shares, found = FleetShares(), snapshot([])
    shares.prepare(found)
    found.held, found.again = None, never
    with pytest.raises(AssertionError, match="read again"):
        shares.share(found, Span(ANCHOR - DAY, ANCHOR + DAY))
