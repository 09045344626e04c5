"""The node's own Prometheus port: counters that live in the agent and so survive every rank.

The families are declared in `headway.metrics`; nothing here has a `_created` series, which old
Prometheus servers store as one more series per counter.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headway.exporter.clock_news import Offset
from headway.exporter.spool import spools
from headway.exporter.spool_layout import SEGMENT_SUFFIX
from headway.metrics import METRICS
from headway.settings import SettingError

_log = logging.getLogger(__name__)

SHIPPED = "headway_agent_shipped_records_total"
REFUSED = "headway_agent_refused_records_total"
SPOOL_BYTES = "headway_agent_spool_bytes"
DAMAGED = "headway_agent_damaged_blocks_total"
FAILURES = "headway_agent_export_failures_total"
CLOCK_OFFSET = "headway_clock_offset_seconds"
CLOCK_ERROR = "headway_clock_error_seconds"


class NodeMetrics(Collector):
    """The agent's counters, each of which exists from the start, and the size of the spools."""

    def __init__(self, folder: Path) -> None:
        self.counters = dict.fromkeys((SHIPPED, REFUSED, DAMAGED, FAILURES), 0)
        self.clocks: Mapping[str | None, Offset] = {}
        """The offset of each name of this node, once it was measured."""
        self._folder = folder

    def add(self, name: str, amount: int) -> None:
        """Raise a counter."""
        self.counters[name] += amount

    def collect(self) -> Iterator[Metric]:
        """Yield the families for one scrape."""
        for name, value in self.counters.items():
            yield CounterMetricFamily(name, METRICS[name].description, value=value)
        size = spool_bytes(self._folder)
        yield GaugeMetricFamily(SPOOL_BYTES, METRICS[SPOOL_BYTES].description, value=size)
        clocks = dict(self.clocks)
        yield _per_node(CLOCK_OFFSET, {name: clock.offset for name, clock in clocks.items()})
        yield _per_node(CLOCK_ERROR, {name: clock.error for name, clock in clocks.items()})


def _per_node(name: str, values: Mapping[str | None, int]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, METRICS[name].description, labels=METRICS[name].labels)
    for node, value in values.items():
        family.add_metric([node or ""], value / 1e9)
    return family


def spool_bytes(folder: Path) -> int:
    """Return the bytes that the segments of all spools take on the disk."""
    total = 0
    for spool in spools(folder):
        for segment in spool.glob("*" + SEGMENT_SUFFIX):
            with contextlib.suppress(OSError):  # released meanwhile
                total += segment.stat().st_size
    return total


class MetricsServer:
    """Serves the metrics of one node over HTTP in a thread of its own."""

    def __init__(self, metrics: NodeMetrics, host: str, port: int) -> None:
        registry = CollectorRegistry()
        registry.register(metrics)
        try:
            server, thread = start_http_server(port, host, registry)
        except OSError as busy:
            try:
                server, thread = start_http_server(0, host, registry)
            except OSError as error:
                raise SettingError(
                    f"cannot listen on {host!r}: {error.strerror}; name another address with --host"
                ) from error
            _log.warning(
                "port %d of %s is not free (%s), so the metrics are on port %d",
                port,
                host,
                busy.strerror,
                server.server_port,
            )
        self._server: WSGIServer = server
        self._thread = thread
        name = f"[{host}]" if ":" in host else host
        self.address = f"http://{name}:{server.server_port}"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
