"""The node's own metrics in the form of the OpenTelemetry SDK, for a push.

The names and labels are those of a scrape, so that both ways lead to the same series; only the
`_total` of a counter is left to the receiver, which keeps Prometheus's names by adding it.
"""

from collections.abc import Callable, Iterable, Mapping

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    NumberDataPoint,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from headway.exporter.node.counts import Sample
from headway.metrics import METRICS

_UNITS: Mapping[str | None, str] = {
    None: "1",
    "seconds": "s",
    "bytes": "By",
    "celsius": "Cel",
    "watts": "W",
}
"""UCUM codes of the declared units."""


def node_scope(
    samples: Callable[[], Iterable[Sample]],
) -> Callable[[int, int], ScopeMetrics]:
    """Return a source for a push: what `samples` yields then; its times are UTC ns."""

    def source(began: int, now: int) -> ScopeMetrics:
        points: dict[str, list[NumberDataPoint]] = {}
        for name, labels, value in samples():
            if value is not None:
                attributes = dict(zip(METRICS[name].labels, labels, strict=True))
                point = NumberDataPoint(
                    attributes=attributes,
                    start_time_unix_nano=began,
                    time_unix_nano=now,
                    value=value,
                )
                points.setdefault(name, []).append(point)
        metrics = [_metric(name, found) for name, found in points.items()]
        return ScopeMetrics(InstrumentationScope("headway"), metrics, schema_url="")

    return source


def _metric(name: str, points: list[NumberDataPoint]) -> Metric:
    declared = METRICS[name]
    counts = declared.kind == "counter"
    cumulative = AggregationTemporality.CUMULATIVE
    return Metric(
        name=name.removesuffix("_total"),
        description=declared.description,
        unit=_UNITS[declared.unit],
        data=Sum(points, cumulative, is_monotonic=True) if counts else Gauge(points),
    )
