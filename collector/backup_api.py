"""A copy of the whole database over HTTP, taken while events arrive; needs the scope admin."""

import tempfile
from http import HTTPStatus
from pathlib import Path
from shutil import rmtree

from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from headway.collector.answers import error_answer, service_of
from headway.storage.connection import BACKUP, BACKUP_MEDIA
from headway.storage.copying import CopyError

_NAME = "headway.duckdb"


def routes() -> list[Route]:
    """Return the route."""
    return [Route(BACKUP, backup, methods=["POST"])]


async def backup(request: Request) -> Response:
    """Answer with a consistent copy as a DuckDB file; opening it restores it."""
    service = service_of(request)
    # Beside the database, where there is room for such a file, and not in a small /tmp.
    beside = service.settings.database.absolute().parent
    try:
        folder = Path(tempfile.mkdtemp(prefix=".headway-backup-", dir=beside))
    except OSError as error:
        return _failed(error)
    try:
        await run_in_threadpool(service.store.backup, folder / _NAME)
    except CopyError as error:
        rmtree(folder, ignore_errors=True)
        return _failed(error)
    return FileResponse(
        folder / _NAME,
        media_type=BACKUP_MEDIA,
        filename=_NAME,
        background=BackgroundTask(rmtree, folder, ignore_errors=True),
    )


def _failed(error: Exception) -> Response:
    return error_answer(
        HTTPStatus.INSUFFICIENT_STORAGE,
        f"the database could not be copied: {error}",
        "Make room on the disk of the collector's database, and ask again.",
    )
