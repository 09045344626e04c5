"""The collector's HTTP: OTLP in, ledgers and metrics out.

Handlers that compute run in threads; only reading a body and waiting for its commit is
asynchronous. Every error is JSON: `error` says what is wrong, `next` what to do.
"""

import asyncio
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from headway.collector import incident_api, node_api, otlp, window_api
from headway.collector.access import TokenBook
from headway.collector.answers import body_of, error_answer, service_of
from headway.collector.curve import step_curve
from headway.collector.exposition import exposition
from headway.collector.ingest import Busy
from headway.collector.ledgers import LedgerFailed, NoSuchRun, Snapshot
from headway.collector.own_events import OwnEvents
from headway.collector.service import Service
from headway.collector.token_check import TokenCheck
from headway.report import interval_objects

_DEFAULT_POINTS = 2000
_MOST_POINTS = 100_000
_QUARANTINE_SHOWN = 100


def application(service: Service) -> Starlette:
    """Return the ASGI application of a service, which is started and closed elsewhere."""
    app = Starlette(
        routes=[
            Route("/v1/logs", take_logs, methods=["POST"]),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route("/api/v1/clock", clock),
            Route("/api/v1/runs", runs),
            Route("/api/v1/quarantine", quarantine),
            # A run's name may hold a slash, so it is matched as a path.
            Route("/api/v1/runs/{run:path}/report", run_report),
            Route("/api/v1/runs/{run:path}/intervals", run_intervals),
            Route("/api/v1/runs/{run:path}/steps", run_steps),
            *window_api.routes(),
            *incident_api.routes(),
            *node_api.routes(),
        ],
        middleware=[
            Middleware(TokenCheck, book=TokenBook(service.settings.tokens, service.settings.token)),
        ],
        exception_handlers={
            HTTPException: _http_error,
            NoSuchRun: _no_such_run,
            LedgerFailed: _ledger_failed,
            Busy: _busy,
        },
    )
    app.state.service = service
    app.state.own_events = OwnEvents(service.clock)
    return app


async def take_logs(request: Request) -> Response:
    """Store or quarantine the records of one OTLP request; 200 only once that is durable."""
    service = service_of(request)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        committer = service.committer
        decoded = await run_in_threadpool(
            otlp.decode,
            await body_of(request, service.settings.body_limit),
            content_type=content_type,
            encoding=request.headers.get("content-encoding", "").strip().lower(),
            limit=service.settings.body_limit,
            received=service.clock(),
        )
        await asyncio.wrap_future(committer.submit(decoded))
    except otlp.MalformedRequest as error:
        return error_answer(HTTPStatus.BAD_REQUEST, error, "Do not send this request again.")
    except otlp.TooLarge as error:
        return error_answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error, "Send smaller batches.")
    return Response(otlp.response(decoded, content_type), media_type=content_type)


def healthz(_: Request) -> Response:
    """Answer while the process lives."""
    return PlainTextResponse("ok\n")


def readyz(request: Request) -> Response:
    """Answer 200 once events are taken and every ledger is rebuilt."""
    if service_of(request).ready:
        return PlainTextResponse("ready\n")
    raise Busy("the collector is not ready")


def metrics(request: Request) -> Response:
    """Answer a scrape."""
    content, content_type = exposition(service_of(request), request.headers.get("accept", ""))
    return Response(content, headers={"Content-Type": content_type})


async def clock(request: Request) -> Response:
    """Answer with the collector's time in UTC ns, by which agents measure their nodes' clocks."""
    # Asynchronous, because waiting for a thread would make the answer old before it leaves.
    return JSONResponse({"time": service_of(request).clock()})


def runs(request: Request) -> Response:
    """Answer with the summary of every run, the newest first."""
    snapshots = service_of(request).ledgers.snapshots()
    return JSONResponse({"runs": [snapshot.summary for snapshot in snapshots]})


def quarantine(request: Request) -> Response:
    """Answer with the newest records that were refused, and why."""
    records = service_of(request).store.quarantined(_QUARANTINE_SHOWN)
    return JSONResponse({"records": [asdict(record) for record in records]})


def run_report(request: Request) -> Response:
    """Answer with the report of one run."""
    return _answer(request, lambda snapshot: snapshot.report)


def run_intervals(request: Request) -> Response:
    """Answer with the intervals of one run's ledger."""
    return _answer(
        request,
        lambda snapshot: {"intervals": interval_objects(snapshot.ledger.intervals())},
    )


def run_steps(request: Request) -> Response:
    """Answer with the step curve of one run, thinned to `points`."""
    asked = request.query_params.get("points", str(_DEFAULT_POINTS))
    if not asked.isdecimal() or not 2 <= int(asked) <= _MOST_POINTS:
        return error_answer(
            HTTPStatus.BAD_REQUEST,
            f"points must be a number from 2 to {_MOST_POINTS}, got {asked!r}",
            f"Leave it out for {_DEFAULT_POINTS}.",
        )
    return _answer(
        request,
        lambda snapshot: {"points": step_curve(snapshot.ledger.intervals(), int(asked))},
    )


def _answer(request: Request, content: Callable[[Snapshot], object]) -> Response:
    snapshot = service_of(request).ledgers.snapshot(request.path_params["run"])
    headers = {"ETag": f'"{snapshot.version}"'}
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return JSONResponse(content(snapshot), headers=headers)


def _no_such_run(_: Request, error: Exception) -> Response:
    return error_answer(
        HTTPStatus.NOT_FOUND,
        error,
        "List the runs with `headway report`, or wait until the agent has shipped its events.",
    )


def _ledger_failed(_: Request, error: Exception) -> Response:
    return error_answer(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        error,
        "Its events are safe; please report the collector's log.",
    )


def _busy(_: Request, error: Exception) -> Response:
    return error_answer(
        HTTPStatus.SERVICE_UNAVAILABLE, error, "Try again in a moment.", {"Retry-After": "1"}
    )


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  # Starlette routes only these here
    return error_answer(
        error.status_code,
        f"{request.method} {request.url.path}: {error.detail}",
        "See GET /api/v1/runs.",
        dict(error.headers or {}),
    )
