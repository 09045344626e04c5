"""The OpenAPI 3.1 document of the collector's HTTP, from the declarations of its endpoints.

What is no question about the data, or answers neither JSON nor columns, is described here by hand.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from http import HTTPMethod, HTTPStatus
from typing import Any

from headway.collector import schemas
from headway.collector.endpoint import Endpoint, Parameter, parameters
from headway.collector.endpoints import ENDPOINTS
from headway.collector.serving import FORMAT, FORMATS
from headway.storage.connection import ARROW, AS_OF, BACKUP, BACKUP_MEDIA

_JSON = "application/json"
_PLAIN = "text/plain"
_ERRORS = {
    HTTPStatus.BAD_REQUEST: "The request cannot be understood.",
    HTTPStatus.UNAUTHORIZED: "The token is missing or wrong.",
    HTTPStatus.FORBIDDEN: "The token is not for this.",
    HTTPStatus.NOT_FOUND: "There is no such thing.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.TOO_MANY_REQUESTS: "Others are asking; try again after Retry-After.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "A defect; events are safe.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not ready, or too slow; try again after Retry-After.",
    HTTPStatus.INSUFFICIENT_STORAGE: "There is no room for it on the collector's disk.",
}
_DOOR = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.SERVICE_UNAVAILABLE)
"""What any request may be answered that needs a token."""
_OF_NO_ENDPOINT = (HTTPStatus.INSUFFICIENT_STORAGE,)


@cache
def document() -> Mapping[str, Any]:
    """Return the document."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.value.lower()] = _operation(endpoint)
    for (method, path), operation in _beside().items():
        paths.setdefault(path, {})[method.value.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headway collector",
            "version": "1",
            "description": "Times are UTC nanoseconds, durations nanoseconds, ratios 0 to 1; null "
            "is unknown. GET answers of /api/v1 carry an ETag and honour If-None-Match, but for "
            "the clock and the access. Telemetry comes in by OTLP at /v1/logs, /v1/traces and "
            "/v1/metrics, which OpenTelemetry describes.",
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas.COMPONENTS,
            "responses": {
                status.name: {
                    "description": sentence,
                    "content": {_JSON: {"schema": schemas.ERROR}},
                }
                for status, sentence in _ERRORS.items()
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


_TRUE_UNTIL: Mapping[str, Any] = {
    AS_OF: {
        "description": "Time up to which the answer is true, UTC ns; where it is confirmed it is "
        "later than the as_of within. Not with every answer.",
        "schema": {"type": "integer"},
    }
}


def _beside() -> Mapping[tuple[HTTPMethod, str], Mapping[str, Any]]:
    """Return the operations that no endpoint declares, by method and path."""
    text = {_PLAIN: {"schema": {"type": "string"}}}
    copy = {BACKUP_MEDIA: {"schema": {"type": "string", "format": "binary"}}}
    now = schemas.object_of(time=schemas.INTEGER)
    allowed = schemas.object_of(
        name=schemas.optional(schemas.TEXT),
        scopes=schemas.list_of(schemas.TEXT),
        run=schemas.optional(schemas.TEXT),
        version=schemas.TEXT,
    )
    get, post = HTTPMethod.GET, HTTPMethod.POST
    return {
        (get, "/api/v1/clock"): _plain(
            "clock", "The collector's time in UTC ns, for any token.", _json(now), _DOOR
        ),
        (get, "/api/v1/access"): _plain(
            "access", "What the sender's token allows, for any token.", _json(allowed), _DOOR
        ),
        (post, BACKUP): _plain(
            "backup",
            "A consistent copy of the whole database as a DuckDB file; needs the scope admin.",
            copy,
            (*_DOOR, HTTPStatus.INSUFFICIENT_STORAGE),
        ),
        (get, "/metrics"): _plain("metrics", "A scrape for Prometheus.", text, _DOOR),
        (get, "/openapi.json"): _plain(
            "openapi_document", "This document.", _json({"type": "object"}), _DOOR
        ),
        (get, "/healthz"): {
            **_plain("healthz", "200 while the process lives.", text, ()),
            "security": [],
        },
        (get, "/readyz"): {
            **_plain(
                "readyz",
                "200 while events are taken and stored.",
                text,
                (HTTPStatus.SERVICE_UNAVAILABLE,),
            ),
            "security": [],
        },
    }


def _plain(
    name: str, sentence: str, content: Mapping[str, Any], statuses: Sequence[HTTPStatus]
) -> dict[str, Any]:
    answer = {str(HTTPStatus.OK.value): {"description": "The answer.", "content": content}}
    return {
        "operationId": name,
        "summary": sentence,
        "responses": answer | _errors(statuses),
    }


def _json(schema: schemas.Schema) -> Mapping[str, Any]:
    return {_JSON: {"schema": schema}}


def _errors(statuses: Collection[HTTPStatus]) -> dict[str, Any]:
    return {
        str(status.value): {"$ref": f"#/components/responses/{status.name}"}
        for status in sorted(statuses)
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    in_query = endpoint.method is HTTPMethod.GET
    declared = parameters(endpoint.declaration)
    found: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.sentence,
        "parameters": [
            _parameter(one, "path" if one.name in endpoint.in_path else "query")
            for one in declared
            if in_query or one.name in endpoint.in_path
        ],
        "responses": _responses(endpoint),
    }
    if endpoint.bulk:
        found["parameters"].append(
            {
                "name": FORMAT,
                "in": "query",
                "description": "Form of the answer; default: what Accept asks for, else json.",
                "schema": {"type": "string", "enum": list(FORMATS)},
            }
        )
    if not in_query:
        found["requestBody"] = _body([one for one in declared if one.name not in endpoint.in_path])
    return found


def _parameter(one: Parameter, place: str) -> dict[str, Any]:
    return {
        "name": one.name,
        "in": place,
        "description": one.asked.sentence,
        "required": one.required,
        "schema": _schema(one),
    }


def _body(declared: list[Parameter]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            one.name: {**_schema(one), "description": one.asked.sentence} for one in declared
        },
        "required": [one.name for one in declared if one.required],
        "additionalProperties": False,
    }
    return {"required": True, "content": {_JSON: {"schema": schema}}}


def _schema(one: Parameter) -> dict[str, Any]:
    asked = one.asked
    if one.kind is int:
        schema: dict[str, Any] = {
            "type": "integer",
            "format": "int64",
            "minimum": asked.lowest,
            "maximum": asked.highest,
        }
    elif one.kind is dict:
        values = {"type": ["string", "number", "boolean", "null"]}
        schema = {"type": "object", "additionalProperties": values}
    else:
        schema = {"type": "string", "pattern": r"\S"}
    if asked.choices:
        schema = {"type": "string", "enum": list(asked.choices)}
    if asked.example is not None:
        schema["examples"] = [asked.example]
    if one.many:
        return {"type": "array", "items": schema}
    if one.default is not None:
        schema["default"] = one.default
    return schema


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    content: dict[str, Any] = {_JSON: {"schema": endpoint.result}}
    if endpoint.bulk:
        content[ARROW] = {"schema": {"type": "string", "format": "binary"}}
    answer: dict[str, Any] = {"description": "The answer.", "content": content}
    found = {str(HTTPStatus.OK.value): answer}
    statuses = {*_ERRORS} - {*_OF_NO_ENDPOINT}
    if endpoint.method is HTTPMethod.GET:
        answer["headers"] = {
            "ETag": {
                "description": "Version of the data; another one when the answer may be another.",
                "schema": {"type": "string"},
            },
            **_TRUE_UNTIL,
        }
        unchanged = {
            "description": "It is what the sender has already.",
            "headers": _TRUE_UNTIL,
        }
        found[str(HTTPStatus.NOT_MODIFIED.value)] = unchanged
        statuses.remove(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return found | _errors(statuses)
