"""A file of alerting that cannot be read is said, and takes nothing else with it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from incident_collector import Running, running


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "events.duckdb") as found:
        yield found


def damage(folder: Path) -> None:
    """Take from the file of alerting, under its collector, what it holds."""
    with closing(sqlite3.connect(folder / "events.alerts.sqlite")) as book:
        named = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for (name,) in book.execute(named).fetchall():
            if not name.startswith("sqlite_"):
                book.execute(f"DROP TABLE {name}")
        book.commit()


def test_metrics_are_published_without_it_and_say_so(collector: Running, tmp_path: Path) -> None:
    assert "headway_alerting_failing 0.0" in collector.http.get("/metrics").text
    damage(tmp_path)
    answer = collector.http.get("/metrics")
    assert answer.status_code == 200
    assert "headway_alerting_failing 1.0" in answer.text
    assert 'headway_elapsed_seconds{run="llama-1"}' in answer.text
    assert "headway_notice_wait_seconds{" not in answer.text  # unknown, and not 0


def test_rules_are_looked_at_without_it(collector: Running, tmp_path: Path) -> None:
    damage(tmp_path)
    assert collector.service.alerting is not None
    collector.service.alerting.look()
    values = collector.http.get("/api/v1/alerts/rules/StorageFailing/values")
    assert values.json()["values"] == [{"labels": {}, "value": 0, "holds": False}]


def test_what_needs_it_is_answered_with_the_reason(collector: Running, tmp_path: Path) -> None:
    damage(tmp_path)
    for path in ("", "/deliveries", "/silences"):
        answer = collector.http.get(f"/api/v1/alerts{path}")
        assert answer.status_code == 503
        assert answer.json()["error"].startswith("the file of alerting cannot be read: no such")


def test_a_post_mortem_is_written_without_its_notices(collector: Running, tmp_path: Path) -> None:
    (one,) = collector.client.incidents("llama-1")
    damage(tmp_path)
    answer = collector.http.get(f"/api/v1/incidents/{one['incident']}/postmortem")
    assert answer.status_code == 200, answer.text
