"""The collector after a crash: it goes on, keeps what was damaged, and tells what is lost."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from agent_process import clean_environment
from arrivals import numbers, stored
from collector_process import CollectorProcess, collector_process
from headway.collector.otlp.bodies import PROTOBUF
from headway.collector.recovery import recovery_events
from headway.events import Dropped, RunStarted, StorageRecovered
from headway.storage.acknowledged import Lost
from headway.storage.opening import Recovery
from headway.storage.store import EventStore
from killed_store import PER_COMMIT, copy_of, killed_store, log_of
from otlp_requests import body
from records import ANCHOR, PRODUCER, SECOND, record, steps

COMMITS = 4
NUM_STEPS = PER_COMMIT * COMMITS


def ask(collector: CollectorProcess, path: str) -> httpx.Response:
    return httpx.get(f"{collector.address}{path}", timeout=30)


def post(collector: CollectorProcess, first: int, last: int) -> int:
    return httpx.post(
        f"{collector.address}/v1/logs",
        content=body([steps(first, last)]),
        headers={"content-type": PROTOBUF},
        timeout=30,
    ).status_code


def figures(collector: CollectorProcess) -> tuple[str, ...]:
    lines = ask(collector, "/metrics").text.splitlines()
    return tuple(line for line in lines if line.startswith("headway_storage_"))


@pytest.mark.slow
def test_a_damaged_log_is_set_aside_told_counted_and_what_is_lost_can_come_again(
    tmp_path: Path,
) -> None:
    source = tmp_path / "events.duckdb"
    killed_store(source, COMMITS)
    database = copy_of(source, tmp_path / "copy")
    with log_of(database).open("r+b") as log:
        log.seek(-40, os.SEEK_END)
        log.write(b"\xff" * 40)
    whole = (COMMITS - 1) * PER_COMMIT
    with collector_process(database) as collector:
        assert figures(collector) == (
            "headway_storage_recoveries_total 1.0",
            f"headway_storage_lost_records_total {PER_COMMIT:.1f}",
            "headway_storage_failing 0.0",
        )
        report = ask(collector, "/api/v1/runs/llama-1/report").json()
        assert (report["steps"]["highest"], report["dropped_events"]) == (whole, PER_COMMIT)
        assert post(collector, whole + 1, NUM_STEPS) == 200  # an agent that still has them
        report = ask(collector, "/api/v1/runs/llama-1/report").json()
        assert report["steps"]["highest"] == NUM_STEPS
        status, errors = collector.stop()
    assert status == 0
    (aside,) = database.parent.glob("*.damaged-*")
    assert str(aside) in errors
    assert f"acknowledged records lost: {PER_COMMIT}" in errors
    (told,) = [item.event for item in stored(database) if isinstance(item.event, StorageRecovered)]
    assert (told.set_aside, told.lost) == ((str(aside),), PER_COMMIT)
    with collector_process(database) as collector:  # nothing is told again
        assert figures(collector)[0] == "headway_storage_recoveries_total 1.0"
        collector.stop()
    assert numbers(stored(database))[PRODUCER] == list(range(1, NUM_STEPS + 1))


@pytest.mark.slow
def test_a_file_that_cannot_be_used_ends_the_start_with_a_sentence_and_not_a_loop(
    tmp_path: Path,
) -> None:
    database = tmp_path / "events.duckdb"
    store = EventStore.open(database)
    store.append([record(1, RunStarted(run_name="llama"))])
    store.close()
    whole = database.read_bytes()
    contents = {
        "truncated": (whole[: len(whole) // 2], "is damaged and was not touched"),
        "empty": (b"", "does not begin as a DuckDB file"),
        "foreign": (b"%PDF-1.7 " * 2000, "does not begin as a DuckDB file"),
    }
    for name, (content, words) in contents.items():
        database.write_bytes(content)
        with collector_process(database) as collector:
            assert (name, collector.address) == (name, "")
            status, errors = collector.stop()
        assert status == 2
        assert errors.startswith("headway collect: ")
        assert words in errors
        assert "HEADWAY_COLLECTOR_DATABASE" in errors
        assert len(errors.splitlines()) == 1
        assert database.read_bytes() == content


@pytest.mark.slow
def test_a_second_collector_gives_up_and_the_first_is_unharmed(tmp_path: Path) -> None:
    database = tmp_path / "events.duckdb"
    with collector_process(database) as first:
        assert post(first, 1, 10) == 200
        for _ in range(2):
            with collector_process(database) as second:
                assert second.address == ""
                status, errors = second.stop()
            assert status == 2
            assert "held by another process" in errors
        assert post(first, 11, 20) == 200
        assert ask(first, "/readyz").status_code == 200
        first.kill()
    with collector_process(database) as again:
        assert figures(again)[0] == "headway_storage_recoveries_total 0.0"
        assert ask(again, "/api/v1/runs/llama-1/report").json()["steps"]["highest"] == 20


# A31: duckdb/duckdb#17158
@pytest.mark.slow
def test_readers_beside_a_collector_never_meet_its_lock(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from headway.settings import ClientSettings\n"
        "from headway.storage.client import CollectorClient\n"
        "with CollectorClient(ClientSettings(endpoint=sys.argv[1], timeout=60)) as client:\n"
        "    for _ in range(30):\n"
        "        print(client.report('llama-1')['steps']['highest'])\n"
    )
    with collector_process(tmp_path / "events.duckdb") as collector:
        assert post(collector, 1, 10) == 200
        readers = [
            subprocess.Popen(
                [sys.executable, "-c", program, collector.address],
                env=clean_environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(3)
        ]
        sent = 10
        while any(reader.poll() is None for reader in readers):
            assert post(collector, sent + 1, sent + 10) == 200
            sent += 10
        for reader in readers:
            answer, errors = reader.communicate()
            assert (reader.returncode, errors) == (0, "")
            seen = [int(line) for line in answer.split()]
            assert seen == sorted(seen)  # what was seen once does not vanish
            assert 10 <= seen[0] <= seen[-1] <= sent
        assert post(collector, sent + 1, sent + 1) == 200
        # An acknowledged step is in the next answer: no reader is behind.
        assert ask(collector, "/api/v1/runs/llama-1/report").json()["steps"]["highest"] == sent + 1


def test_what_is_lost_is_told_to_each_run_and_told_twice_is_stored_once(tmp_path: Path) -> None:
    recovery = Recovery(
        words="the log is damaged",
        set_aside=(Path("/data/events.duckdb.wal.damaged-1"),),
        kept=10,
        damaged=20,
        lost=(
            Lost(run="llama-1", producer="a" * 32, ranges=((1, 3), (7, 7))),
            Lost(run="llama-1", producer="b" * 32, ranges=((1, 1),)),
            Lost(run=None, producer="c" * 32, ranges=((5, 6),)),
        ),
    )
    told = recovery_events(recovery, ANCHOR)
    drops = {item.run: item.event.count for item in told if isinstance(item.event, Dropped)}
    assert drops == {"llama-1": 5, None: 2}
    store = EventStore.open(tmp_path / "events.duckdb")
    assert store.append(told).num_stored == 3
    later = recovery_events(recovery, ANCHOR + SECOND)
    assert store.append(later).num_stored == 0
    another = replace(recovery, set_aside=(Path("/data/events.duckdb.wal.damaged-2"),))
    assert store.append(recovery_events(another, ANCHOR)).num_stored == 3
    store.close()
