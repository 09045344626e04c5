"""Incidents over HTTP: read them, take charge of one, correct its cause.

What a person says becomes an event of the run, stored before it is answered; the rule's own verdict
stays beside it.
"""

import json
from http import HTTPStatus
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headway.collector.answers import bad_request, body_of, error_answer, service_of
from headway.collector.otlp import TooLarge
from headway.collector.own_events import OwnEvents
from headway.events import CAUSES, Event, IncidentAcknowledged, IncidentCorrected
from headway.incidents.finding import WEEK

_LARGEST = 64 * 1024
"""Most bytes of what a person says."""


class _Refused(ValueError):  # noqa: N818  # the condition reads as a name
    """A judgement that cannot be recorded; says why and what to do."""

    def __init__(self, sentence: str, next_step: str) -> None:
        super().__init__(sentence)
        self.next_step = next_step


def routes() -> list[Route]:
    """Return the routes; they expect `own_events` in the application's state."""
    return [
        Route("/api/v1/incidents", incidents),
        Route("/api/v1/incidents/{incident}", incident),
        Route("/api/v1/incidents/{incident}/cause", correct, methods=["POST"]),
        Route("/api/v1/incidents/{incident}/ack", acknowledge, methods=["POST"]),
    ]


def incidents(request: Request) -> Response:
    """Answer with the incidents of one run (`run`) or of all runs, the newest first."""
    ledgers = service_of(request).ledgers
    run = request.query_params.get("run")
    snapshots = ledgers.snapshots() if run is None else [ledgers.snapshot(run)]
    found = [
        _of(request, snapshot.report, one)
        for snapshot in snapshots
        for one in _all(snapshot.report)
    ]
    found.sort(key=lambda one: -int(one["opened"]))
    return JSONResponse({"incidents": found})


def incident(request: Request) -> Response:
    """Answer with one incident."""
    identity = request.path_params["incident"]
    found = _find(request, identity)
    return _unknown(identity) if found is None else JSONResponse(found)


async def correct(request: Request) -> Response:
    """Record the cause that a person gives, and answer with the incident as it now reads."""
    return await _record(request, _corrected)


async def acknowledge(request: Request) -> Response:
    """Record who took charge, and answer with the incident as it now reads."""
    return await _record(request, _acknowledged)


async def _record(request: Request, build: Any) -> Response:
    identity = request.path_params["incident"]
    try:
        said = json.loads(await body_of(request, _LARGEST))
        event: Event = build(identity, said)
    except TooLarge as error:
        return error_answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error, "Say it shorter.")
    except _Refused as error:
        return bad_request(error, error.next_step)
    except ValueError as error:
        return bad_request(
            f"the body is no JSON: {error}", 'Send an object like {"author": "Ada"}.'
        )
    return await run_in_threadpool(_store, request, identity, event)


def _store(request: Request, identity: str, event: Event) -> Response:
    found = _find(request, identity)
    if found is None:
        return _unknown(identity)
    own_events: OwnEvents = request.app.state.own_events
    own_events.record(service_of(request).committer, found["run"], event)
    return JSONResponse(_find(request, identity, found["run"]))


def _corrected(identity: str, said: object) -> Event:
    cause = _text(said, "cause", f"Choose one of: {', '.join(CAUSES)}.")
    if cause not in CAUSES:
        raise _Refused(f"unknown cause {cause!r}", f"Choose one of: {', '.join(CAUSES)}.")
    return IncidentCorrected(
        incident=identity,
        cause=cause,
        author=_text(said, "author", "Say who you are."),
        reason=_text(said, "reason", "Say why in words, or leave it out.", optional=True),
    )


def _acknowledged(identity: str, said: object) -> Event:
    return IncidentAcknowledged(incident=identity, author=_text(said, "author", "Say who you are."))


def _text(said: object, name: str, next_step: str, optional: bool = False) -> Any:
    """Return a text of the request's object; None if it is optional and not there."""
    value = said.get(name) if isinstance(said, dict) else None
    if value is None and optional:
        return None
    if not isinstance(value, str) or not value.strip():
        raise _Refused(f"{name} must be a text, got {value!r:.80}", next_step)
    return value.strip()


def _find(request: Request, identity: str, run: str | None = None) -> dict[str, Any] | None:
    ledgers = service_of(request).ledgers
    for snapshot in ledgers.snapshots() if run is None else [ledgers.snapshot(run)]:
        for one in _all(snapshot.report):
            if one["incident"] == identity:
                return _of(request, snapshot.report, one)
    return None


def _all(report: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = report["incidents"]
    return found


def _of(request: Request, report: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    """Return an incident with its run, and how often its GPU was to blame in any run's week."""
    gpu, opened, repeats = one["suspect_gpu"], one["opened"], None
    if one["gpu_repeats"] is not None:
        histories = service_of(request).node_histories
        repeats = histories.incidents_of_gpu(one["suspect_node"], gpu, opened - WEEK, opened)
    return {
        **one,
        "run": report["run"],
        "run_name": report["run_name"],
        "gpu_repeats_in_all_runs": repeats,
    }


def _unknown(identity: str) -> JSONResponse:
    return error_answer(
        HTTPStatus.NOT_FOUND,
        f"no incident {identity!r} is known here",
        "List those of a run with `headway incidents RUN`.",
    )
