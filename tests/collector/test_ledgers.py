"""Ledgers stay current, apart from each other, and never stop the events from being stored."""

import logging
from collections.abc import Iterable

import pytest

from headway.collector.ledgers import Ledgers, NoSuchRun
from headway.collector.run_ledger import LedgerFailed
from headway.events import Envelope, Note, RunStarted
from headway.ledger import Timeline
from records import ANCHOR, SECOND, record, steps


def ledgers() -> Ledgers:
    return Ledgers(lambda: ANCHOR + 100 * SECOND)


def test_a_run_whose_start_was_never_seen_is_found_by_the_name_in_its_id() -> None:
    found = ledgers()
    found.add([record(5, Note(text="x"), run="llama-8b-0f3a")])
    assert found.snapshot("llama-8b").report["run"] == "llama-8b-0f3a"


def test_an_id_is_preferred_to_a_name() -> None:
    found = ledgers()
    found.add([record(1, Note(text="x"), run="llama")])
    found.add([record(9, RunStarted(run_name="llama"), producer="cd" * 16, run="llama-2")])
    assert found.snapshot("llama").report["run"] == "llama"


def test_a_run_nobody_heard_of_is_named_in_the_error() -> None:
    with pytest.raises(NoSuchRun, match="'llama'"):
        ledgers().snapshot("llama")


def test_events_of_no_run_make_no_run() -> None:
    found = ledgers()
    found.add([record(1, Note(text="x"), run=None)])
    assert found.snapshots() == []


def test_a_snapshot_is_computed_again_only_when_something_changed() -> None:
    found = ledgers()
    found.add([steps(1, 10)])
    first = found.snapshot("llama-1")
    assert found.snapshot("llama-1") is first
    found.add([steps(11, 20)])
    second = found.snapshot("llama-1")
    assert second.version != first.version
    assert second.report["steps"]["highest"] == 20


def test_a_defect_in_one_ledger_reaches_neither_ingest_nor_the_other_runs(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Timeline):
        def add(self, envelopes: Iterable[Envelope]) -> int:
            if self.run == "broken-1":
                raise ZeroDivisionError("a defect")
            return super().add(envelopes)

    monkeypatch.setattr("headway.collector.run_ledger.Timeline", Broken)
    found = ledgers()
    with caplog.at_level(logging.CRITICAL):
        found.add([record(1, Note(text="x"), run="broken-1"), record(2, Note(text="x"))])
        with pytest.raises(LedgerFailed, match="'broken-1' could not be computed"):
            found.snapshot("broken-1")
        assert [snapshot.report["run"] for snapshot in found.snapshots()] == ["llama-1"]
