"""The collector's HTTP: OTLP in, ledgers and metrics out.

Handlers that compute run in threads; only reading a body and waiting for its commit is
asynchronous. Every error is JSON: `error` says what is wrong, `next` what to do.
"""

from collections import Counter
from difflib import get_close_matches
from http import HTTPStatus
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from headway.collector import backup_api, openapi, otlp_api
from headway.collector.access import Access, TokenBook
from headway.collector.answers import error_answer, service_of
from headway.collector.endpoints import ENDPOINTS
from headway.collector.exposition import Exposition
from headway.collector.ingest import Busy
from headway.collector.ledgers import NoSuchRun
from headway.collector.limits import Patience
from headway.collector.run_ledger import LedgerFailed, StillComputing
from headway.collector.service import Service
from headway.collector.serving import Answering, route
from headway.collector.token_check import REASONS, TokenCheck
from headway.storage.alert_book import BookError
from headway.storage.reading import TooSlow


def application(service: Service) -> Starlette:
    """Return the ASGI application of a service, which is started and closed elsewhere."""
    refused = Counter(dict.fromkeys(REASONS, 0))
    book = TokenBook(service.settings.tokens, service.settings.token)
    app = Starlette(
        routes=[
            *otlp_api.routes(),
            *backup_api.routes(),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/metrics", metrics),
            Route("/api/v1/clock", clock),
            Route("/api/v1/access", access),
            Route("/openapi.json", openapi_document),
            *(route(endpoint) for endpoint in ENDPOINTS),
        ],
        middleware=[
            Middleware(TokenCheck, book=book, refused=refused),
            Middleware(Patience, seconds=service.settings.request_timeout),
        ],
        exception_handlers={
            HTTPException: _http_error,
            NoSuchRun: _no_such_run,
            LedgerFailed: _ledger_failed,
            Busy: _busy,
            StillComputing: _busy,
            TooSlow: _busy,
            BookError: _book_failed,
        },
    )
    app.state.service = service
    app.state.answering = Answering()
    app.state.exposition = Exposition(service, refused)
    return app


def healthz(_: Request) -> Response:
    """Answer while the process lives."""
    return PlainTextResponse("ok\n")


def readyz(request: Request) -> Response:
    """Answer 200 while events are taken and every ledger is rebuilt."""
    service = service_of(request)
    if not service.ready:
        raise Busy("the collector is not ready")
    if service.committer.failure is not None:
        raise Busy(f"commits fail: {service.committer.failure}")
    return PlainTextResponse("ready\n")


def metrics(request: Request) -> Response:
    """Answer a scrape."""
    exposition: Exposition = request.app.state.exposition
    content, content_type = exposition.answer(request.headers.get("accept", ""))
    return Response(content, headers={"Content-Type": content_type})


async def clock(request: Request) -> Response:
    """Answer with the collector's time in UTC ns, by which agents measure their nodes' clocks."""
    # Asynchronous, because waiting for a thread would make the answer old before it leaves.
    return JSONResponse({"time": service_of(request).clock()})


async def access(request: Request) -> Response:
    """Answer with what the sender's token allows, and the collector's version."""
    found: Access = request.state.access
    answer = {"name": found.name, "scopes": sorted(found.scopes), "run": found.run}
    return JSONResponse({**answer, "version": version("headway")})


def openapi_document(_: Request) -> Response:
    """Answer with the description of the read API for programs."""
    return JSONResponse(openapi.document())


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


def _book_failed(_: Request, error: Exception) -> Response:
    return error_answer(
        HTTPStatus.SERVICE_UNAVAILABLE,
        error,
        "Make room or mend that file; rules are looked at and people are told without it.",
        {"Retry-After": "60"},
    )


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  # Starlette routes only these here
    headers = dict(error.headers or {})
    next_step = _methods(headers["Allow"]) if "Allow" in headers else _where(request)
    said = f"{request.method} {request.url.path}: {error.detail}"
    return error_answer(error.status_code, said, next_step, headers)


def _methods(allowed: str) -> str:
    return f"Ask with {' or '.join(sorted(allowed.split(', ')))}."


def _where(request: Request) -> str:
    """Return what to ask instead of a path that there is not."""
    known = [route.path for route in request.app.routes]
    likely = get_close_matches(request.url.path, known, n=1)
    nearest = f"Did you mean {likely[0]}? " if likely else ""
    return f"{nearest}GET /openapi.json lists every path."
