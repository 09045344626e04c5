"""Notes and labels over real HTTP: on what there is, kept for good, found again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headway.storage.collector_errors import CollectorRefused, UnknownIncident, UnknownRun
from incident_collector import Running, running


@pytest.fixture
def collector(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "events.duckdb") as found:
        yield found


def subjects(collector: Running) -> dict[str, str]:
    """Return one thing of each kind that a note can be about."""
    (incident,) = collector.client.incidents()
    return {
        "run": "llama-1",
        "incident": incident["incident"],
        "node": "n1",
        "configuration": incident["attempt_ids"][0],
    }


@pytest.mark.parametrize("about", ["run", "incident", "node", "configuration"])
def test_whatever_there_is_can_be_noted_and_labelled(collector: Running, about: str) -> None:
    subject = subjects(collector)[about]
    note = collector.client.note(about, subject, " Ada ", "seen \u00e9 before", labels=["b", "a"])
    assert note["labels"] == ["a", "b"]
    (said,) = note["notes"]
    assert (said["author"], said["text"], said["about"]) == ("Ada", "seen \u00e9 before", about)
    assert said["subject"] == subject
    assert said["run"] == (None if about == "node" else "llama-1")
    again = collector.client.note(about, subject, "Grace", labels_removed=["b", "never had"])
    assert again["labels"] == ["a"]
    assert [one["text"] for one in again["notes"]] == ["seen \u00e9 before", None]
    assert collector.client.notes(about=about, subject=subject) == again["notes"][::-1]


def test_half_a_surrogate_is_refused_and_hides_no_other_note(collector: Running) -> None:
    collector.client.note("run", "llama-1", "Ada", "x")
    said = rb'{"about": "run", "subject": "llama-1", "author": "Ada", "text": "y \ud800"}'
    answer = collector.http.post(
        "/api/v1/notes", content=said, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, "no JSON" in answer.text) == (400, True)
    assert [one["text"] for one in collector.client.notes()] == ["x"]


def test_a_run_may_be_given_by_its_name(collector: Running) -> None:
    assert collector.client.note("run", "llama", "Ada", "x")["notes"][0]["subject"] == "llama-1"


def test_an_incident_tells_its_history_and_its_labels(collector: Running) -> None:
    incident = subjects(collector)["incident"]
    collector.client.acknowledge(incident, "Ada")
    collector.client.correct(incident, "network", "Grace", "the switch")
    collector.client.note("incident", incident, "Ada", "called the vendor", labels=["vendor"])
    found = collector.client.incident(incident)
    assert [(one["action"], one["author"], one["text"]) for one in found["history"]] == [
        ("acknowledged", "Ada", None),
        ("corrected", "Grace", "the switch"),
        ("noted", "Ada", "called the vendor"),
    ]
    assert found["history"][1]["cause"] == "network"
    assert found["labels"] == ["vendor"]


def test_a_note_is_no_sign_of_life_and_changes_no_number(collector: Running) -> None:
    def still() -> tuple[Any, ...]:
        report = collector.client.report("llama-1")
        return report["attempt_list"], report["end"], report["steps"], len(report["incidents"])

    before = still()
    for about, subject in subjects(collector).items():
        collector.client.note(about, subject, "Ada", "x")
    assert still() == before


def test_notes_survive_a_restart_and_are_found_by_their_words(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    with running(path) as collector:
        known = subjects(collector)
        for about, subject in known.items():
            collector.client.note(about, subject, "Ada", f"about the {about}", labels=["Later"])
    with running(path) as collector:
        found = collector.client.notes()
        assert {one["about"]: one["subject"] for one in found} == known
        assert [one["about"] for one in collector.client.notes(search="THE NODE")] == ["node"]
        assert len(collector.client.notes(search="later")) == 4
        assert len(collector.client.notes(run="llama-1")) == 3
        rows = collector.client.sql("SELECT about, author, text FROM v_remarks")["rows"]
        assert sorted(rows) == sorted([one, "Ada", f"about the {one}"] for one in known)


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"text": " "}, "text must be a text"),
        ({}, "the note says nothing"),
        ({"text": "x" * 10_001}, "10001 characters, more than 10000"),
        ({"label": ["x" * 101]}, "labels are at most 20"),
        ({"label": [str(n) for n in range(21)]}, "labels are at most 20"),
        ({"label": "x"}, "label must be a list, got 'x'"),
        ({"label": [3]}, "label must be a text, got 3"),
        ({"text": "x", "about": "weather"}, "unknown about 'weather'"),
        ({"text": "x", "author": ""}, "author must be a text"),
    ],
)
def test_a_note_that_makes_no_sense_is_refused(
    collector: Running, said: dict[str, Any], error: str
) -> None:
    asked = {"about": "node", "subject": "n1", "author": "Ada"} | said
    answer = collector.http.post("/api/v1/notes", json=asked)
    assert answer.status_code == 400
    assert error in answer.json()["error"]
    assert answer.json()["next"]
    assert collector.client.notes() == []


def test_nothing_can_be_noted_about_what_is_not_there(collector: Running) -> None:
    with pytest.raises(UnknownRun, match="'nobody'"):
        collector.client.note("run", "nobody", "Ada", "x")
    for about in ("incident", "node", "configuration"):
        with pytest.raises((CollectorRefused, UnknownRun, UnknownIncident), match="'nobody'"):
            collector.client.note(about, "nobody", "Ada", "x")
    assert collector.client.notes() == []
