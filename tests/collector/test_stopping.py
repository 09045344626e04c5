"""A stop ends within its time whatever is under way, and alive is not yet ready."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from collector_process import PROGRAM, CollectorProcess, collector_process
from headway.cli.processes import unused_port
from headway.events import RunStarted
from headway.storage.store import EventStore
from otlp_requests import body
from records import record, steps

STUCK = (
    "import threading; from headway.collector.service import Service\n"
    "Service._rebuild = lambda self: threading.Event().wait()\n"
)
"""Makes the ledgers' rebuild one that never ends."""


BUSY = (
    "from headway.collector.run_ledger import RunLedger\n"
    "def compute(self, **_):\n"
    "    while True: pass\n"
    "RunLedger._compute = compute\n"
)
"""Makes every ledger one that is computed for ever, which lets other threads run but in turn."""


@contextmanager
def rebuilding(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a collector that is rebuilding for ever; gives it once it answers, and its address."""
    port = unused_port()
    environment = {
        **os.environ,
        "HEADWAY_COLLECTOR_DATABASE": str(folder / "events.duckdb"),
        "HEADWAY_COLLECTOR_TOKENS": str(folder / "tokens.json"),
        "HEADWAY_COLLECTOR_PORT": str(port),
        "HEADWAY_LOG_FORMAT": "json",
    }
    with subprocess.Popen(
        [sys.executable, "-c", STUCK + PROGRAM],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + 60
            while not answers(address):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield process, address
        finally:
            process.kill()


def answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/healthz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.slow
def test_while_ledgers_are_rebuilt_it_is_alive_and_not_ready(tmp_path: Path) -> None:
    with rebuilding(tmp_path) as (_, address):
        ready = httpx.get(f"{address}/readyz")
        assert (ready.status_code, ready.headers["Retry-After"]) == (503, "1")
        sent = httpx.post(
            f"{address}/v1/logs", content=b"", headers={"content-type": "application/x-protobuf"}
        )
        assert (sent.status_code, sent.headers["Retry-After"]) == (503, "1")


@pytest.mark.slow
def test_a_rebuild_that_does_not_end_does_not_keep_a_stop_from_ending(tmp_path: Path) -> None:
    with rebuilding(tmp_path) as (process, _):
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "the stop took 4.0 s" in errors.splitlines()[-1]


@pytest.mark.slow
def test_a_request_that_does_not_arrive_whole_does_not_keep_a_stop_from_ending(
    tmp_path: Path,
) -> None:
    with collector_process(tmp_path / "events.duckdb") as collector:
        url = httpx.URL(collector.address)
        with socket.create_connection((url.host, url.port)) as client:
            client.sendall(
                b"POST /v1/logs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n"
                b"Content-Type: application/x-protobuf\r\n\r\nabc"
            )
            httpx.get(f"{collector.address}/healthz")  # so the collector has read the request
            status, errors = collector.stop()
    assert status == 0, errors


@pytest.mark.slow
def test_ledgers_that_are_computed_and_asked_for_without_end_do_not_keep_a_stop_from_ending(
    tmp_path: Path,
) -> None:
    database = tmp_path / "events.duckdb"
    collector = CollectorProcess(database, program=("-c", BUSY + PROGRAM))
    told = [record(1, RunStarted(run_name="llama")), steps(2, 10)]
    headers = {"content-type": "application/x-protobuf"}

    statuses: list[int] = []

    def ask() -> None:
        with suppress(httpx.HTTPError):
            address = f"{collector.address}/api/v1/runs/llama-1/report"
            statuses.append(httpx.get(address, timeout=60).status_code)

    try:
        sent = httpx.post(
            f"{collector.address}/v1/logs", content=body(told), headers=headers, timeout=60
        )
        assert sent.status_code == 200
        asking = [threading.Thread(target=ask) for _ in range(8)]
        for thread in asking:
            thread.start()
        # once somebody asked the collector is still there, and so are all who wait
        assert httpx.get(f"{collector.address}/healthz", timeout=60).status_code == 200
        status, errors = collector.stop()
        for thread in asking:
            thread.join()
    finally:
        collector.kill()
    assert status == 0, errors
    assert "Traceback" not in errors
    assert statuses == [503] * 8
    store = EventStore.open(database)
    try:
        assert list(store.envelopes()) == told
    finally:
        store.close()
