"""The collector's process starts, stops, refuses and survives being killed."""

import os
import signal
import socket
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from collector_process import collector_process
from headway import wire
from headway.cli import main as command
from headway.collector.otlp.bodies import PROTOBUF
from headway.collector.server import main
from headway.events import Envelope, RunStarted
from headway.settings import CollectorSettings
from headway.storage.store import EventStore
from otlp_requests import body
from records import record, steps

pytestmark = pytest.mark.slow

HEADERS = {"content-type": PROTOBUF}
OPENING = record(1, RunStarted(run_name="llama"))


def post(http: httpx.Client, address: str, *envelopes: Envelope) -> int:
    content = body(envelopes)
    return http.post(f"{address}/v1/logs", content=content, headers=HEADERS).status_code


def stored(database: Path) -> list[Envelope]:
    store = EventStore.open(database)
    try:
        return list(store.envelopes())
    finally:
        store.close()


def test_it_says_where_it_listens_and_stops_with_everything_stored(tmp_path: Path) -> None:
    database = tmp_path / "events.duckdb"
    with collector_process(database) as collector, httpx.Client() as http:
        assert http.get(f"{collector.address}/readyz").status_code == 200
        assert post(http, collector.address, OPENING, steps(2, 10)) == 200
        assert collector.stop() == (0, "")
    assert stored(database) == [OPENING, steps(2, 10)]


def test_a_stop_in_the_middle_of_ingest_keeps_all_that_was_acknowledged(tmp_path: Path) -> None:
    database = tmp_path / "events.duckdb"
    acknowledged: dict[str, int] = {}

    def ship(address: str, producer: str) -> None:
        with httpx.Client() as http, suppress(httpx.HTTPError):
            for number in range(1, 100_000):
                if post(http, address, steps(number, number, producer=producer)) != 200:
                    return
                acknowledged[producer] = number

    with collector_process(database) as collector:
        producers = [f"{number:032x}" for number in range(4)]
        clients = [
            threading.Thread(target=ship, args=(collector.address, producer))
            for producer in producers
        ]
        for client in clients:
            client.start()
        while len(acknowledged) < len(producers):
            clients[0].join(0.01)
        assert collector.stop() == (0, "")
        for client in clients:
            client.join()
    kept = Counter(envelope.producer for envelope in stored(database))
    assert all(kept[producer] >= acknowledged[producer] for producer in producers)


def test_a_busy_port_is_replaced_and_the_change_is_said_first(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with collector_process(tmp_path / "events.duckdb", port) as collector:
            assert collector.said[0].startswith(
                f"port {port} of '127.0.0.1' is held by process {os.getpid()} ("
            )
            assert collector.address != f"http://127.0.0.1:{port}"
            assert httpx.get(f"{collector.address}/healthz").status_code == 200


def test_a_busy_port_that_was_given_is_refused_with_who_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        database = tmp_path / "events.duckdb"
        asked = ["collect", "--port", str(port), "--database", str(database)]
        assert command(asked) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"headway collect: port {port} of '127.0.0.1' is held by process ")
    assert "choose another with --port" in said
    assert not database.exists()


def test_a_second_collector_on_the_same_file_gives_up_with_a_sentence(tmp_path: Path) -> None:
    database = tmp_path / "events.duckdb"
    with collector_process(database), collector_process(database) as second:
        assert second.address == ""
        status, errors = second.stop()
    assert status == 2
    assert errors.startswith("headway collect: the database ")
    assert "held by another process" in errors


def test_an_open_address_without_a_token_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = CollectorSettings(host="192.0.2.7", database=tmp_path / "events.duckdb")
    assert main(settings) == 2
    assert "HEADWAY_COLLECTOR_TOKEN" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_killed_again_and_again_during_ingest_it_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """A client sends each batch until it is acknowledged, each time cut a little differently."""
    database = tmp_path / "events.duckdb"
    num_steps, num_kills, size = 4000, 5, 40
    acknowledged = 0
    for kill_at in [num_steps * (number + 1) // (num_kills + 1) for number in range(num_kills)]:
        with collector_process(database) as collector, httpx.Client() as http:
            killer = threading.Thread(target=collector.kill)
            try:
                while acknowledged < num_steps:
                    if acknowledged >= kill_at and killer.ident is None:
                        killer.start()
                    # What was acknowledged is partly sent again, as by an agent that crashed too.
                    first = max(1, acknowledged - 7)
                    last = min(num_steps, acknowledged + size)
                    assert post(http, collector.address, steps(first, last)) == 200
                    acknowledged = last
            except httpx.HTTPError:
                pass  # killed while it was asked: nobody knows whether that batch is stored
            killer.join()
            assert collector.process.returncode == -signal.SIGKILL
        size += 3
    with collector_process(database) as collector, httpx.Client() as http:
        while acknowledged < num_steps:
            last = min(num_steps, acknowledged + size)
            assert post(http, collector.address, steps(acknowledged + 1, last)) == 200
            acknowledged = last
        report = http.get(f"{collector.address}/api/v1/runs/llama-1/report").json()
        assert report["steps"]["highest"] == num_steps
        collector.stop()
    kept = stored(database)
    numbers = [n for e in kept for n in range(e.first_sequence, e.last_sequence + 1)]
    assert sorted(numbers) == list(range(1, num_steps + 1))
    expected = steps(1, num_steps)
    assert kept == [wire.trim(expected, e.first_sequence, e.last_sequence) for e in kept]
