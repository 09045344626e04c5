"""The collector over real HTTP: events in, ledgers and metrics out."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from prometheus_client.parser import text_string_to_metric_families

from headway import events
from headway.collector.api import application
from headway.collector.otlp.bodies import PROTOBUF
from headway.collector.service import Service
from headway.events import AttemptStarted, Note, Resumed, RunEnded, RunStarted
from headway.settings import ClientSettings, CollectorSettings
from headway.storage.client import CollectorClient
from headway.storage.collector_errors import UnknownRun
from headway.storage.store import EventStore
from otlp_requests import body, request
from records import ANCHOR, SECOND, record, steps
from served import served

WAIT = 30.0
OPENING = [
    record(1, RunStarted(run_name="llama")),
    record(2, AttemptStarted(layer="launcher", world_size=1)),
]


@dataclass
class Clock:
    """The time that the collector believes."""

    now: int = ANCHOR + 100 * SECOND

    def __call__(self) -> int:
        return self.now


@dataclass
class Running:
    """A served collector and what a test needs of it."""

    http: httpx.Client
    client: CollectorClient
    clock: Clock
    service: Service

    def post(self, content: bytes, **headers: str) -> httpx.Response:
        given = {"content-type": PROTOBUF} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return self.http.post("/v1/logs", content=content, headers=given)

    def metrics(self) -> dict[str, dict[tuple[str, ...], float]]:
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in text_string_to_metric_families(self.http.get("/metrics").text):
            for sample in family.samples:
                found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
        return found


@contextmanager
def running(path: Path, **options: Any) -> Iterator[Running]:
    options = {"commit_interval": 0.0, "database": path} | options
    settings = CollectorSettings(**options)
    clock, ready = Clock(), threading.Event()
    service = Service(EventStore.open(path), settings, clock)
    service.start(ready.set)
    with (
        closing(service),
        served(application(service)) as address,
        httpx.Client(base_url=address) as http,
        CollectorClient(ClientSettings(endpoint=address)) as client,
    ):
        assert ready.wait(WAIT)
        yield Running(http, client, clock, service)


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "events.duckdb") as found:
        yield found


def test_events_become_a_report_that_name_and_id_both_find(collector: Running) -> None:
    answer = collector.post(gzip.compress(body([*OPENING, steps(3, 12)])), content_encoding="gzip")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == PROTOBUF
    assert not ExportLogsServiceResponse.FromString(answer.content).HasField("partial_success")
    report = collector.client.report("llama-1")
    assert report == collector.client.report("llama")
    assert report["run"] == "llama-1"
    assert report["steps"]["highest"] == 12
    assert report["as_of"] == collector.clock.now
    assert sum(report["categories"].values()) == report["elapsed_ns"]
    assert [summary["run"] for summary in collector.client.runs()] == ["llama-1"]


def test_the_newest_run_of_a_name_is_found_by_it(collector: Running) -> None:
    later = [
        record(500, RunStarted(run_name="llama"), producer="cd" * 16, run="llama-2"),
        record(501, AttemptStarted(layer="launcher"), producer="cd" * 16, run="llama-2"),
    ]
    collector.post(body([*later, *OPENING, steps(3, 12)]))
    assert collector.client.report("llama")["run"] == "llama-2"
    assert [summary["run"] for summary in collector.client.runs()] == ["llama-2", "llama-1"]


def test_a_run_name_with_a_slash_is_found(collector: Running) -> None:
    collector.post(body([record(1, RunStarted(run_name="team/a"), run="team/a-1")]))
    assert collector.client.report("team/a-1")["run"] == "team/a-1"
    assert collector.client.intervals("team/a") is not None


def test_an_unknown_run_is_a_sentence_with_the_next_step(collector: Running) -> None:
    with pytest.raises(UnknownRun, match="no event of a run 'nobody'"):
        collector.client.report("nobody")


def test_intervals_and_the_step_curve_come_from_the_ledger(collector: Running) -> None:
    collector.post(body([*OPENING, steps(3, 12)]))
    report = collector.client.report("llama")
    intervals = collector.client.intervals("llama")
    assert set(intervals[0]) >= {
        "start",
        "end",
        "category",
        "part",
        "attempt",
        "first_step",
        "last_step",
    }
    assert sum(item["end"] - item["start"] for item in intervals) == report["elapsed_ns"]
    points = collector.client.steps("llama")
    assert points[0] == {"time": ANCHOR + 2 * SECOND, "step": 2, "attempt": "a1"}
    assert points[-1] == {"time": ANCHOR + 12 * SECOND, "step": 12, "attempt": "a1"}


@pytest.mark.parametrize("points", ["1", "0", "-3", "many", "1000000"])
def test_a_senseless_number_of_points_is_refused(collector: Running, points: str) -> None:
    answer = collector.http.get("/api/v1/runs/llama/steps", params={"points": points})
    assert answer.status_code == 400
    assert repr(points) in answer.json()["error"]


def test_an_unchanged_report_is_not_sent_again(collector: Running) -> None:
    collector.post(body([*OPENING, steps(3, 12), record(13, RunEnded(reason="completed"))]))
    path = "/api/v1/runs/llama/report"
    first = collector.http.get(path)
    known = {"If-None-Match": first.headers["ETag"]}
    collector.clock.now += 3600 * SECOND
    assert collector.http.get(path, headers=known).status_code == 304
    collector.post(body([record(14, Note(text="late"))]))
    assert collector.http.get(path, headers=known).status_code == 200


def test_a_live_report_moves_with_time_at_most_once_a_second(collector: Running) -> None:
    collector.post(body([*OPENING, steps(3, 12)]))
    first = collector.client.report("llama")["as_of"]
    collector.clock.now += SECOND - 1
    assert collector.client.report("llama")["as_of"] == first
    collector.clock.now += 1
    assert collector.client.report("llama")["as_of"] == first + SECOND


def test_a_quarantined_record_is_answered_200_with_the_reason(collector: Running) -> None:
    message = request([*OPENING, record(3, Note(text="x"))])
    message.resource_logs[2].scope_logs[0].log_records[0].event_name = "headway.teleported"
    answer = collector.post(message.SerializeToString())
    assert answer.status_code == 200
    success = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert success.rejected_log_records == 1
    assert "teleported" in success.error_message
    (kept,) = collector.http.get("/api/v1/quarantine").json()["records"]
    assert "teleported" in kept["raw"]
    assert "teleported" in kept["reason"]
    assert collector.metrics()["headway_ingest_records_total"] == {
        ("stored",): 2,
        ("duplicate",): 0,
        ("quarantined",): 1,
        ("refused",): 0,
    }


def test_refused_requests_say_why_and_what_to_do(collector: Running) -> None:
    assert set(collector.http.get("/v1/logs").json()) == {"error", "next"}
    assert collector.http.get("/v1/logs").status_code == 405
    assert collector.http.get("/nowhere").json() == {
        "error": "GET /nowhere: Not Found",
        "next": "GET /openapi.json lists every path.",
    }
    near = collector.http.get("/api/v1/run").json()["next"]
    assert near.startswith("Did you mean /api/v1/runs? ")
    wrong = collector.http.delete("/api/v1/runs")
    assert (wrong.status_code, wrong.json()["next"]) == (405, "Ask with GET or HEAD.")


def test_a_collector_that_stops_asks_to_send_again(collector: Running) -> None:
    collector.service.committer.close()
    answer = collector.post(body(OPENING))
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"


def test_before_the_ledgers_are_rebuilt_it_lives_but_is_not_ready(tmp_path: Path) -> None:
    store = EventStore.open(tmp_path / "events.duckdb")
    service = Service(store, CollectorSettings(), Clock())
    with closing(service), served(application(service)) as address:
        assert httpx.get(f"{address}/healthz").status_code == 200
        for path in ("/readyz", "/metrics", "/api/v1/runs", "/api/v1/runs/llama/report"):
            answer = httpx.get(address + path)
            assert answer.status_code == 503
            assert "not ready" in answer.json()["error"]
        refused = httpx.post(
            f"{address}/v1/logs", content=body(OPENING), headers={"content-type": PROTOBUF}
        )
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")


def test_health_and_readiness(collector: Running) -> None:
    assert collector.http.get("/healthz").status_code == 200
    assert collector.http.get("/readyz").status_code == 200


# A28: prometheus/prometheus#1673
def test_metrics_come_from_the_ledger_and_start_at_zero(collector: Running) -> None:
    collector.post(body([*OPENING, steps(3, 12), steps(23, 32)]))
    report = collector.client.report("llama")
    metrics = collector.metrics()
    assert metrics["headway_highest_step"] == {("llama-1",): 32}
    assert metrics["headway_elapsed_seconds"] == {("llama-1",): report["elapsed_ns"] / SECOND}
    assert set(metrics["headway_restarts_total"]) == {
        (layer, "llama-1") for layer in ("scheduler", "launcher", "in_process")
    }
    assert metrics["headway_ingest_open_gaps"] == {(): 1}
    reasons = {("no_token",): 0, ("scope",): 0, ("web_page",): 0, ("wrong_token",): 0}
    assert metrics["headway_refused_requests_total"] == reasons
    assert metrics["headway_last_event_age_seconds"] == {("llama-1",): 68}
    assert "headway_checkpoint_age_seconds" not in metrics
    assert not any(name.endswith("_created") for name in metrics)


def test_a_restarted_collector_answers_from_its_store(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    with running(path) as collector:
        collector.post(body([*OPENING, record(3, Resumed(completed=0)), steps(4, 13)]))
        before = collector.client.report("llama")
    with running(path) as collector:
        assert collector.client.report("llama") == before
        collector.post(body([*OPENING, steps(4, 13)]))
        assert collector.client.report("llama") == before


def test_without_any_event_there_are_no_runs(collector: Running) -> None:
    assert collector.client.runs() == []
    assert collector.metrics()["headway_ingest_open_gaps"] == {(): 0}


def test_the_collectors_clock_is_told_to_the_nanosecond(collector: Running) -> None:
    collector.clock.now = ANCHOR + 123_456_789
    assert collector.http.get("/api/v1/clock").json() == {"time": ANCHOR + 123_456_789}


def test_a_nodes_clock_is_published_and_dates_its_newest_event(collector: Running) -> None:
    told = record(13, events.Clock(offset=-30 * SECOND, error=2_000_000), producer="ef" * 16)
    collector.post(body([*OPENING, steps(3, 12), told]))
    metrics = collector.metrics()
    assert metrics["headway_clock_offset_seconds"] == {("n1",): -30.0}
    assert metrics["headway_clock_error_seconds"] == {("n1",): 0.002}
    assert metrics["headway_last_event_age_seconds"] == {("llama-1",): 117.0}


def test_the_nodes_clocks_are_known_again_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    with running(path) as collector:
        collector.post(body([record(1, events.Clock(offset=SECOND), run=None)]))
    with running(path) as collector:
        metrics = collector.metrics()
        assert metrics["headway_clock_offset_seconds"] == {("n1",): 1.0}
        assert "headway_clock_error_seconds" not in metrics
