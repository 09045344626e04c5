"""What one client can take from the others: time, connections and the size of its head.

The size of bodies is limited where they are read, what waits for a commit where it waits.
"""

import asyncio
import resource
from contextlib import suppress
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from headway.collector.answers import error_answer

HEAD_LIMIT = 16 * 1024
"""Most bytes of a request's line and headers; more is answered 400."""
_FULL_BODY = b'{"error": "Too many connections.", "next": "Send it again in a moment."}'
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(_FULL_BODY), _FULL_BODY)
)
_FILES_BESIDE = 256
"""Open files of a collector that are no connections: database, logs, libraries."""


class Patience:
    """Middleware that ends a request that takes too long.

    It has some seconds to arrive whole, however slowly it trickles; a stop waits no longer for its
    answer than the server does.
    """

    def __init__(self, app: ASGIApp, seconds: float) -> None:
        """Wrap `app`."""
        self._app = app
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 408 or, while stopping, 503 and close the connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        arrived, answered, late = False, False, False
        deadline = asyncio.get_running_loop().time() + self._seconds

        async def receive_in_time() -> Message:
            nonlocal arrived, late
            if arrived:  # what follows is the client's end, which may take as long as it likes
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                late = True
                raise
            arrived = not message.get("more_body", False)
            return message

        async def sending(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, receive_in_time, sending)
        except TimeoutError:
            if answered or not late:
                raise
            answer = error_answer(
                HTTPStatus.REQUEST_TIMEOUT,
                f"The request had not arrived after {self._seconds:g} s.",
                "Send it again, in smaller parts if the network is slow.",
                {"Connection": "close"},
            )
            await answer(scope, receive, send)
        except asyncio.CancelledError:
            # Only a stop that has waited long enough cancels: who asked is told, the log is not.
            if not answered:
                answer = error_answer(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    "The collector is stopping.",
                    "Ask again in a moment.",
                    {"Retry-After": "1", "Connection": "close"},
                )
                await answer(scope, receive, send)


class PatientProtocol(H11Protocol):
    """HTTP/1.1 that takes so many connections, and closes one whose next request does not come.

    uvicorn waits for the head of a first request for ever, so that anybody who opens connections
    and says nothing could take them all; and beyond its own limit it turns everybody away.
    """

    head_timeout: float
    """Seconds for the head of a request, from the first byte or the start of the connection."""
    most_connections: int

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the first request its time, or turn the client away."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            transport.write(_FULL)
            transport.close()
            return
        self._waiting = self.loop.call_later(self.head_timeout, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Take bytes; the time runs until they are a whole head."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_waiting()
        elif self._waiting is None and (before is None or before.response_complete):
            self._waiting = self.loop.call_later(self.head_timeout, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        self._waiting = None
        self.transport.close()

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def patient_protocol(seconds: float, connections: int) -> type[PatientProtocol]:
    """Return the protocol with this time for heads and this limit."""
    limits = {"head_timeout": seconds, "most_connections": connections}
    return type("PatientProtocol", (PatientProtocol,), limits)


def allow_open_files(connections: int) -> None:
    """Raise this process's own limit on open files to what so many connections need.

    Where the system allows fewer, it stays at what is allowed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _FILES_BESIDE
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
