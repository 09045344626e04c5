"""A scrape says what the ledgers say, in either format, and of no run for ever."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from headway.collector.otlp.bodies import PROTOBUF
from headway.collector.samples import run_samples
from headway.events import AttemptStarted, Envelope, RunConfigured, RunEnded, RunStarted
from headway.metrics import METRICS
from incident_collector import Running, running
from otlp_requests import body
from records import ANCHOR, SECOND, record, steps

DAY = 86_400
NOW = ANCHOR + 30 * DAY * SECOND
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
NAME = 'a "quoted"\\ run\r\nof two lines # and more'


def ended(run: str, number: int, end: int) -> list[Envelope]:
    """A run of an hour that completed at a time in seconds."""
    of_run = {"producer": f"{number:032x}", "run": run}
    begin = end - 3600
    return [
        record(begin, RunStarted(run_name="llama"), **of_run),
        record(begin + 1, RunConfigured(labels={"team": "ads"}), **of_run),
        record(begin + 2, AttemptStarted(layer="launcher", world_size=1), **of_run),
        steps(begin + 3, begin + 12, **of_run),
        record(end, RunEnded(reason="completed"), **of_run),
    ]


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    events = [
        *ended("old-1", 1, 27 * DAY),
        *ended("new-1", 2, 29 * DAY),
        *ended(NAME, 3, 29 * DAY),
        *ended("live-1", 4, 30 * DAY)[:-1],
    ]
    with running(tmp_path / "events.duckdb", events, NOW) as found:
        yield found


Key = tuple[str, frozenset[tuple[str, str]]]


def samples(collector: Running, accept: str) -> dict[Key, float]:
    """Return the value of each sample of a scrape."""
    text = collector.http.get("/metrics", headers={"Accept": accept}).content.decode()
    read = openmetrics_families if accept == OPENMETRICS else text_string_to_metric_families
    families = list(read(text))
    assert len({family.name for family in families}) == len(families)
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def runs(found: dict[Key, float], name: str) -> set[str]:
    """Return the runs that a metric tells of."""
    return {dict(labels)["run"] for known, labels in found if known == name}


@pytest.mark.slow
@pytest.mark.parametrize("accept", ["text/plain", OPENMETRICS])
def test_each_run_is_told_as_its_ledger_stands(collector: Running, accept: str) -> None:
    for _ in range(2):  # the second time from what was kept
        found = samples(collector, accept)
        for snapshot in collector.service.ledgers.snapshots():
            if snapshot.ledger.run == "old-1":
                continue
            for name, labels, value in run_samples(snapshot):
                key = name, frozenset(zip(METRICS[name].labels, labels, strict=True))
                assert found.get(key) == (None if value is None else pytest.approx(value))
    begin = 30 * DAY - 3000
    more = steps(begin, begin + 9, producer=f"{5:032x}", run="live-1")
    collector.http.post("/v1/logs", content=body([more]), headers={"content-type": PROTOBUF})
    after = samples(collector, accept)
    executed = "headway_steps_executed_total", frozenset({("run", "live-1")})
    assert after[executed] > found[executed]


def test_a_run_that_was_over_days_ago_is_not_told_any_more(collector: Running) -> None:
    found = samples(collector, "text/plain")
    assert runs(found, "headway_elapsed_seconds") == {"new-1", NAME, "live-1"}
    assert runs(found, "headway_last_event_age_seconds") == {"new-1", NAME, "live-1"}


def test_alerts_have_their_conditions_of_a_live_run_alone(collector: Running) -> None:
    found = samples(collector, "text/plain")
    for name in ("headway_progress_silence_ratio", "headway_silence_seconds"):
        assert runs(found, name) == {"live-1"}
    of_people = {"run_name": "llama", "team": "ads", "cluster": "", "owner": ""}
    assert found["headway_run_info", frozenset({"run": "live-1", **of_people}.items())] == 1
    assert found["headway_collector_up", frozenset()] == 1


def test_every_metric_is_described_as_declared(collector: Running) -> None:
    text = collector.http.get("/metrics").text
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert (METRICS[name].description, METRICS[name].kind) == (
            family.documentation,
            family.type,
        )
