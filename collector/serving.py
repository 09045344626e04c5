"""Serves declared endpoints: reads the question, answers JSON or Arrow, or that nothing changed.

Handlers run in threads, since they compute; those that may take long have threads of their own, so
that they keep nobody else waiting.
"""

import json
from collections import defaultdict
from collections.abc import Hashable, Sequence
from http import HTTPMethod, HTTPStatus
from typing import Any

import anyio
import pyarrow  # type: ignore[import-untyped]  # ships no types
from anyio.to_thread import run_sync
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headway.collector.answers import bad_request, body_of, error_answer, service_of
from headway.collector.encoded import Encoded, EncodedAnswers, encoded
from headway.collector.endpoint import (
    Answer,
    BadQuestion,
    Endpoint,
    NotKnown,
    parameters,
    understood,
)
from headway.collector.otlp.bodies import TooLarge
from headway.storage.connection import ARROW, AS_OF
from headway.storage.sql_guard import SqlRefused
from headway.storage.sql_session import TooManyQueries

FORMATS = ("json", "arrow")
FORMAT = "format"
LARGEST_BODY = 64 * 1024
"""Most bytes of the body of a question."""
_LONG_AT_ONCE = 16
"""Questions about one run and about stored records that are answered at once; others wait."""


class Answering:
    """What all endpoints of one collector share."""

    def __init__(self) -> None:
        """Start without any answer."""
        self.answers = EncodedAnswers()
        self.long = anyio.CapacityLimiter(_LONG_AT_ONCE)


def route(endpoint: Endpoint) -> Route:
    """Return the route of an endpoint; a run's name may hold a slash, so it matches a path."""
    path = endpoint.path.replace("{run}", "{run:path}")

    async def serve(request: Request) -> Response:
        try:
            given = await _given(endpoint, request)
            answering: Answering = request.app.state.answering
            limiter = answering.long if _takes_long(endpoint) else None
            return await run_sync(
                _answered, endpoint, request, given, answering.answers, limiter=limiter
            )
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
        many = {one.name for one in parameters(endpoint.declaration) if one.many}
        for name, value in (await _body(request)).items():
            found[name] = _listed(name, value) if name in many else [value]
    return {**found, **{name: [value] for name, value in request.path_params.items()}}


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BadQuestion(f"{name} must be a list, got {value!r:.80}", "Send a JSON array.")
    return value


async def _body(request: Request) -> dict[str, Any]:
    content = await body_of(request, LARGEST_BODY)
    try:
        said = json.loads(content)
        # half a surrogate, which Python reads, could be told nobody again
        json.dumps(said, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise BadQuestion(f"the body is no JSON: {error}", "Send a JSON object.") from error
    if not isinstance(said, dict):
        raise BadQuestion(f"the body must be an object, got {said!r:.80}", "Send a JSON object.")
    return {name: value for name, value in said.items() if value is not None}


def _takes_long(endpoint: Endpoint) -> bool:
    return endpoint.bulk or "run" in endpoint.in_path


def _answered(
    endpoint: Endpoint, request: Request, given: dict[str, Sequence[Any]], answers: EncodedAnswers
) -> Response:
    arrow = endpoint.bulk and _wants_arrow(request, given.pop(FORMAT, ()))
    asked = understood(endpoint, given)
    answer = endpoint.handler(service_of(request), asked)
    headers = {"Vary": "Accept"} if endpoint.bulk else {}
    if answer.as_of is not None:
        headers[AS_OF] = str(answer.as_of)
    if endpoint.method is not HTTPMethod.GET:
        return _response(_encoded(answer, arrow), headers)
    found = _current(answer, arrow, (endpoint.path, asked, arrow), request, answers)
    headers["ETag"] = f'"{found.tag}"'
    if _known(request, found):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return _response(found, headers)


def _current(
    answer: Answer, arrow: bool, question: Hashable, request: Request, answers: EncodedAnswers
) -> Encoded:
    """Return an answer, with its body unless the sender has it."""
    if answer.version is None:
        return _encoded(answer, arrow)
    kept = answers.known(question, answer.version)
    if kept is not None and (kept.body is not None or _known(request, kept)):
        return kept
    return answers.build(question, answer.version, lambda: _encoded(answer, arrow))


def _encoded(answer: Answer, arrow: bool) -> Encoded:
    if not arrow or answer.table is None:
        response = JSONResponse(answer.content())
        return encoded(bytes(response.body), JSONResponse.media_type)
    table, sink = answer.table(), pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return encoded(sink.getvalue().to_pybytes(), ARROW)


def _response(found: Encoded, headers: dict[str, str]) -> Response:
    return Response(found.body, headers=headers, media_type=found.media_type)


def _wants_arrow(request: Request, asked: Sequence[str]) -> bool:
    if not asked:
        return ARROW in request.headers.get("accept", "")
    if len(asked) > 1 or asked[0] not in FORMATS:
        raise BadQuestion(
            f"unknown {FORMAT} {', '.join(map(str, asked))!r:.80}",
            f"Choose one of: {', '.join(FORMATS)}.",
        )
    return asked[0] == FORMATS[1]


def _known(request: Request, found: Encoded) -> bool:
    """Whether the sender has this answer already."""
    tags = request.headers.get("if-none-match", "").split(",")
    return any(one.strip().removeprefix("W/") in (f'"{found.tag}"', "*") for one in tags)
