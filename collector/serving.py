"""Serves declared endpoints: reads the question, answers JSON or Arrow, or that nothing changed.

Handlers run in threads, since they compute.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from http import HTTPMethod, HTTPStatus
from typing import Any

import pyarrow  # type: ignore[import-untyped]  # ships no types
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headway.collector.answers import bad_request, body_of, error_answer, service_of
from headway.collector.endpoint import Answer, BadQuestion, Endpoint, NotKnown, understood
from headway.collector.otlp.bodies import TooLarge
from headway.storage.client import ARROW
from headway.storage.sql_guard import SqlRefused
from headway.storage.sql_session import TooManyQueries

FORMATS = ("json", "arrow")
FORMAT = "format"
LARGEST_BODY = 64 * 1024
"""Most bytes of the body of a question."""


def route(endpoint: Endpoint) -> Route:
    """Return the route of an endpoint; a run's name may hold a slash, so it matches a path."""
    path = endpoint.path.replace("{run}", "{run:path}")

    async def serve(request: Request) -> Response:
        try:
            given = await _given(endpoint, request)
            return await run_in_threadpool(_answered, endpoint, request, given)
        except TooLarge as error:
            return error_answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, error, "Ask for less.")
        except (BadQuestion, SqlRefused) as error:
            return bad_request(error, error.next_step)
        except NotKnown as error:
            return error_answer(HTTPStatus.NOT_FOUND, error, error.next_step)
        except TooManyQueries as error:
            headers = {"Retry-After": "1"}
            return error_answer(
                HTTPStatus.TOO_MANY_REQUESTS, error, "Try again in a moment.", headers
            )

    return Route(path, serve, methods=[endpoint.method.value], name=endpoint.name)


async def _given(endpoint: Endpoint, request: Request) -> dict[str, Sequence[Any]]:
    """Return everything that a request says, by name."""
    found: dict[str, Sequence[Any]] = defaultdict(list)
    for name, value in request.query_params.multi_items():
        found[name] = [*found[name], value]
    if endpoint.method is HTTPMethod.POST:
        found |= {name: [value] for name, value in (await _body(request)).items()}
    return {**found, **{name: [value] for name, value in request.path_params.items()}}


async def _body(request: Request) -> dict[str, Any]:
    content = await body_of(request, LARGEST_BODY)
    try:
        said = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadQuestion(f"the body is no JSON: {error}", "Send a JSON object.") from error
    if not isinstance(said, dict):
        raise BadQuestion(f"the body must be an object, got {said!r:.80}", "Send a JSON object.")
    return {name: value for name, value in said.items() if value is not None}


def _answered(endpoint: Endpoint, request: Request, given: dict[str, Sequence[Any]]) -> Response:
    arrow = endpoint.bulk and _wants_arrow(request, given.pop(FORMAT, ()))
    answer = endpoint.handler(service_of(request), understood(endpoint, given))
    headers = {"Vary": "Accept"} if endpoint.bulk else {}
    if endpoint.method is not HTTPMethod.GET:
        return _content(answer, arrow, headers)
    if answer.version is None:
        response = _content(answer, arrow, headers)
        tag = hashlib.blake2b(response.body, digest_size=12).hexdigest()
    else:
        response, tag = None, answer.version
    headers["ETag"] = f'"{tag}{"-arrow" if arrow else ""}"'
    if _known(request, headers["ETag"]):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    if response is None:
        return _content(answer, arrow, headers)
    response.headers.update(headers)
    return response


def _content(answer: Answer, arrow: bool, headers: dict[str, str]) -> Response:
    if not arrow or answer.table is None:
        return JSONResponse(answer.content(), headers=headers)
    table, sink = answer.table(), pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return Response(sink.getvalue().to_pybytes(), media_type=ARROW, headers=headers)


def _wants_arrow(request: Request, asked: Sequence[str]) -> bool:
    if not asked:
        return ARROW in request.headers.get("accept", "")
    if len(asked) > 1 or asked[0] not in FORMATS:
        raise BadQuestion(
            f"unknown {FORMAT} {', '.join(map(str, asked))!r:.80}",
            f"Choose one of: {', '.join(FORMATS)}.",
        )
    return asked[0] == FORMATS[1]


def _known(request: Request, tag: str) -> bool:
    """Whether the sender has this answer already."""
    tags = request.headers.get("if-none-match", "").split(",")
    return any(one.strip().removeprefix("W/") in (tag, "*") for one in tags)
