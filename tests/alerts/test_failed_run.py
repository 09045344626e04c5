"""A run that ended as failed: its alerts may not only be over."""

from pathlib import Path
from typing import Any

from headway.collector.otlp.bodies import PROTOBUF
from headway.events import AttemptStarted, Envelope, RunConfigured, RunEnded, RunStarted
from incident_collector import Running, running
from otlp_requests import body
from records import ANCHOR, SECOND, record, steps

RUN = {"producer": "e" * 32, "run": "llama-1"}
DAY = 86_400


def ended(reason: str) -> list[Envelope]:
    return [
        record(1, RunStarted(run_name="llama"), **RUN),
        record(2, RunConfigured(labels={"team": "llm"}), **RUN),
        record(3, AttemptStarted(layer="launcher", world_size=1), **RUN),
        steps(4, 12, **RUN),
        record(20, RunEnded(reason=reason, message="out of restarts"), **RUN),
    ]


def firing(collector: Running) -> list[dict[str, Any]]:
    """Return what fires about the run."""
    collector.service.alerting.look()
    state = collector.client.get("/api/v1/alerts")
    return [one for one in state["alerts"] if one["labels"].get("run") == "llama-1"]


def test_a_run_that_failed_pages_its_team_until_it_is_started_again(tmp_path: Path) -> None:
    with running(tmp_path / "events.duckdb", ended("failed"), ANCHOR + 60 * SECOND) as collector:
        (one,) = firing(collector)
        assert (one["rule"], one["state"]) == ("RunFailed", "firing")
        assert (one["labels"]["team"], one["labels"]["severity"]) == ("llm", "page")
        begun = record(50, AttemptStarted(layer="launcher", world_size=1), **RUN)
        headers = {"content-type": PROTOBUF}
        assert collector.http.post("/v1/logs", content=body([begun]), headers=headers).is_success
        collector.service.alerting.look()
        (value,) = collector.client.get("/api/v1/alerts/rules/RunFailed/values")["values"]
        assert value == {"labels": {"run": "llama-1"}, "value": 0, "holds": False}


def test_a_run_that_failed_long_ago_or_did_not_fail_pages_nobody(tmp_path: Path) -> None:
    for number, (reason, later) in enumerate(
        [("failed", 2 * DAY), ("completed", 60), ("stopped", 60)]
    ):
        path = tmp_path / f"{number}.duckdb"
        with running(path, ended(reason), ANCHOR + later * SECOND) as collector:
            assert firing(collector) == []
