"""The read API over a database file that no collector holds: the same answers, in this process.

A client sends its requests to this transport instead of to an address.
"""

import asyncio
import time
from pathlib import Path

import httpx

from headway.collector.alerting import NoticeLog
from headway.collector.api import application
from headway.collector.service import Service
from headway.settings import CollectorSettings
from headway.storage.store import EventStore

_WITHOUT_LEDGERS = ("/api/v1/sql", "/api/v1/views", "/api/v1/questions")


class ClosedFile(httpx.BaseTransport):
    """Answers requests from a closed database file; ledgers are computed once one is asked for."""

    def __init__(self, path: Path, closed_log: NoticeLog | None = None) -> None:
        """Open the file to read it, with what alerting told beside it.

        Raises:
            StoreError: a collector holds it, or it is no database of this version.
        """
        settings = CollectorSettings(database=path)
        self._service = Service(EventStore.read(path), settings, time.time_ns)
        self._service.closed_log = closed_log
        self._app = application(self._service)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        if not request.url.path.startswith(_WITHOUT_LEDGERS):
            self._service.read()
        return asyncio.run(self._answer(request))

    def close(self) -> None:
        """Let go of the file."""
        self._service.close()

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        asked = httpx.Request(
            request.method, request.url, headers=request.headers, content=request.read()
        )
        response = await httpx.ASGITransport(self._app).handle_async_request(asked)
        content = b"".join([part async for part in response.stream])  # type: ignore[union-attr]
        return httpx.Response(response.status_code, headers=response.headers, content=content)
