"""The collector's process: one database file, one address, a stop that loses nothing."""

import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from types import FrameType
from typing import NoReturn

import uvicorn

from headway.collector.access import check_address
from headway.collector.alerting import Alerting
from headway.collector.api import application
from headway.collector.limits import HEAD_LIMIT, allow_open_files, patient_protocol
from headway.collector.recovery import open_store
from headway.collector.service import Service
from headway.collector.tls import server_context
from headway.listening import TAKEN, refused_port
from headway.logs import configure
from headway.settings import CollectorSettings, SettingError
from headway.storage.opening import Lock
from headway.storage.store import StoreError

_LOG = logging.getLogger(__name__)

_BACKLOG = 2048
_DRAIN_SECONDS = 2
"""How long a stop waits for requests that are being answered."""
_KEEP_ALIVE_SECONDS = 75
_COLLECTIONS = (50_000, 20, 1_000)
"""Thresholds of the garbage collection: events hold no cycles, are many and live long, and to look
through all of them again and again takes as long as to take them in."""
_TURN = 0.001
"""Longest turn of a thread in seconds while others wait for theirs: a commit needs many turns, and
with the usual 5 ms it would wait for a ledger that is being computed at each of them."""
STOP_SECONDS = 4.0
"""When a stop is not waited for any more: what was acknowledged is on disk by then."""


def main(
    settings: CollectorSettings,
    *,
    port_given: bool = False,
    alerting: Callable[[Service], Alerting] | None = None,
) -> int:
    """Serve until SIGTERM or SIGINT and end the process; return only where it cannot be served.

    A port that is taken is replaced by a free one, unless it was given. `alerting` makes what
    watches the service; it starts to work once the ledgers are rebuilt.
    """
    configure(settings)
    try:
        check_address(settings)
        tls = server_context(settings)
        listener = _listen(settings, port_given)
        lock = Lock(settings.database)
        store = open_store(settings.database, time.time_ns)
    except (SettingError, StoreError) as error:
        print(f"headway collect: {error}", file=sys.stderr)
        return 2

    host, port = listener.getsockname()[:2]
    scheme = "http" if tls is None else "https"
    address = f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
    allow_open_files(settings.connections)
    gc.set_threshold(*_COLLECTIONS)
    sys.setswitchinterval(_TURN)
    service = Service(store, settings, time.time_ns)
    if alerting is not None:
        service.alerting = alerting(service)
    config = uvicorn.Config(
        application(service),
        http=patient_protocol(settings.request_timeout, settings.connections),
        ssl_context_factory=None if tls is None else lambda *_: tls,
        h11_max_incomplete_event_size=HEAD_LIMIT,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    server = _Server(config)
    failed = threading.Event()

    def give_up() -> None:
        failed.set()
        server.should_exit = True

    def stop(*_: object) -> None:
        server.leave_soon()
        server.should_exit = True

    # The server listens for these signals only while it serves, and raises them again at its end
    # for whoever listened before.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    service.start(lambda: print(f"listening on {address}", flush=True), give_up)
    if service.alerting is not None:
        service.alerting.start()
    server.run(sockets=[listener])
    if service.alerting is not None:
        service.alerting.stop()
    service.close()
    lock.release()
    return _end(1 if failed.is_set() else 0)


class _Server(uvicorn.Server):
    """uvicorn's server, whose stop has an end: it would wait for threads however long they take."""

    def __init__(self, config: uvicorn.Config) -> None:
        """Begin to wait for a stop, in a thread."""
        super().__init__(config)
        # A signal's handler may interrupt whoever holds a lock; to put something here needs none.
        self._stops: SimpleQueue[None] = SimpleQueue()
        threading.Thread(target=self._see_out, name="headway-stop", daemon=True).start()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self.leave_soon()
        super().handle_exit(sig, frame)

    def leave_soon(self) -> None:
        """End the process in a while, whatever still runs."""
        self._stops.put(None)

    def _see_out(self) -> None:
        self._stops.get()
        time.sleep(STOP_SECONDS)
        _leave()


def _leave() -> None:
    """End the process although a request or a computation still runs."""
    _LOG.warning("the stop took %.1f s; leaving what is not acknowledged", STOP_SECONDS)
    _end(0)


def _end(status: int) -> NoReturn:
    """End the process at once: to take millions of events apart first would take seconds."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(status)


def _listen(settings: CollectorSettings, port_given: bool) -> socket.socket:
    try:
        return _bound(settings.host, settings.port)
    except OSError as error:
        if settings.port == 0:
            raise SettingError(f"cannot listen on {settings.host!r}: {error}") from error
        busy = error
    refusal = refused_port(settings.host, settings.port, busy)
    if port_given and busy.errno in TAKEN:
        raise refusal from busy
    try:
        listener = _bound(settings.host, 0)
    except OSError as error:
        raise SettingError(f"cannot listen on {settings.host!r}: {error}") from error
    why = str(refusal).partition(";")[0]
    port = listener.getsockname()[1]
    print(f"{why}, so the collector listens on port {port}", flush=True)
    return listener


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
