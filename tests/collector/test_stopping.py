"""A stop ends within its time whatever is under way, and alive is not yet ready."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from collector_process import PROGRAM, collector_process
from headway.cli.processes import unused_port

STUCK = (
    "import threading; from headway.collector.service import Service\n"
    "Service._rebuild = lambda self: threading.Event().wait()\n"
)
"""Makes the ledgers' rebuild one that never ends."""


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
    assert "the stop took 4.5 s" in errors.splitlines()[-1]


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
