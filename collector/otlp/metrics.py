"""OTLP metrics are refused: Headway derives its own from events."""

from itertools import chain, islice

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from headway.collector.otlp.bodies import JSON, TooLarge
from headway.collector.otlp.decoded import Decoded
from headway.collector.otlp.json_form import parsed
from headway.collector.otlp.messages import MOST_MESSAGES, fields, groups

_KINDS = (5, 7, 9, 10, 11)
"""Fields of `Metric` that hold data points, each in its own field 1."""


def decode_metrics(body: bytes, *, content_type: str, limit: int, received: int) -> Decoded:
    """Count the data points of a request; `received` is the time of its arrival in UTC ns.

    Raises:
        MalformedRequest: the body is no OTLP metrics request.
        TooLarge: too many metrics or points.
    """
    request = body
    if content_type == JSON:
        request = parsed(body, ExportMetricsServiceRequest(), limit).SerializeToString()
    points = (
        point
        for _, metrics in groups(request)
        for metric in chain.from_iterable(metrics)
        for kind, content in fields(metric)
        if kind in _KINDS
        for point, _ in fields(content)
        if point == 1
    )
    count = sum(1 for _ in islice(points, MOST_MESSAGES + 1))
    if count > MOST_MESSAGES:
        raise TooLarge(f"the request holds more than {MOST_MESSAGES} data points")
    return Decoded(
        parts=(),
        quarantined=(),
        size=len(body),
        num_refused=count,
        refusal="metrics are not kept; scrape GET /metrics for Headway's own",
    )
