"""Parts of a run over HTTP: a window, sliding windows, planned maintenance left out."""

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headway.collector.answers import bad_request, service_of
from headway.ledger import Ledger
from headway.window_report import sliding_report, window_report

_MOST_WINDOWS = 10_000


def routes() -> list[Route]:
    """Return the routes; a run's name may hold a slash, so it is matched as a path."""
    return [
        Route("/api/v1/runs/{run:path}/window", run_window),
        Route("/api/v1/runs/{run:path}/windows", run_windows),
    ]


def run_window(request: Request) -> Response:
    """Answer with the ledger from `start` to `end` in UTC ns without each `exclude` (start-end)."""

    def content(ledger: Ledger) -> dict[str, Any]:
        start = _time(request, "start", ledger.start)
        end = _time(request, "end", ledger.closed_at)
        return window_report(ledger, start, end, _excluded(request))

    return _answer(request, content)


def run_windows(request: Request) -> Response:
    """Answer with windows of `length` ns every `step` ns, without each `exclude`."""

    def content(ledger: Ledger) -> dict[str, Any]:
        length = _time(request, "length", max(ledger.elapsed, 1))
        step = _time(request, "step", length)
        if step > 0 and ledger.elapsed // step > _MOST_WINDOWS:
            raise ValueError(
                f"step {step} cuts the run into more than {_MOST_WINDOWS} windows; "
                f"at least {ledger.elapsed // _MOST_WINDOWS + 1} is needed"
            )
        return sliding_report(ledger, length, step, _excluded(request))

    return _answer(request, content)


def _answer(request: Request, content: Callable[[Ledger], dict[str, Any]]) -> Response:
    ledger = service_of(request).ledgers.snapshot(request.path_params["run"]).ledger
    try:
        return JSONResponse(content(ledger))
    except ValueError as error:
        return bad_request(error, "Times are UTC nanoseconds, lengths nanoseconds.")


def _time(request: Request, name: str, default: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 19:
        raise ValueError(f"{name} must be a number of nanoseconds, got {given!r}")
    return int(given)


def _excluded(request: Request) -> list[tuple[int, int]]:
    found = []
    for given in request.query_params.getlist("exclude"):
        start, _, end = given.partition("-")
        if not (start.isdecimal() and end.isdecimal()) or len(given) > 39:
            raise ValueError(f"exclude must be START-END in nanoseconds, got {given!r}")
        found.append((int(start), int(end)))
    return found
