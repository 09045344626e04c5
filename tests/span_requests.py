"""OTLP trace requests as NVRx's launcher and Megatron send them, through nemo-lens."""

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otlp_requests import pairs
from records import ANCHOR, SECOND

RESOURCE = {
    "service.name": "megatron",
    "nemo.run.id": "llama-1",
    "dl.rank": 0,
    "dl.world_size": 8,
    "host.name": "n1",
}
SPAN: Mapping[str, Any] = {
    "name": "megatron.train.iteration",
    "trace_id": bytes(range(16)),
    "span_id": bytes(range(8, 16)),
    "start": ANCHOR + 10 * SECOND,
    "end": ANCHOR + 11 * SECOND,
    "attributes": {"megatron.iteration": 7, "megatron.loss": 2.5, "is_goodput_span": True},
}


def spans(
    *found: Mapping[str, Any], resource: Mapping[str, Any] = RESOURCE
) -> ExportTraceServiceRequest:
    """Return a request of one resource with some spans like `SPAN`."""
    message = ExportTraceServiceRequest()
    group = message.resource_spans.add()
    group.resource.attributes.extend(pairs(resource))
    scope = group.scope_spans.add()
    for span in found:
        sent = scope.spans.add(
            name=span["name"],
            trace_id=span["trace_id"],
            span_id=span["span_id"],
            start_time_unix_nano=span["start"],
            end_time_unix_nano=span["end"],
        )
        sent.attributes.extend(pairs(span["attributes"]))
        if "error" in span:
            sent.status.code = 2
            sent.status.message = span["error"]
    return message
