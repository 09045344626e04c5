"""What a client of OTLP/HTTP is told, in the form in which it spoke."""

import json
from http import HTTPStatus
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]  # ships no types
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # as above

from headway.collector.otlp.bodies import JSON, PROTOBUF
from headway.collector.otlp.decoded import Decoded

_CODES = {
    HTTPStatus.BAD_REQUEST: 3,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: 8,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: 3,
    HTTPStatus.SERVICE_UNAVAILABLE: 14,
}
"""The codes of `google.rpc.Code`: invalid argument, resource exhausted, unavailable."""


def stored(decoded: Decoded, response: Any, rejected: str, content_type: str) -> bytes:
    """Encode the answer to a stored request; `rejected` names the count in `partial_success`.

    What is quarantined counts as rejected: it is kept, and it is no event.
    """
    count = len(decoded.quarantined) + decoded.num_refused
    words = [f"quarantined: {decoded.quarantined[0].reason}"] if decoded.quarantined else []
    if decoded.num_refused:
        words.append(f"refused {decoded.num_refused}: {decoded.refusal}")
    if count:
        setattr(response.partial_success, rejected, count)
        response.partial_success.error_message = "; ".join(words)
    if content_type == JSON:
        return json.dumps(json_format.MessageToDict(response)).encode()
    return bytes(response.SerializeToString())


def failed(
    status: HTTPStatus, sentence: str, next_step: str, content_type: str
) -> tuple[bytes, str]:
    """Encode a `google.rpc.Status`, as OTLP asks for, and return it with its content type.

    As JSON it also holds what every error of the collector's says.
    """
    code = _CODES[status]
    message = f"{sentence} {next_step}"
    if content_type == PROTOBUF:
        return bytes(Status(code=code, message=message).SerializeToString()), PROTOBUF
    content = {"error": sentence, "next": next_step, "code": code, "message": message}
    return json.dumps(content).encode(), JSON
