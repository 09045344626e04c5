"""The metrics for a push are those that a scrape shows, but for the form."""

from pathlib import Path

from opentelemetry.sdk.metrics.export import AggregationTemporality, NumberDataPoint, Sum

from headway.exporter.node.counts import Sample
from headway.exporter.node.metrics import SHIPPED, NodeMetrics
from headway.exporter.node.scope import node_scope
from headway.metrics import METRICS
from spooled_rank import Rank


def test_every_sample_of_a_scrape_is_a_point_of_the_push(tmp_path: Path) -> None:
    metrics = NodeMetrics(tmp_path, lambda: 10**12)
    rank = Rank(tmp_path)
    rank.steps(7)
    metrics.add(SHIPPED, 5)
    scope = node_scope(metrics.samples)(1, 2)
    found: list[Sample] = []
    for metric in scope.metrics:
        name = metric.name
        if isinstance(metric.data, Sum):
            name += "_total"
            assert metric.data.is_monotonic
            assert metric.data.aggregation_temporality == AggregationTemporality.CUMULATIVE
        assert metric.description == METRICS[name].description
        for point in metric.data.data_points:
            assert isinstance(point, NumberDataPoint)
            assert (point.start_time_unix_nano, point.time_unix_nano) == (1, 2)
            assert point.attributes is not None
            labels = tuple(str(point.attributes[label]) for label in METRICS[name].labels)
            found.append((name, labels, point.value))
    known = [sample for sample in metrics.samples() if sample[2] is not None]
    assert sorted(found) == sorted(known)
    assert (SHIPPED, (), 5) in found
    rank.close()


def test_units_are_written_as_opentelemetry_writes_them(tmp_path: Path) -> None:
    scope = node_scope(NodeMetrics(tmp_path).samples)(1, 2)
    units = {metric.name: metric.unit for metric in scope.metrics}
    assert units["headway_agent_spool_bytes"] == "By"
    assert units["headway_agent_shipped_records"] == "1"
