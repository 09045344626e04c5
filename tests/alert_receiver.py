"""A program that takes notices over HTTP and remembers them, with answers as a test wishes."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class AlertReceiver(ThreadingHTTPServer):
    """Takes POSTs; `answers` are the statuses of the next ones, 200 after them.

    With `echo` it answers with what it was asked, as careless programs do.
    """

    daemon_threads = True

    def __init__(self) -> None:
        """Listen on a free port of the loopback."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken: list[tuple[str, dict[str, str], Any]] = []
        self.answers: list[int] = []
        self.echo = False
        self.arrived = threading.Condition()

    @property
    def address(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def bodies(self, number: int, patience: float = 60.0) -> list[Any]:
        """Return the bodies that were taken once there are so many."""
        taken = self.once(lambda: len(self.taken) >= number, f"{number} notices", patience)
        return [body for _, _, body in taken]

    def once(
        self, come: Callable[[], bool], words: str, patience: float
    ) -> list[tuple[str, dict[str, str], Any]]:
        """Return what was taken once that holds which words name."""
        with self.arrived:
            done = self.arrived.wait_for(come, patience)
            assert done, f"{words} did not come; {len(self.taken)} notices did"
            return list(self.taken)


class _Handler(BaseHTTPRequestHandler):
    server: AlertReceiver

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        with self.server.arrived:
            status = self.server.answers.pop(0) if self.server.answers else 200
            if status < 300:
                self.server.taken.append((self.path, dict(self.headers), body))
            self.server.arrived.notify_all()
        self.send_response(status)
        self.end_headers()
        if self.server.echo:
            self.wfile.write(f"no {self.path} for {self.headers['Authorization']} ".encode() + raw)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def alert_receiver() -> Iterator[AlertReceiver]:
    """Serve a receiver for a while."""
    server = AlertReceiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
