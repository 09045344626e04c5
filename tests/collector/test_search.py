"""Search over real HTTP: changed settings with what followed, evidence, notes and results."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from headway.cli import main
from headway.events import RunStarted
from incident_collector import Running, running
from timeline import at, timeline

RUN = """
    0       run_started llama
    0       attempt A launcher world=1
    1       configured timeouts=heartbeat:60
    0-100   steps 1-100
    100     fault exception message="link to switch 7 was lost"
    101     exit code=1 by=itself
    110     attempt B launcher world=1
    110     configured timeouts=heartbeat:30
    120-240 steps 1-120
    240     fault exception message="out of memory"
    241     exit code=1 by=itself
    250     attempt C launcher world=1
    260-300 steps 1-40
    300     run_ended completed
"""
OTHER = """
    0       run_started other
    0       attempt D launcher world=1
    1       configured timeouts=barrier:60
    0-100   steps 1-100
    100     run_ended completed
"""


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("search") / "events.duckdb"
    events = [*timeline(RUN, "llama-1"), *timeline(OTHER, "other-1")]
    events = [
        replace(one, event=RunStarted(run_name="\u7ffb\u8a33\u30e2\u30c7\u30eb"))
        if isinstance(one.event, RunStarted) and one.run == "other-1"
        else one
        for one in events
    ]
    with running(path, events, at(400)) as found:
        found.client.note("run", "llama-1", "Zo\u00eb", 'Raise the heartbeat, says "Ops"')
        found.client.attach("ingest", '{"heartbeat": {"rate": 5}}', "Ada", run="llama-1", attempt=2)
        yield found


def test_what_followed_a_change_of_a_setting_is_told(collector: Running) -> None:
    asked = "what happened the last time we changed the heartbeat timeout?"
    found = collector.client.search(asked)["found"]
    first = found[0]
    assert (first["kind"], first["run"], first["attempt"]) == ("configuration", "llama-1", 2)
    assert first["title"] == "llama, attempt 2 changed timeouts.heartbeat"
    assert first["line"] == "timeouts.heartbeat from 1 min 0 s to 30 s"
    followed = first["followed"]
    assert (followed["start"], followed["end"]) == (at(110), at(300))
    assert (followed["attempts"], followed["incidents"]) == (2, 1)
    (met,) = followed["first_incidents"]
    assert met["opened"] == at(240)
    two = {"one_run": "llama-1", "other_run": "llama-1"}
    compared = collector.client.comparison(**two, one_attempt=1, other_attempt=2)
    goodput = compared["figures"][0]
    assert goodput["name"] == "training_goodput"
    assert followed["goodput_before"]["low"] == pytest.approx(goodput["one"]["low"])
    assert followed["goodput"]["low"] == pytest.approx(goodput["other"]["low"])


@pytest.mark.parametrize(
    ("words", "kind", "subject"),
    [
        ("switch 7", "incident", None),
        ('"link to switch"', "incident", None),
        ("Zo\u00eb", "note", "llama-1"),
        ('says "Ops"', "note", "llama-1"),
        ("ingest", "result", "B"),
        ("barrier", "configuration", "D"),
        ("\u30e2\u30c7\u30eb", "configuration", "D"),
    ],
)
def test_each_kind_is_found_by_its_words(
    collector: Running, words: str, kind: str, subject: str | None
) -> None:
    first = collector.client.search(words)["found"][0]
    assert first["kind"] == kind
    assert subject is None or first["subject"] == subject


def test_an_incident_is_found_by_the_beginning_of_its_identity(collector: Running) -> None:
    known = collector.client.report("llama-1")["incidents"][0]["incident"]
    (first, *_) = collector.client.search(known[:8].upper())["found"]
    assert (first["kind"], first["subject"]) == ("incident", known)


def test_kinds_and_runs_are_chosen(collector: Running) -> None:
    found = collector.client.search("heartbeat", kind=["note", "result"])["found"]
    assert {one["kind"] for one in found} == {"note", "result"}
    assert collector.client.search("heartbeat", run="other-1")["found"] == []
    assert len(collector.client.search("heartbeat", limit=1)["found"]) == 1


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"words": "%%"}, 400, "holds no word"),
        ({}, 400, "words must be a text"),
        ({"words": "x", "kind": "thing"}, 400, "unknown kind"),
        ({"words": "x", "run": "gone"}, 404, "gone"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    collector: Running, query: dict[str, str], status: int, said: str
) -> None:
    answer = collector.http.get("/api/v1/search", params=query)
    assert (answer.status_code, said in answer.text) == (status, True)


def test_the_command_tells_what_followed_and_what_to_do_next(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    to = ["--endpoint", collector.address]
    assert main(["search", "heartbeat", "timeout", *to]) == 0
    said = capsys.readouterr().out
    assert "training goodput" in said
    assert "1 incident in 2 attempts" in said
    assert "headway compare llama-1#2 llama-1#1" in said
    assert main(["search", "nothingofthekind", *to]) == 1
    assert "Nothing of" in capsys.readouterr().out
    assert main(["search", "ingest", "--kind", "result", "--json", *to]) == 0
    assert json.loads(capsys.readouterr().out)["found"][0]["title"] == "ingest"
