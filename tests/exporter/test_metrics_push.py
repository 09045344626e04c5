"""Metrics pushed by OTLP: what arrives, and what an absent receiver costs."""

import gzip
import http.server
import logging
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.sdk.metrics.export import ScopeMetrics

from certificates import make_certificate
from gpu_watch import Recorded
from headway.events import LAYERS, GpuPresent, GpuXid
from headway.exporter.agent import agent as agent_module
from headway.exporter.agent.agent import Agent
from headway.exporter.agent.watchers import watchers
from headway.exporter.gpus.hardware_metrics import HardwareMetrics
from headway.exporter.hardware_conventions import SCHEMA_URL
from headway.exporter.node.metrics import NodeMetrics
from headway.exporter.node.metrics_push import MetricsPush
from headway.exporter.node.witness import Witness
from headway.settings import AgentSettings
from spooled_rank import Rank

QUIET = {"gpus": False, "nics": False, "kernel_log": "off"}
XID = GpuXid(code=79, device="0000:cb:00", classification="reboot")


@contextmanager
def receiver(
    tls: ssl.SSLContext | None = None,
) -> Iterator[tuple[str, list[ExportMetricsServiceRequest]]]:
    received: list[ExportMetricsServiceRequest] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            received.append(ExportMetricsServiceRequest.FromString(gzip.decompress(content)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"{scheme}://127.0.0.1:{server.server_port}/v1/metrics", received
    server.shutdown()
    server.server_close()
    thread.join()


def until(push: MetricsPush, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        push.poll()
        time.sleep(0.005)


def test_what_was_recorded_of_the_hardware_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "n7")
    recorded = Recorded()
    hardware = HardwareMetrics(recorded)
    hardware.node_event(GpuPresent(device="GPU-0", pci_address="0000:cb:00.0", index=3))
    hardware.node_event(XID, monotonic=5)
    assert (len(recorded.events), recorded.times) == (2, [None, 5])
    with receiver() as (address, received):
        push = MetricsPush(address, [hardware.scope], interval=60.0)
        until(push, lambda: received)
        push.close()
    (resource,) = received[0].resource_metrics
    about = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
    assert about["host.name"] == "n7"
    (scope,) = resource.scope_metrics
    assert scope.schema_url == SCHEMA_URL
    errors, status = scope.metrics
    assert (errors.name, errors.unit, errors.sum.is_monotonic) == ("hw.errors", "{error}", True)
    (point,) = errors.sum.data_points
    assert point.as_int == 1
    assert {pair.key: pair.value.string_value for pair in point.attributes} == {
        "hw.id": "GPU-0",
        "hw.type": "gpu",
        "hw.name": "GPU 3",
        "hw.vendor": "NVIDIA",
        "error.type": "xid.79",
    }
    assert point.time_unix_nano >= point.start_time_unix_nano > 0
    assert (status.name, len(status.sum.data_points)) == ("hw.status", 3)


def test_a_receiver_with_tls_is_trusted_by_the_file_of_the_setting(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with receiver(tls) as (address, received):
        settings = AgentSettings(
            **QUIET, otlp_metrics=address, otlp_metrics_interval=0.01, ca_file=certificate
        )
        witness = Witness(tmp_path, 1, None)
        (push,) = [
            watcher
            for watcher in watchers(
                settings, witness, NodeMetrics(tmp_path).samples, lambda kill, monotonic: None
            )
            if isinstance(watcher, MetricsPush)
        ]
        until(push, lambda: received)
        push.close()
    assert received


def test_nothing_is_pushed_where_there_is_nothing() -> None:
    with receiver() as (address, received):
        push = MetricsPush(address, [HardwareMetrics(Recorded()).scope], interval=0.0)
        for _ in range(20):
            push.poll()
            time.sleep(0.001)
        push.close()
    assert received == []


def test_an_absent_receiver_is_mentioned_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("headway.exporter.node.metrics_push.REQUEST_TIME", 0.2)
    hardware = HardwareMetrics(Recorded())
    hardware.node_event(XID)
    with receiver() as (address, _):
        pass
    pushes = []

    def source(began: int, now: int) -> ScopeMetrics:
        pushes.append(now)
        return hardware.scope(began, now)

    push = MetricsPush(address, [source], interval=0.0)
    until(push, lambda: len(pushes) > 3)
    push.close()
    said = [record for record in caplog.records if "nobody takes" in record.getMessage()]
    assert len(said) == 1


def test_the_agent_pushes_only_where_it_is_told_to(tmp_path: Path) -> None:
    witness = Witness(tmp_path, 1, None)
    names = [
        [
            type(watcher).__name__
            for watcher in watchers(
                AgentSettings(**QUIET, **more), witness, list, lambda kill, monotonic: None
            )
        ]
        for more in ({}, {"otlp_metrics": "http://127.0.0.1:1/v1/metrics"})
    ]
    assert "MetricsPush" not in names[0]
    assert "MetricsPush" in names[1]


def test_the_agent_pushes_what_a_scrape_of_the_node_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_module, "watchers", watchers)
    metrics = NodeMetrics(tmp_path)
    rank = Rank(tmp_path)
    rank.steps(7)
    with receiver() as (address, received):
        settings = AgentSettings(
            spool=tmp_path,
            endpoint="http://127.0.0.1:1",
            otlp_metrics=address,
            otlp_metrics_interval=0.01,
            gpus=False,
            nics=False,
            kernel_log="off",
        )
        agent = Agent(settings, metrics)
        deadline = time.monotonic() + 30
        while "headway_node_steps" not in pushed(received):
            assert time.monotonic() < deadline
            agent.watch()
            time.sleep(0.005)
        agent.close()
    rank.close()
    assert pushed(received)["headway_node_steps"] == [7]
    assert len(pushed(received)["headway_node_restarts"]) == len(LAYERS)


def pushed(received: list[ExportMetricsServiceRequest]) -> dict[str, list[float]]:
    """Return the values of each metric in the newest push."""
    found = {}
    for resource in received[-1].resource_metrics if received else ():
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                points = (metric.sum or metric.gauge).data_points
                found[metric.name] = [point.as_double or point.as_int for point in points]
    return found
