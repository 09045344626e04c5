"""OTLP trace requests: the spans that tell of a training become events, others are refused."""

import base64
from itertools import chain
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # ships no types
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from headway import wire
from headway.collector import spans
from headway.collector.otlp.attributes import plain
from headway.collector.otlp.bodies import JSON, MalformedRequest
from headway.collector.otlp.decoded import Decoded
from headway.collector.otlp.json_form import parsed
from headway.collector.otlp.messages import LeanSpan, groups
from headway.collector.otlp.quarantine import Quarantine
from headway.events import Envelope
from headway.redaction import masked, masked_values

_LARGEST_SPAN = 64 * 1024


def decode_traces(body: bytes, *, content_type: str, limit: int, received: int) -> Decoded:
    """Decode the inflated body of one request; `received` is the time of its arrival in UTC ns.

    Raises:
        MalformedRequest: the body is no OTLP trace request.
        TooLarge: too many spans, or too much that would have to be quarantined.
    """
    request = body
    if content_type == JSON:
        message = parsed(body, ExportTraceServiceRequest(), limit)
        _unhex(message)
        request = message.SerializeToString()
    envelopes: list[Envelope] = []
    quarantine = Quarantine(received, limit)
    refused = 0
    try:
        for encoded, records in groups(request):
            resource: dict[str, Any] | None = None
            for record in chain.from_iterable(records):
                known = spans.is_known(LeanSpan.FromString(record).name)
                if not known or max(len(record), len(encoded)) > _LARGEST_SPAN:
                    refused += 1
                    continue
                if resource is None:
                    resource = _attributes(Resource.FromString(encoded))
                try:
                    envelopes += _events(resource, Span.FromString(record))
                except wire.WireError as error:
                    quarantine.add(str(error), Resource, encoded, Span, record)
    except DecodeError as error:
        raise MalformedRequest(f"the body is no OTLP trace request: {error}") from error
    return Decoded(
        parts=envelopes,
        quarantined=quarantine.records,
        size=len(body),
        num_refused=refused,
        refusal="only spans that tell of a training are kept" if refused else "",
    )


def _events(resource: dict[str, Any], span: Span) -> list[Envelope]:
    return spans.events(
        spans.Told(
            name=span.name,
            trace_id=bytes(span.trace_id).hex(),
            span_id=bytes(span.span_id).hex(),
            start=span.start_time_unix_nano,
            end=span.end_time_unix_nano,
            error=masked(span.status.message or "error") if span.status.code == 2 else None,
            resource=resource,
            attributes=_attributes(span),
        )
    )


def _attributes(message: Any) -> dict[str, Any]:
    return masked_values({pair.key: plain(pair.value) for pair in message.attributes})


def _unhex(message: Any) -> None:
    """Put right the identities: OTLP's JSON has them in hex, protobuf's own in base64."""
    for group in message.resource_spans:
        for scope in group.scope_spans:
            for span in scope.spans:
                for field in ("trace_id", "span_id", "parent_span_id"):
                    text = base64.b64encode(getattr(span, field)).decode()
                    try:
                        setattr(span, field, bytes.fromhex(text))
                    except ValueError as error:
                        raise MalformedRequest(
                            f"a span's {field} is no hexadecimal number: {text!r:.80}"
                        ) from error
