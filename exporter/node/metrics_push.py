"""Pushes metrics by OTLP at an interval: a watcher that looks at nothing but the time."""

import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    MetricExportResult,
    MetricsData,
    ResourceMetrics,
    ScopeMetrics,
)
from opentelemetry.sdk.resources import Resource

from headway.exporter.identity import node
from headway.exporter.node.errands import Errand
from headway.exporter.shipping import LOOPBACK

_log = logging.getLogger(__name__)

REQUEST_TIME = 10.0
"""Seconds for one push, repetitions included."""
_CLOSING = 2.0

Source = Callable[[int, int], ScopeMetrics]
"""Gives metrics as they are now; when its counters began and now, both UTC ns."""


class MetricsPush:
    """Pushes what its sources give to an address, at an interval in seconds."""

    def __init__(
        self,
        endpoint: str,
        sources: Sequence[Source],
        *,
        interval: float,
        ca_file: Path | None = None,
    ) -> None:
        """Prepare; `ca_file` vouches for a receiver with TLS."""
        # The SDK logs each failed attempt; here it is said once.
        logging.getLogger(OTLPMetricExporter.__module__).setLevel(logging.CRITICAL)
        self._endpoint = endpoint
        self._sources = sources
        self._resource = Resource({"service.name": "headway", "host.name": node(os.environ)})
        self._began = time.time_ns()
        self._failing = False
        session = requests.Session()
        # A proxy of the environment cannot reach this machine's loopback.
        session.trust_env = urlsplit(endpoint).hostname not in LOOPBACK
        self._exporter = OTLPMetricExporter(
            endpoint=endpoint,
            certificate_file=None if ca_file is None else str(ca_file),
            timeout=REQUEST_TIME,
            compression=Compression.Gzip,
            session=session,
        )
        self._errand = Errand(self._push, interval, name="headway-metrics-push")

    def poll(self) -> None:
        """Push when it is time."""
        self._errand.poll()

    def close(self) -> None:
        """Wait for the push under way, and give it up."""
        self._errand.close(_CLOSING)
        self._exporter.shutdown()

    def _push(self) -> None:
        now = time.time_ns()
        scopes = [scope for source in self._sources if (scope := source(self._began, now)).metrics]
        if not scopes:
            return
        data = MetricsData([ResourceMetrics(self._resource, scopes, schema_url="")])
        taken = self._exporter.export(data) is MetricExportResult.SUCCESS
        if not taken and not self._failing:
            _log.warning("nobody takes the metrics at %s; it is tried again", self._endpoint)
        elif taken and self._failing:
            _log.info("the metrics at %s are taken again", self._endpoint)
        self._failing = not taken
