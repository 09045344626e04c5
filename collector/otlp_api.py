"""OTLP over HTTP: log records and spans are stored, and 200 is said once that is durable.

A body is inflated while it arrives, under two limits: its own, and one for all bodies that are on
their way into the store. What a client is told follows the OTLP specification 1.x: 400, 413 and 415
are final, 503 asks to come again, and what was not taken of a stored request is `partial_success`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Protocol

import anyio
import anyio.to_thread
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from headway.blocks import Block, Part
from headway.collector.access import EVERYBODY, Access
from headway.collector.answers import service_of
from headway.collector.ingest import Busy
from headway.collector.otlp import replies
from headway.collector.otlp.bodies import (
    Body,
    MalformedRequest,
    TooLarge,
    UnknownForm,
    check_form,
)
from headway.collector.otlp.decoded import Decoded
from headway.collector.otlp.logs import decode_logs
from headway.collector.otlp.metrics import decode_metrics
from headway.collector.otlp.traces import decode_traces

_DECODERS = 2
"""Requests that are decoded at a time; more would only take turns, and hold more memory."""
_RETRY_AFTER = {"Retry-After": "1"}


class Decoder(Protocol):
    """Turns the inflated body of a request into what it holds."""

    def __call__(self, body: bytes, *, content_type: str, limit: int, received: int) -> Decoded:
        """Decode; raises `MalformedRequest` or `TooLarge`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One kind of telemetry: how it is read, and how its answer counts what was not taken."""

    decode: Decoder
    response: Callable[[], Any]
    rejected: str


SIGNALS = {
    "/v1/logs": Signal(
        decode=decode_logs, response=ExportLogsServiceResponse, rejected="rejected_log_records"
    ),
    "/v1/traces": Signal(
        decode=decode_traces, response=ExportTraceServiceResponse, rejected="rejected_spans"
    ),
    "/v1/metrics": Signal(
        decode=decode_metrics,
        response=ExportMetricsServiceResponse,
        rejected="rejected_data_points",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refusal:
    """How a request that is not taken is answered, and counted."""

    status: HTTPStatus
    next_step: str
    outcome: str


_REFUSALS: Mapping[type[Exception], _Refusal] = {
    MalformedRequest: _Refusal(
        status=HTTPStatus.BAD_REQUEST,
        next_step="Do not send this request again.",
        outcome="malformed",
    ),
    UnknownForm: _Refusal(
        status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        next_step="Send protobuf or JSON, plain or with gzip.",
        outcome="unknown_form",
    ),
    TooLarge: _Refusal(
        status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        next_step="Send smaller batches.",
        outcome="too_large",
    ),
    Busy: _Refusal(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        next_step="Try again in a moment.",
        outcome="busy",
    ),
}


def routes() -> list[Route]:
    """Return the routes of every signal."""
    return [Route(path, _handler(signal), methods=["POST"]) for path, signal in SIGNALS.items()]


def _handler(signal: Signal) -> Callable[[Request], Awaitable[Response]]:
    limiter = anyio.CapacityLimiter(_DECODERS)

    async def take(request: Request) -> Response:
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        requests = service_of(request).intake.requests
        try:
            decoded = await _stored(request, content_type, signal, limiter)
        except ClientDisconnect:
            requests["gone"] += 1
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        except tuple(_REFUSALS) as error:
            refusal = _REFUSALS[type(error)]
            requests[refusal.outcome] += 1
            await _drain(request, service_of(request).settings.body_limit)
            content, media = replies.failed(
                refusal.status, str(error), refusal.next_step, content_type
            )
            headers = _RETRY_AFTER if refusal.outcome == "busy" else None
            return Response(content, refusal.status, headers, media)
        requests["taken"] += 1
        content = replies.stored(decoded, signal.response(), signal.rejected, content_type)
        return Response(content, media_type=content_type)

    return take


async def _stored(
    request: Request, content_type: str, signal: Signal, limiter: anyio.CapacityLimiter
) -> Decoded:
    """Read, decode and store a request."""
    service = service_of(request)
    committer = service.committer
    limit = service.settings.body_limit
    encoding = request.headers.get("content-encoding", "").strip().lower()
    check_form(content_type, encoding)
    body = Body(encoding, limit)
    with service.intake.admission() as admission:
        async for chunk in request.stream():
            body.feed(chunk)
            admission.grow(body.size)
        decode = partial(
            signal.decode,
            body.whole(),
            content_type=content_type,
            limit=limit,
            received=service.clock(),
        )
        access: Access = request.scope.get("state", {}).get("access", EVERYBODY)
        decoded = allowed(await anyio.to_thread.run_sync(decode, limiter=limiter), access)
        await asyncio.wrap_future(committer.submit(decoded))
    return decoded


def allowed(decoded: Decoded, access: Access) -> Decoded:
    """Refuse the records that the sender may not write."""
    if access.run is None:
        return decoded
    parts: list[Part] = []
    num_refused = 0
    refused = None
    for part in decoded.parts:
        refusal = access.refusal(part.first() if isinstance(part, Block) else part)
        if refusal is None:
            parts.append(part)
        else:
            # an envelope of many steps is one record of the request
            num_refused += part.count if isinstance(part, Block) else 1
            refused = refused or refusal
    if refused is None:
        return decoded
    return Decoded(
        parts=parts,
        quarantined=decoded.quarantined,
        size=decoded.size,
        num_refused=decoded.num_refused + num_refused,
        refusal="; ".join(filter(None, (decoded.refusal, refused))),
    )


async def _drain(request: Request, limit: int) -> None:
    """Read on for a while, and forget it: who is still sending does not hear an answer."""
    left = limit
    try:
        async for chunk in request.stream():
            left -= len(chunk)
            if left < 0:
                return
    except (ClientDisconnect, RuntimeError):
        return  # it is gone, or all of it was read
