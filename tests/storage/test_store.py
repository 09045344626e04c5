"""The store keeps each sequence number once, across any batching and any restart."""

import json
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection
from sqlalchemy.exc import DatabaseError

from headway import wire
from headway.events import (
    Envelope,
    Fault,
    Heartbeat,
    NodeMemory,
    Note,
    RunConfigured,
    StepsSummary,
)
from headway.storage.store import EventStore, Quarantined, StoreError
from records import ANCHOR, SECOND, record, steps


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    opened = EventStore.open(tmp_path / "events.duckdb")
    yield opened
    opened.close()


def singles(envelopes: list[Envelope]) -> list[Envelope]:
    """Cut envelopes into one per sequence number, in order."""
    return sorted(
        (
            wire.trim(envelope, number, number)
            for envelope in envelopes
            for number in range(envelope.first_sequence, envelope.last_sequence + 1)
        ),
        key=lambda envelope: (envelope.producer, envelope.first_sequence),
    )


PRODUCED = [
    record(1, Heartbeat(open_phases=("startup", "model"))),
    steps(2, 30),
    record(31, Fault(kind="exception", message="caf\u00e9 \0 end", step=30)),
    steps(32, 60),
]


@st.composite
def deliveries(draw: st.DrawFn) -> list[list[Envelope]]:
    """Batches that together hold every record: split, overlapping, repeated, in any order."""
    parts = []
    for envelope in PRODUCED:
        first, last = envelope.first_sequence, envelope.last_sequence
        cuts = sorted(draw(st.sets(st.integers(first, last), max_size=4)) | {first})
        for begin, after in zip(cuts, [*cuts[1:], last + 1], strict=True):
            begin = draw(st.integers(max(first, begin - 3), begin))
            end = draw(st.integers(after - 1, min(last, after + 2)))
            parts += [wire.trim(envelope, begin, end)] * draw(st.integers(1, 2))
    parts = draw(st.permutations(parts))
    size = draw(st.integers(1, len(parts)))
    return [parts[start : start + size] for start in range(0, len(parts), size)]


