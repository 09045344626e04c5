"""The node's hardware as metrics of the OpenTelemetry SDK, kept current by what is recorded."""

import threading
from collections.abc import Iterable

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    NumberDataPoint,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from headway.events import Event
from headway.exporter.hardware_conventions import SCHEMA_URL, Hardware, Point
from headway.exporter.node.sink import NodeSink


class HardwareMetrics:
    """Passes events about the node on and keeps what they amount to."""

    def __init__(self, sink: NodeSink) -> None:
        self._sink = sink
        self._hardware = Hardware()
        self._lock = threading.Lock()  # a push reads in a thread of its own

    def node_event(self, event: Event, *, monotonic: int | None = None) -> None:
        """Record the event, as `NodeSink`."""
        with self._lock:
            self._hardware.take(event)
        self._sink.node_event(event, monotonic=monotonic)

    def scope(self, began: int, now: int) -> ScopeMetrics:
        """Return the metrics as they are; counters run since `began`, both UTC ns."""
        with self._lock:
            points = self._hardware.points()
        return scope_metrics(points, began, now)


def scope_metrics(points: Iterable[Point], began: int, now: int) -> ScopeMetrics:
    """Return points in the SDK's form, one metric for all points of a name."""
    by_metric: dict[str, list[Point]] = {}
    for point in points:
        by_metric.setdefault(point.metric, []).append(point)
    return ScopeMetrics(
        scope=InstrumentationScope("headway", schema_url=SCHEMA_URL),
        metrics=[_metric(each, began, now) for each in by_metric.values()],
        schema_url=SCHEMA_URL,
    )


def _metric(points: list[Point], began: int, now: int) -> Metric:
    values = [
        NumberDataPoint(
            attributes=dict(point.attributes),
            start_time_unix_nano=began,
            time_unix_nano=now,
            value=point.value,
        )
        for point in points
    ]
    first = points[0]
    data: Gauge | Sum
    if first.instrument == "gauge":
        data = Gauge(values)
    else:
        monotonic = first.instrument == "counter"
        data = Sum(values, AggregationTemporality.CUMULATIVE, is_monotonic=monotonic)
    return Metric(first.metric, None, first.unit, data)
