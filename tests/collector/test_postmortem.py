"""The post-mortem over real HTTP: typed, with what people and alerts said, and what never came."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.collector import openapi
from headway.collector.otlp.bodies import PROTOBUF
from headway.events import Note
from headway.postmortem.reading import postmortem_of
from headway.settings import CollectorSettings
from headway.storage.collector_errors import UnknownIncident
from incident_collector import Running, broken, running
from otlp_requests import body
from records import ANCHOR, SECOND, record

FIRED = ANCHOR / SECOND + 50
"""When alerts about the run fired, in seconds UTC."""


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    settings = CollectorSettings(gpu_hour_price=2.5, currency="EUR")
    with running(tmp_path / "events.duckdb", settings=settings) as found:
        yield found


def identity(collector: Running, run: str = "llama-1") -> str:
    (one,) = collector.client.incidents(run)
    return str(one["incident"])


def notice(status: str, **taken: Any) -> dict[str, Any]:
    told = {
        "labels": {"alertname": "RunHung", "severity": "page", "subject": "run llama-1"},
        "annotations": {"summary": "llama-1 hangs"},
        "starts_at": FIRED,
        "ends_at": None if status == "firing" else FIRED + 20,
    }
    whole = {
        "receiver": "oncall",
        "key": "k1",
        "subject": "run llama-1",
        "status": status,
        "severity": "page",
        "why": "it fires" if status == "firing" else "it is over",
        "firing": [told] if status == "firing" else [],
        "resolved": [] if status == "firing" else [told],
        **taken,
    }
    return {**{name: whole[name] for name in ("receiver", "key", "subject")}, "body": whole}


def test_it_is_typed_and_says_what_the_incident_says(collector: Running) -> None:
    one = collector.client.incident(identity(collector))
    answer = collector.client.postmortem(one["incident"])
    found = postmortem_of(answer)
    assert (found.headline, found.opened, found.run) == (one["headline"], one["opened"], one["run"])
    assert found.cost.currency == "EUR"
    declared = openapi.document()["components"]["schemas"]["Postmortem"]
    assert set(declared["required"]) == set(answer)


def test_an_incident_that_is_not_known_is_said_so(collector: Running) -> None:
    with pytest.raises(UnknownIncident, match="'nobody'"):
        collector.client.postmortem("nobody")


def test_what_people_said_stands_in_the_timeline(collector: Running) -> None:
    one = identity(collector)
    collector.client.acknowledge(one, "Ada")
    collector.client.correct(one, "storage", "Grace", "NFS was full")
    collector.client.note("incident", one, "Ada", "Vendor called", labels=["vendor"])
    collector.client.note("node", "n1", "Ada", "Fan is loud")
    found = postmortem_of(collector.client.postmortem(one))
    said = [(line.about, line.words) for line in found.timeline if line.source == "person"]
    assert said == [
        ("Ada", "took charge"),
        ("Grace", "corrected the cause to storage: NFS was full"),
        ("Ada", "Vendor called (labelled it vendor)"),
        ("Ada", "of the node n1: Fan is loud"),
    ]
    assert found.labels == ("vendor",)
    assert found.acknowledged_by == "Ada"
    assert (found.verdict.cause, found.verdict.original_cause) == ("storage", "exception")


def test_alerts_tell_whom_they_reached_and_who_took_them_after_they_are_over(
    collector: Running,
) -> None:
    desk = collector.service.alerting
    assert desk is not None
    book = desk._book  # type: ignore[attr-defined]  # what the engine writes down
    book.post([notice("firing")], FIRED)
    book.tried(1, "200 OK", None, "delivered", FIRED + 1)
    taken = {"acknowledged_by": "Ada", "acknowledged_at": FIRED + 5}
    book.post([notice("resolved", **taken)], FIRED + 20)
    book.post([{**notice("firing"), "subject": "run another"}], FIRED)
    found = postmortem_of(collector.client.postmortem(identity(collector)))
    assert found.alerts is not None
    first, last = found.alerts
    assert (first.receiver, first.state, first.answer) == ("oncall", "delivered", "200 OK")
    assert (first.acknowledged_by, first.acknowledged_at) == ("Ada", ANCHOR + 55 * SECOND)
    assert (last.status, last.state) == ("resolved", "waiting")
    told = next(line for line in found.timeline if line.source == "alerts")
    assert (told.about, told.words) == ("to oncall", f"firing: {first.headline}")


def test_records_that_never_came_are_told(collector: Running) -> None:
    late = replace(record(20, Note(text="late"), run="llama-1"), first_sequence=20)
    content = body([late])
    collector.http.post("/v1/logs", content=content, headers={"content-type": PROTOBUF})
    found = postmortem_of(collector.client.postmortem(identity(collector)))
    assert "Records 15 to 19 of producer abababab have not arrived." in found.gaps


def test_others_that_are_alike_and_earlier_ones_are_named(collector: Running) -> None:
    content = body(broken("llama-2", "cd" * 16))
    collector.http.post("/v1/logs", content=content, headers={"content-type": PROTOBUF})
    found = postmortem_of(collector.client.postmortem(identity(collector)))
    (other,) = found.similar
    assert (other.run, other.run_name) == ("llama-2", "llama")
    assert "signature" in other.shares
    assert found.suspect.node_record is not None
    assert found.suspect.node_record.node == "n1"
