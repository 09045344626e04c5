"""Sends encoded requests over some connections, and keeps how long each acknowledgement took."""

import http.client
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from benchmarks.ingesting.load import Body

HEADERS = {"content-type": "application/x-protobuf", "content-encoding": "gzip"}
_PATIENCE = 120
_AGAIN = 0.05


@dataclass(slots=True)
class Sent:
    """What was acknowledged; times in seconds."""

    records: int = 0
    steps: int = 0
    requests: int = 0
    content_bytes: int = 0
    turned_away: int = 0
    waits: list[float] = field(default_factory=list)
    lasted: float = 0.0
    client_cpu: float = 0.0


def send(
    address: str, bodies: Iterator[Body], seconds: float, connections: int, rate: float | None
) -> Sent:
    """Send for some seconds, as fast as it is acknowledged or at most `rate` requests a second."""
    sent, lock = Sent(), threading.Lock()
    begin, cpu = time.monotonic(), time.process_time()

    def one() -> None:
        host = urlsplit(address)
        connection = http.client.HTTPConnection(str(host.hostname), host.port, timeout=_PATIENCE)
        while time.monotonic() - begin < seconds:
            with lock:
                body = next(bodies, None)
                number = sent.requests
                sent.requests += 1
            if body is None:
                break
            if rate is not None:
                time.sleep(max(begin + number / rate - time.monotonic(), 0))
            started = time.monotonic()
            while not _acknowledged(connection, body):
                with lock:
                    sent.turned_away += 1
                time.sleep(_AGAIN)
            with lock:
                sent.records += body.records
                sent.steps += body.steps
                sent.content_bytes += body.size
                sent.waits.append(time.monotonic() - started)
        connection.close()

    threads = [threading.Thread(target=one) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sent.lasted = time.monotonic() - begin
    sent.client_cpu = time.process_time() - cpu
    return sent


def _acknowledged(connection: http.client.HTTPConnection, body: Body) -> bool:
    connection.request("POST", "/v1/logs", body.content, HEADERS)
    answer = connection.getresponse()
    said = answer.read()
    if answer.status == 200 and not said:
        return True
    if answer.status == 503:
        return False
    raise SystemExit(f"the collector answered {answer.status}: {said[:200]!r}")