@settings(
    deadline=None,
    max_examples=settings.default.max_examples // 4,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(batches=deliveries())
def test_any_delivery_of_a_producers_records_stores_each_of_them_once(
    batches: list[list[Envelope]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = EventStore.open(tmp_path_factory.mktemp("store") / "events.duckdb")
    received = stored = duplicate = 0
    for batch in batches:
        appended = store.append(batch)
        received += sum(item.last_sequence - item.first_sequence + 1 for item in batch)
        stored += appended.num_stored
        duplicate += appended.num_duplicate
    assert singles(list(store.envelopes())) == singles(PRODUCED)
    assert store.num_gaps == 0
    assert (stored, duplicate) == (60, received - 60)
    store.close()


def test_a_resend_after_reopening_stores_nothing(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    store = EventStore.open(path)
    store.append(PRODUCED)
    store.close()
    store = EventStore.open(path)
    appended = store.append(PRODUCED)
    assert (appended.num_stored, appended.num_duplicate) == (0, 60)
    assert list(store.envelopes()) == PRODUCED
    store.close()


def test_every_kind_of_value_comes_back_as_it_was(store: EventStore) -> None:
    configured = RunConfigured(
        target_step=10, timeouts={"nccl": 600 * SECOND}, labels={"team": "x", "spot": True}
    )
    kept = [
        replace(record(1, configured), anchor=-5, attempt=None, rank=None, node=None, run=None),
        record(2, Note(text="")),
        record(12, StepsSummary(first_step=1, num_steps=10, duration=3, loss=0.1), count=10),
    ]
    store.append(kept)
    assert list(store.envelopes()) == kept


def test_gaps_are_counted_until_they_are_filled(store: EventStore) -> None:
    store.append([steps(1, 10), steps(21, 30)])
    assert store.num_gaps == 1
    store.append([steps(11, 20)])
    assert store.num_gaps == 0


def test_a_producers_numbers_of_one_run_say_nothing_about_another_run(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    of_other_runs = [steps(1, 10, run="other-1"), record(1, Note(text=""), run=None)]
    counts = []
    for _ in range(2):  # the second time by what the file says
        store = EventStore.open(path)
        counts += [store.append(told).num_stored for told in (of_other_runs, PRODUCED)]
        assert store.num_gaps == 0
        store.close()
    assert counts == [11, 60, 0, 0]


def test_a_quarantined_record_is_kept_once_with_its_reason(store: EventStore) -> None:
    item = Quarantined(received=7, reason="unknown event 'x'", raw=json.dumps({"a": 1}))
    store.append([], [item, item])
    store.append([], [replace(item, received=9)])
    assert store.quarantined(limit=10) == [item]


def test_a_failed_transaction_leaves_no_trace_and_can_be_repeated(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("headway.storage.store._replace_intervals", full)
        with pytest.raises(OSError, match="no space left"):
            store.append(PRODUCED)
    assert list(store.envelopes()) == []
    assert store.append(PRODUCED).num_stored == 60


@pytest.mark.slow
def test_a_full_disk_loses_nothing_that_was_stored_and_heals(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    store = EventStore.open(path)
    stored = 0
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))  # no file may grow beyond
    try:
        with suppress(StoreError):
            while True:
                store.append([steps(stored + 1, stored + 1000)])
                stored += 1000
        with pytest.raises(StoreError, match="could not be stored"):
            store.append([steps(stored + 1, stored + 1000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert store.append([steps(stored - 9, stored + 1000)]).num_stored == 1000
    store.close()
    store = EventStore.open(path)
    assert singles(list(store.envelopes())) == singles([steps(1, stored + 1000)])
    store.close()


@pytest.mark.slow
def test_a_second_process_on_the_same_file_is_told_who_holds_it(
    store: EventStore, tmp_path: Path
) -> None:
    program = (
        "import sys; from pathlib import Path; from headway.storage.store import EventStore\n"
        "try: EventStore.open(Path(sys.argv[1]))\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    path = tmp_path / "events.duckdb"
    answer = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("StoreError the database")
    assert "held by another process" in answer.stdout


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database " * 500)
    with pytest.raises(StoreError, match="cannot open the database"):
        EventStore.open(path)
    assert path.read_text() == "not a database " * 500


def test_a_missing_folder_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nowhere"):
        EventStore.open(tmp_path / "nowhere" / "events.duckdb")


def test_a_commit_that_is_durable_although_the_engine_says_it_failed_is_no_failure(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB says so where the disk is full in the checkpoint that follows a commit."""
    commit = Connection._commit_impl

    def late(connection: Connection) -> None:
        commit(connection)
        raise DatabaseError("COMMIT", None, Exception("succeeded, but the autocheckpoint failed"))

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "_commit_impl", late)
        appended = store.append(PRODUCED)
    assert (appended.envelopes, appended.num_stored) == (PRODUCED, 60)
    assert store.append(PRODUCED).num_stored == 0
    assert list(store.envelopes()) == PRODUCED


def test_what_turns_out_to_be_stored_later_is_told_with_the_next_commit(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, read = Connection._commit_impl, EventStore._read_intervals
    broken = DatabaseError("COMMIT", None, Exception("the database has been invalidated"))

    def late(connection: Connection) -> None:
        commit(connection)
        raise broken

    def unreadable(_: EventStore) -> None:
        raise broken

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "_commit_impl", late)
        patch.setattr(EventStore, "_read_intervals", unreadable)
        for _ in range(2):
            with pytest.raises(StoreError, match="cannot be read now"):
                store.append(PRODUCED[:2])
    assert EventStore._read_intervals is read
    appended = store.append(PRODUCED)
    assert appended.envelopes == PRODUCED
    assert list(store.envelopes()) == PRODUCED


def test_what_nodes_told_is_found_by_its_name_each_within_its_own_time(store: EventStore) -> None:
    def told(node: str, second: int, event: NodeMemory | Note) -> Envelope:
        one = record(second, event, producer=f"{node}-{event.name}", run=None)
        return replace(one, node=node, rank=None, attempt=None)

    readings = [
        told(node, second, NodeMemory(available=second))
        for node in ("n1", "n2", "n3")
        for second in range(1, 9)
    ]
    store.append([*readings, told("n1", 4, Note(text="swapping")), steps(1, 10)])
    spans = {
        "n1": (ANCHOR + 3 * SECOND, ANCHOR + 5 * SECOND),
        "n2": (ANCHOR + 7 * SECOND, ANCHOR + 99 * SECOND),
    }
    found = store.of_nodes(NodeMemory.name, spans)
    assert [(one.node, one.first_sequence) for one in found] == [
        *(("n1", second) for second in (3, 4, 5)),
        *(("n2", second) for second in (7, 8)),
    ]
    assert store.of_nodes(NodeMemory.name, {}) == []
