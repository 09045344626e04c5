"""Requests are acknowledged after their commit, share commits, and are turned away at the end."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from headway.collector.ingest import Busy, Committer
from headway.collector.otlp.decoded import Decoded
from headway.events import Envelope, Note
from headway.settings import CollectorSettings
from headway.storage.store import Appended, EventStore, Quarantined
from records import ANCHOR, SECOND, record, steps

SETTINGS = CollectorSettings(commit_interval=0.0)
WAIT = 30.0


def clock() -> int:
    """Tell the time: a minute after the newest event."""
    return ANCHOR + 80 * SECOND


def decoded(*envelopes: Envelope) -> Decoded:
    return Decoded(parts=envelopes, quarantined=[], size=1)


class HeldStore:
    """A store whose commits wait until a test lets them go."""

    def __init__(self) -> None:
        self.batches: list[list[Envelope]] = []
        self.entered = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)
        self.refuses: Envelope | None = None

    def append(
        self, envelopes: Iterable[Envelope], quarantined: Sequence[Quarantined] = ()
    ) -> Appended:
        batch = list(envelopes)
        self.entered.release()
        assert self.allowed.acquire(timeout=WAIT)
        if self.refuses in batch:
            raise RuntimeError("this one cannot be stored")
        self.batches.append(batch)
        return Appended(parts=batch, num_stored=len(batch), num_duplicate=0, num_quarantined=0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    opened = EventStore.open(tmp_path / "events.duckdb")
    yield opened
    opened.close()


def test_an_acknowledged_request_is_stored_and_published(store: EventStore) -> None:
    published: list[Envelope] = []
    committer = Committer(store, SETTINGS, published.extend, clock)
    request = Decoded(
        parts=[steps(1, 10)],
        quarantined=[Quarantined(received=1, reason="unknown", raw="{}")],
        size=1,
        num_refused=2,
    )
    committer.submit(request).result(WAIT)
    assert list(store.envelopes()) == published == [steps(1, 10)]
    assert committer.counts() == {"stored": 10, "duplicate": 0, "quarantined": 1, "refused": 2}
    committer.submit(decoded(steps(6, 15))).result(WAIT)
    assert published == [steps(1, 10), steps(11, 15)]
    assert committer.counts() == {"stored": 15, "duplicate": 5, "quarantined": 1, "refused": 2}
    committer.close()


def test_stored_requests_are_acknowledged_although_their_ledger_fails(store: EventStore) -> None:
    def fail(envelopes: Sequence[Envelope]) -> None:
        raise RuntimeError("a defect of a ledger")

    committer = Committer(store, SETTINGS, fail, clock)
    committer.submit(decoded(steps(1, 10))).result(WAIT)
    committer.submit(decoded(steps(11, 20))).result(WAIT)
    assert len(list(store.envelopes())) == 2
    committer.close()


def test_requests_that_arrive_during_a_commit_share_the_next_one() -> None:
    store = HeldStore()
    committer = Committer(store, SETTINGS, lambda envelopes: None, clock)  # type: ignore[arg-type]
    futures = [committer.submit(decoded(record(1, Note(text="x"))))]
    assert store.entered.acquire(timeout=WAIT)
    futures += [committer.submit(decoded(record(n, Note(text="x")))) for n in (2, 3)]
    assert not any(future.done() for future in futures)
    store.allowed.release(2)
    for future in futures:
        future.result(WAIT)
    assert [len(batch) for batch in store.batches] == [1, 2]
    committer.close()


def test_one_request_that_cannot_be_stored_does_not_hold_up_the_others() -> None:
    store = HeldStore()
    committer = Committer(store, SETTINGS, lambda envelopes: None, clock)  # type: ignore[arg-type]
    store.refuses = record(2, Note(text="bad"))
    first = committer.submit(decoded(record(1, Note(text="x"))))
    assert store.entered.acquire(timeout=WAIT)
    bad = committer.submit(decoded(store.refuses))
    good = committer.submit(decoded(record(3, Note(text="x"))))
    store.allowed.release(4)
    first.result(WAIT)
    good.result(WAIT)
    with pytest.raises(Busy, match="this one cannot be stored"):
        bad.result(WAIT)
    committer.close()


def test_closing_commits_what_waits_and_then_turns_away(store: EventStore) -> None:
    settings = CollectorSettings(commit_interval=3600.0)
    committer = Committer(store, settings, lambda envelopes: None, clock)
    committer.submit(decoded(steps(1, 10))).result(WAIT)
    future = committer.submit(decoded(steps(11, 20)))
    committer.close()
    future.result(WAIT)
    assert list(store.envelopes()) == [steps(1, 10), steps(11, 20)]
    with pytest.raises(Busy, match="stopping"):
        committer.submit(decoded(steps(21, 30)))


def test_a_client_that_goes_away_cannot_stop_the_commit(store: EventStore) -> None:
    committer = Committer(store, SETTINGS, lambda envelopes: None, clock)
    future = committer.submit(decoded(steps(1, 10)))
    assert not future.cancel()
    future.result(WAIT)
    committer.close()
