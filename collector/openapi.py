"""The OpenAPI 3.1 document of the read API, from the declarations of its endpoints."""

from collections.abc import Mapping
from functools import cache
from http import HTTPMethod, HTTPStatus
from typing import Any

from headway.collector import schemas
from headway.collector.endpoint import Endpoint, Parameter, parameters
from headway.collector.endpoints import ENDPOINTS
from headway.collector.serving import FORMAT, FORMATS
from headway.storage.client import ARROW

_JSON = "application/json"
_ERRORS = {
    HTTPStatus.BAD_REQUEST: "The request cannot be understood.",
    HTTPStatus.UNAUTHORIZED: "The token is missing or wrong.",
    HTTPStatus.FORBIDDEN: "The token is not for this.",
    HTTPStatus.NOT_FOUND: "There is no such thing.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.TOO_MANY_REQUESTS: "Others are asking; try again after Retry-After.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "A defect; events are safe.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Not ready, or too slow; try again after Retry-After.",
}


@cache
def document() -> Mapping[str, Any]:
    """Return the document."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.value.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headway collector",
            "version": "1",
            "description": "Times are UTC nanoseconds, durations nanoseconds, ratios 0 to 1; null "
            "is unknown. GET answers carry an ETag and honour If-None-Match.",
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
    statuses = {*_ERRORS}
    if endpoint.method is HTTPMethod.GET:
        answer["headers"] = {
            "ETag": {
                "description": "Version of the data; another one when the answer may be another.",
                "schema": {"type": "string"},
            }
        }
        unchanged = {"description": "It is what the sender has already."}
        found[str(HTTPStatus.NOT_MODIFIED.value)] = unchanged
        statuses.remove(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return found | {
        str(status.value): {"$ref": f"#/components/responses/{status.name}"}
        for status in sorted(statuses)
    }
