"""OTLP requests as JSON, which people and small programs send."""

from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]  # ships no types

from headway.collector.otlp.bodies import MalformedRequest, TooLarge

_SHARE = 8
"""JSON grows several times as much as protobuf when it is read, so its limit is lower."""


def parsed(body: bytes, request: Any, limit: int) -> Any:
    """Return a request message filled from JSON; `limit` is that of protobuf bodies, in bytes.

    Raises:
        MalformedRequest: no JSON of such a request.
        TooLarge: more than an eighth of the limit.
    """
    if len(body) > limit // _SHARE:
        raise TooLarge(f"the body holds more than {limit // _SHARE} bytes of JSON")
    try:
        json_format.Parse(body, request, ignore_unknown_fields=True)
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise MalformedRequest(f"the body is no OTLP request: {error}") from error
    return request
