"""The probes of goodput measurement, on which existing libraries go wrong, against the product."""

import pytest

from headway.ledger import ledger
from headway.report import report
from oracle.probes import RESTARTS, probes

PROBES = probes()


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_has_its_expected_categories(name):
    envelopes, as_of, expected = PROBES[name]
    book = ledger(envelopes, as_of)
    assert {category: spent for category, spent in book.categories.items() if spent} == expected
    assert book.elapsed == sum(expected.values())


@pytest.mark.parametrize("name", RESTARTS)
def test_a_probe_has_its_expected_restarts_and_failed_starts(name):
    envelopes, as_of, _ = PROBES[name]
    told = report(ledger(envelopes, as_of))
    restarts = sum(count for by_cause in told["restarts"].values() for count in by_cause.values())
    assert (restarts, told["failed_starts"]) == RESTARTS[name]
    assert told["attempts"] == restarts + 1


def test_waiting_for_data_costs_training_but_not_the_infrastructure():
    envelopes, as_of, _ = PROBES["11"]
    told = report(ledger(envelopes, as_of))
    assert told["training_goodput"] == {"low": 0.2, "high": 0.2}
    assert told["infrastructure_goodput"] == {"low": 1.0, "high": 1.0}


def test_the_same_run_name_next_day_is_a_run_of_its_own():
    assert PROBES["15"][0][0].run != PROBES["16"][0][0].run
