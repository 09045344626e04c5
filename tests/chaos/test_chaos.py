"""What `scripts/chaos` does, with 20 kills; and that its verdict sees what it looks for."""

from pathlib import Path
from random import Random

import pytest

from arrivals import wait_until
from chaos.run import disturb
from chaos.verdict import Verdict, told, verdict
from headway.events import Envelope
from headway.exporter.spooling.reader import SpoolReader, spools
from headway.storage.store import EventStore
from spooled_rank import Rank

RUN = "llama-7"


@pytest.mark.slow
def test_twenty_kills_lose_and_double_nothing_and_change_no_ledger(tmp_path: Path) -> None:
    found = disturb(tmp_path, 20, Random(6))  # noqa: S311  # a schedule, not a secret
    assert found["passed"], found
    assert (found["kills"], found["kills_on_a_training"], found["ledgers"]) == (20, 2, 2)
    assert found["acknowledged"] > 1000
    assert found["errors"] == []


def recorded(folder: Path) -> list[Envelope]:
    rank = Rank(folder)
    rank.note("begin")
    rank.steps(50)
    rank.note("end")
    rank.close()
    wait_until(lambda: bool(spools(folder)))
    return SpoolReader(rank.folder).read(limit=10**6).envelopes


def judged(truth: Path, database: Path, arrived: list[Envelope]) -> Verdict:
    store = EventStore.open(database)
    store.append(arrived)
    store.close()
    written = SpoolReader(spools(truth)[0]).read(limit=10**6).envelopes
    report = told(RUN, written, written[-1].wall)["report"]
    return verdict(truth, database, {RUN: report})


@pytest.mark.slow
def test_a_store_that_holds_all_is_found_whole(tmp_path: Path) -> None:
    envelopes = recorded(tmp_path / "truth")
    found = judged(tmp_path / "truth", tmp_path / "store.duckdb", envelopes)
    assert (found.lost, found.duplicated, found.different) == (0, 0, ())
    assert found.acknowledged >= 52


def test_a_store_that_lacks_the_steps_is_found_out(tmp_path: Path) -> None:
    envelopes = recorded(tmp_path / "truth")
    kept = [item for item in envelopes if item.event.name != "steps"]
    found = judged(tmp_path / "truth", tmp_path / "store.duckdb", kept)
    assert (found.lost, found.different) == (50, (RUN,))
