"""Incidents over real HTTP: read, acknowledged, corrected, and the same after a restart."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headway.collector.otlp.bodies import PROTOBUF
from headway.events import IncidentAcknowledged
from headway.storage.collector_errors import CollectorRefused, UnknownIncident, UnknownRun
from incident_collector import Running, broken, running
from otlp_requests import body


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "events.duckdb") as found:
        yield found


def test_the_incidents_of_a_run_and_of_all_runs_are_listed(collector: Running) -> None:
    content = body(broken("llama-2", "cd" * 16))
    collector.http.post("/v1/logs", content=content, headers={"content-type": PROTOBUF})
    (one,) = collector.client.incidents("llama-1")
    assert (one["cause"], one["run"], one["run_name"]) == ("exception", "llama-1", "llama")
    assert {found["run"] for found in collector.client.incidents()} == {"llama-1", "llama-2"}
    whole = collector.client.incident(one["incident"])
    assert {name: whole[name] for name in one} == one
    with pytest.raises(UnknownRun, match="'nobody'"):
        collector.client.incidents("nobody")


def test_a_correction_counts_at_once_and_the_rules_verdict_stays(collector: Running) -> None:
    (one,) = collector.client.incidents()
    said = collector.client.correct(one["incident"], "gpu_fault", " Ada ", "Xid 79 on GPU 3")
    assert (said["cause"], said["original_cause"]) == ("gpu_fault", "exception")
    assert (said["corrected_by"], said["reason"]) == ("Ada", "Xid 79 on GPU 3")
    assert said == collector.client.incident(one["incident"])
    again = collector.client.correct(one["incident"], "network", "Grace")
    assert (again["cause"], again["corrected_by"], again["reason"]) == ("network", "Grace", None)


def test_an_acknowledgement_names_who_took_charge(collector: Running) -> None:
    (one,) = collector.client.incidents()
    said = collector.client.acknowledge(one["incident"], "Ada")
    assert (said["acknowledged_by"], said["cause"]) == ("Ada", "exception")


def test_what_a_person_says_is_no_sign_that_the_run_lives(collector: Running) -> None:
    (one,) = collector.client.incidents()
    before = collector.client.report("llama")["last_event"]
    collector.client.acknowledge(one["incident"], "Ada")
    assert collector.client.report("llama")["last_event"] == before
    metric = 'headway_last_event_age_seconds{run="llama-1"} '
    age = collector.http.get("/metrics").text.partition(metric)[2].partition("\n")[0]
    assert float(age) > 80  # its last event was told at second 5 to 20, and it is second 100


def test_what_people_said_survives_a_restart_and_more_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    with running(path) as collector:
        (one,) = collector.client.incidents()
        collector.client.correct(one["incident"], "network", "Ada")
        before = collector.client.acknowledge(one["incident"], "Ada")
    with running(path) as collector:
        after = collector.client.incident(one["incident"])
        for what in ("cause", "original_cause", "corrected_by", "acknowledged_by"):
            assert after[what] == before[what]
        assert collector.client.correct(one["incident"], "storage", "Ada")["cause"] == "storage"
        assert collector.service.store.num_gaps == 0


def test_two_who_speak_at_once_are_both_heard(collector: Running) -> None:
    (one,) = collector.client.incidents()
    identity = one["incident"]
    people = [f"person {number}" for number in range(8)]
    with ThreadPoolExecutor(len(people)) as pool:
        list(pool.map(lambda person: collector.client.acknowledge(identity, person), people))
    said = [one.event for one in collector.service.store.envelopes() if one.run == "llama-1"][-8:]
    assert {one.author for one in said if isinstance(one, IncidentAcknowledged)} == {*people}
    assert collector.service.store.num_gaps == 0


@pytest.mark.parametrize(
    ("said", "error", "next_step"),
    [
        ({"cause": "oomm", "author": "Ada"}, "unknown cause 'oomm'", "gpu_oom"),
        ({"author": "Ada"}, "cause must be a text, got None", "gpu_oom"),
        ({"cause": "network"}, "author must be a text, got None", "who you are"),
        ({"cause": "network", "author": " "}, "author must be a text, got ' '", "who you are"),
        ({"cause": "network", "author": "A", "reason": 3}, "reason must be a text, got 3", "words"),
        ([], "the body must be an object, got []", "JSON object"),
    ],
)
def test_a_judgement_that_makes_no_sense_names_value_and_choices(
    collector: Running, said: object, error: str, next_step: str
) -> None:
    (one,) = collector.client.incidents()
    answer = collector.http.post(f"/api/v1/incidents/{one['incident']}/cause", json=said)
    assert answer.status_code == 400
    assert answer.json()["error"] == error
    assert next_step in answer.json()["next"]


def test_a_body_that_is_no_json_or_too_large_is_refused(collector: Running) -> None:
    (one,) = collector.client.incidents()
    path = f"/api/v1/incidents/{one['incident']}/ack"
    assert "no JSON" in collector.http.post(path, content=b"{").json()["error"]
    assert collector.http.post(path, content=bytes(100_000)).status_code == 413


def test_an_unknown_incident_says_how_to_find_one(collector: Running) -> None:
    for ask in (
        lambda: collector.client.incident("0123"),
        lambda: collector.client.acknowledge("0123", "Ada"),
        lambda: collector.client.correct("0123", "network", "Ada"),
    ):
        with pytest.raises(UnknownIncident, match="no incident '0123'") as raised:
            ask()
        assert "headway incidents RUN" in raised.value.next_step


def test_a_collector_that_stops_records_nothing(collector: Running) -> None:
    (one,) = collector.client.incidents()
    collector.service.committer.close()
    with pytest.raises(CollectorRefused, match="stopping"):
        collector.client.acknowledge(one["incident"], "Ada")
