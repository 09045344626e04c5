"""One client cannot take the collector's time or connections from the others."""

import http.client
import json
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from headway.collector.limits import HEAD_LIMIT, Patience, allow_open_files, patient_protocol

QUICK = 0.2
"""Seconds for tests that wait for the end of patience."""
LONG = 600.0
"""Seconds after which the suite would have been ended."""


async def size(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(len(await request.body())))


def broken(_: Request) -> PlainTextResponse:
    raise TimeoutError("its own")


@contextmanager
def serving(*, head: float = LONG, body: float = LONG, connections: int = 100) -> Iterator[int]:
    """Serve with these limits; gives the port."""
    app = Starlette(
        routes=[Route("/", size, methods=["GET", "POST"]), Route("/broken", broken)],
        middleware=[Middleware(Patience, seconds=body)],
    )
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        http=patient_protocol(head, connections),
        h11_max_incomplete_event_size=HEAD_LIMIT,
        log_config=None,
        lifespan="off",
        ws="none",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def rest(client: socket.socket) -> bytes:
    """Return what comes until the server closes."""
    found = b""
    while chunk := client.recv(65_536):
        found += chunk
    return found


def answer(client: socket.socket) -> tuple[int, bytes]:
    """Return status and body of the next answer."""
    found = http.client.HTTPResponse(client)
    found.begin()
    return found.status, found.read()


HALF = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"
WHOLE = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: x\r\nX: "])
def test_whoever_sends_no_whole_head_is_cut_off(sent: bytes) -> None:
    with serving(head=QUICK) as port, connected(port) as client:
        client.sendall(sent)
        assert rest(client) == b""
        assert httpx.get(f"http://127.0.0.1:{port}/").text == "0"


def test_a_second_request_that_does_not_come_is_cut_off_too() -> None:
    with serving(head=QUICK) as port, connected(port) as client:
        client.sendall(WHOLE)
        assert answer(client) == (200, b"3")
        client.sendall(b"POST / HT")
        assert rest(client) == b""


def test_a_connection_that_is_kept_alive_is_not_cut_off_for_its_silence() -> None:
    with serving(head=QUICK) as port, connected(port) as client, connected(port) as other:
        client.sendall(WHOLE)
        assert answer(client) == (200, b"3")
        assert rest(other) == b""  # so much time has passed
        client.sendall(WHOLE)
        assert answer(client) == (200, b"3")


def test_a_body_that_does_not_come_is_answered_408_and_the_connection_closed() -> None:
    with serving(body=QUICK) as port, connected(port) as client:
        client.sendall(HALF)
        answer = rest(client)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"next"' in answer


def test_a_body_that_comes_is_taken() -> None:
    with serving() as port, connected(port) as client:
        client.sendall(HALF)
        client.sendall(b"defghij")
        assert answer(client) == (200, b"10")


def test_a_handler_that_runs_out_of_its_own_time_is_no_slow_client() -> None:
    with serving() as port:
        assert httpx.get(f"http://127.0.0.1:{port}/broken").status_code == 500


def test_a_head_beyond_the_limit_is_answered_400() -> None:
    with serving() as port, connected(port) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * HEAD_LIMIT + b"\r\n")
        assert rest(client).startswith(b"HTTP/1.1 400 ")


def test_connections_beyond_the_limit_are_turned_away_and_those_within_served() -> None:
    with serving(connections=2) as port, connected(port) as first, connected(port) as second:
        for client in (first, second):
            client.sendall(WHOLE)
            assert answer(client) == (200, b"3")
        with connected(port) as third:
            status, said = answer(third)
            assert (status, json.loads(said)["error"]) == (503, "Too many connections.")
        first.sendall(WHOLE)
        assert answer(first) == (200, b"3")


def test_as_many_files_may_be_open_as_the_connections_need() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        lower = min(soft, 300)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lower, hard))
        allow_open_files(20)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == lower
        allow_open_files(100)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 356
        allow_open_files(2**40)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 2**40 + 256
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
