"""Incidents, Incident and Explore say what the API and the terminal say, of a real collector."""

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from headway import cli
from headway.dashboard import source
from headway.dashboard.views import explore
from headway.events import Envelope
from headway.storage.questions import QUESTIONS
from headway.wording import count, counted, duration, gpu_hours
from incident_collector import Running, broken, running
from timeline import at as moment
from timeline import timeline
from worked_example import UNALLOCATED

NOW = moment(760)


def broken_now(run: str, producer: str) -> list[Envelope]:
    """A run that broke just now, by an exception in step 12."""
    start = moment(700)
    return [replace(one, anchor=start, wall=start + one.monotonic) for one in broken(run, producer)]


def _incidents() -> None:
    from headway.dashboard.views import incidents

    incidents.page()


def _incident() -> None:
    from headway.dashboard.views import incident

    incident.page()


def _explore() -> None:
    from headway.dashboard.views import explore

    explore.page()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    told = [
        *broken_now("llama-1", "ab" * 16),
        *broken_now("llama-2", "cd" * 16),
        *timeline(UNALLOCATED),
    ]
    with running(tmp_path_factory.mktemp("pages") / "events.duckdb", told, NOW) as found:
        assert found.service._upkeep.say()
        yield found


@pytest.fixture
def collector(served: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", served.address)
    st.cache_data.clear()
    yield served
    st.cache_data.clear()
    st.cache_resource.clear()


def opened(page: Any, **parameters: str) -> AppTest:
    at = AppTest.from_function(page, default_timeout=60)
    for name, value in {"window": "all time", **parameters}.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception, at.exception
    return at


def html(at: AppTest) -> str:
    return unescape("\n".join(element.proto.body for element in at.get("html")))


def text(at: AppTest) -> str:
    """Return what stands in the pieces of HTML, and in captions."""
    told = re.sub(r"<style>.*?</style>", "", html(at), flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", told) + " ".join(one.value for one in at.caption)


def metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def killed(collector: Running) -> dict[str, Any]:
    (one,) = collector.client.incidents("run")
    return collector.client.incident(one["incident"])


def test_the_incidents_page_counts_and_sums_what_the_api_lists(collector: Running) -> None:
    at = opened(_incidents)
    every = collector.client.incidents()
    shown = metrics(at)
    assert shown["Incidents"] == count(len(every)) == "3"
    assert shown["Open"] == count(sum(one["state"] == "open" for one in every))
    assert shown["GPU time lost"] == gpu_hours(sum(one["lost_gpu_ns"] for one in every))
    assert shown["Time lost"] == duration(sum(one["lost_ns"] for one in every))
    assert "Cost" not in shown


@pytest.mark.slow
def test_incidents_of_one_signature_are_one_row_that_leads_to_them(collector: Running) -> None:
    at = opened(_incidents)
    said = html(at)
    assert said.count("<tr>") == 1 + 2
    (group,) = {one["group"] for one in collector.client.incidents() if one["cause"] == "exception"}
    assert f"group={group}" in said
    one_by_one = opened(_incidents, view="One by one", group=group)
    rows = html(one_by_one)
    assert rows.count("<tr>") == 1 + 2
    assert "Only Exception: ValueError" in text(one_by_one)
    assert killed(collector)["incident"] not in rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"state": "Open"}, {"llama-1", "llama-2"}),
        ({"state": "Closed"}, {"run"}),
        ({"cause": "Killed"}, {"run"}),
        ({"node": "n1"}, {"llama-1", "llama-2"}),
        ({"window": "24 h"}, {"llama-1", "llama-2", "run"}),
    ],
)
def test_what_is_chosen_in_the_address_is_what_is_listed(
    collector: Running, chosen: dict[str, str], expected: set[str]
) -> None:
    at = opened(_incidents, view="One by one", **chosen)
    listed = {*re.findall(r'href="run\?run=([^"]+)"', html(at))}
    assert listed == expected


@pytest.mark.slow
def test_older_incidents_are_on_the_next_page_and_the_newest_a_click_away(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.dashboard.views.incidents._AT_ONCE", 2)
    every = [one["incident"] for one in collector.client.incidents()]

    def listed(at: AppTest) -> list[str]:
        assert not at.exception
        return re.findall(r'href="incident\?incident=([^"]+)"', html(at))

    at = opened(_incidents, view="One by one")
    assert listed(at) == every[:2]
    assert "The newest 2 of 3 incidents." in text(at)
    at.button(key="older").click().run()
    assert listed(at) == every[2:]
    assert "1 of 3 incidents, older ones." in text(at)
    at.button(key="newest").click().run()
    assert listed(at) == every[:2]


@pytest.mark.slow
def test_nothing_of_a_kind_says_what_to_do(collector: Running) -> None:
    at = opened(_incidents, cause="Network")
    assert "No incident opened." in text(at)
    assert "Choose a longer time, or fewer conditions." in text(at)


@pytest.mark.slow
def test_the_incident_page_says_what_the_terminal_says(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    one = killed(collector)
    at = opened(_incident, incident=one["incident"])
    assert cli.main(["incident", one["incident"], "--endpoint", collector.address]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert one["headline"] in printed
    lost = gpu_hours(one["lost_gpu_ns"])
    assert re.sub(r"\s", "", f"{one['headline'][:-1]}; {lost} lost") in re.sub(r"\s", "", text(at))
    shown = metrics(at)
    assert shown["Recovered after"] == duration(one["recovered"] - one["opened"]) == "1 min 21 s"
    assert shown["Rolled back"] == counted(one["rollback_steps"], "step") == "74 steps"
    assert shown["GPU time lost"] == gpu_hours(one["lost_gpu_ns"])
    for name, ns in one["phases"].items():
        if ns:
            assert f"{name} {duration(ns)}" in html(at)
            assert f"{name} {duration(ns)}" in printed
    for words in one["evidence"]:
        assert words in text(at)


@pytest.mark.slow
def test_the_story_is_in_order_of_time_and_the_first_fault_stands_out(collector: Running) -> None:
    one = killed(collector)
    at = opened(_incident, incident=one["incident"])
    lines = re.findall(r'<li class="([^"]+)">(.*?)</li>', html(at))
    first = [re.sub(r"<[^>]+>", " ", line) for kind, line in lines if kind == "hw-first"]
    assert len(first) == 1
    assert "ended by signal 9 on rank 3" in first[0]
    assert "first fault" in first[0]
    told = [re.sub(r"<[^>]+>", " ", line) for _, line in lines]
    offsets = [line.split()[0] for line in told]
    assert offsets[0] == "+0"
    begins = next(line for line in told if "Attempt 2 begins" in line)
    assert begins.split()[:4] == ["+1", "min", "8", "s"]
    assert [line for line in told if "Training goes on" in line]


@pytest.mark.slow
def test_a_suspected_node_has_the_command_that_cordons_it(collector: Running) -> None:
    one = killed(collector)
    at = opened(_incident, incident=one["incident"])
    assert [code.value for code in at.code if code.value in one["cordon"]] == one["cordon"]
    assert any(command.startswith("kubectl cordon") for command in one["cordon"])


@pytest.mark.slow
def test_similar_incidents_are_linked(collector: Running) -> None:
    (first,), (second,) = (collector.client.incidents(run) for run in ("llama-1", "llama-2"))
    at = opened(_incident, incident=first["incident"])
    assert f"incident?incident={second['incident']}" in html(at)
    assert "signature, node" in text(at)
    alone = opened(_incident, incident=killed(collector)["incident"])
    assert "No other incident shares" in text(alone)


@pytest.mark.slow
def test_who_has_signed_in_is_asked_for_no_name(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.dashboard.sign_in.person", lambda: "grace@example.org")
    one = killed(collector)
    at = opened(_incident, incident=one["incident"])
    assert not [field for field in at.text_input if field.label == "Your name"]
    at.button(key="ack").click().run()
    found = collector.client.incident(one["incident"])
    assert found["acknowledged_by"] == "grace@example.org"


@pytest.mark.slow
def test_without_the_scope_to_write_the_page_says_so_and_offers_nothing(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = source.answer

    def may_only_read(path: str, **parameters: Any) -> dict[str, Any]:
        return {"scopes": ["read"]} if path == "access" else answer(path, **parameters)

    monkeypatch.setattr("headway.dashboard.source.answer", may_only_read)
    at = opened(_incident, incident=killed(collector)["incident"])
    assert "its token lacks the scope admin" in text(at)
    assert not at.button


@pytest.mark.slow
def test_what_people_say_is_recorded_under_their_name_and_shown(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.dashboard.sign_in.person", lambda: None)
    (one,) = collector.client.incidents("llama-1")
    at = opened(_incident, incident=one["incident"])
    at.button(key="ack").click().run()
    assert "Say who you are first" in text(at)
    at.text_input(key="author").input("Ada \u4e2d").run()
    at.button(key="ack").click().run()
    assert not at.exception
    assert "Ada \u4e2d took charge" in text(at)
    (note,) = (area for area in at.text_area if area.label == "Note")
    note.input("<b>fan</b> replaced")
    (save,) = (button for button in at.button if button.label == "Save the note")
    save.click().run()
    assert "<b>fan</b> replaced" in html(at)
    (cause,) = (box for box in at.selectbox if box.label == "Cause")
    cause.select("network")
    (correct,) = (button for button in at.button if button.label == "Correct")
    correct.click().run()
    found = collector.client.incident(one["incident"])
    assert (found["cause"], found["original_cause"]) == ("network", "exception")
    assert [(said["action"], said["author"]) for said in found["history"]] == [
        ("acknowledged", "Ada \u4e2d"),
        ("noted", "Ada \u4e2d"),
        ("corrected", "Ada \u4e2d"),
    ]
    assert "Network, corrected by Ada \u4e2d" in text(at)
    collector.client.correct(one["incident"], "exception", "the test")


@pytest.mark.slow
def test_a_link_to_an_incident_that_is_gone_or_none_says_what_to_do(collector: Running) -> None:
    assert "no incident 'gone' is known here" in text(opened(_incident, incident="gone")).lower()
    assert "The address names no incident." in text(opened(_incident))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["worst-incidents", "week-against-week", "freshness-at-fault", "longest-phases"]
)
def test_a_saved_question_is_answered_as_the_api_does(collector: Running, name: str) -> None:
    at = opened(_explore, question=name)
    found = collector.client.question(name, limit=1_000)
    if not found["rows"]:
        assert "No row fits." in text(at)
        return
    table = at.dataframe[0].value
    assert [*table.columns] == [column["name"] for column in found["columns"]]
    assert len(table) == len(found["rows"])
    for place, column in enumerate(found["columns"]):
        if not column["type"].startswith("timestamp"):
            expected = [row[place] for row in found["rows"]]
            shown = [None if value != value else value for value in table[column["name"]]]
            assert shown == expected, column
    assert f"{counted(len(found['rows']), 'row')}, after" in text(at)


@pytest.mark.slow
def test_views_that_are_not_written_yet_are_told_from_an_answer_without_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path / "events.duckdb") as new:
        monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", new.address)
        assert "has not written its views yet" in text(opened(_explore))
        new.service._upkeep.say()
        st.cache_data.clear()
        at = opened(_explore, **{"question": "worst-incidents", "with-run": "nobody"})
        assert "No row fits." in text(at)
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.mark.slow
def test_parameters_of_a_question_are_in_the_address(collector: Running) -> None:
    at = opened(
        _explore, **{"question": "worst-incidents", "with-cause": "killed", "with-limit": "5"}
    )
    assert [*at.dataframe[0].value["incident"]] == [killed(collector)["incident"]]
    command = "headway ask worst-incidents --cause killed --limit 5"
    assert command in [code.value for code in at.code]
    at.text_input(key="with-run").input("nobody").run()
    assert "No row fits." in text(at)


@pytest.mark.slow
def test_a_statement_in_the_address_is_answered_and_its_parameters_are_bound(
    collector: Running,
) -> None:
    sql = "SELECT run, $n AS n FROM v_runs WHERE run_name = $name"
    at = opened(_explore, **{"question": "own", "sql": sql, "value-name": "llama", "value-n": "2"})
    assert sorted(at.dataframe[0].value.itertuples(index=False, name=None)) == [
        ("llama-1", 2),
        ("llama-2", 2),
    ]


@pytest.mark.slow
def test_only_a_thousand_rows_are_shown_and_it_says_how_many_there_are(collector: Running) -> None:
    sql = "SELECT range AS n, range % 7 AS m FROM range(12345)"
    at = opened(_explore, question="own", sql=sql)
    assert len(at.dataframe[0].value) == 1_000
    assert "The first 1,000 of 12,345 rows" in text(at)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "error", "step"),
    [
        ("DROP TABLE events", "DROP is not read-only", "Write a SELECT"),
        ("FROM '/etc/passwd'", "cannot be read with SQL", "v_runs"),
        ("SELEKT 1", "syntax error", "Correct the statement."),
    ],
)
def test_a_statement_that_must_not_run_is_words_with_a_next_step(
    collector: Running, sql: str, error: str, step: str
) -> None:
    at = opened(_explore, question="own", sql=sql)
    assert error in text(at)
    assert step in text(at)
    assert not at.dataframe


@pytest.mark.slow
def test_going_on_from_a_question_keeps_its_statement_and_its_values(collector: Running) -> None:
    at = opened(_explore, **{"question": "worst-incidents", "with-cause": "killed"})
    (go_on,) = (one for one in at.button if one.label == "Go on from this statement")
    go_on.click().run()
    assert not at.exception
    assert at.text_area(key="sql").value == QUESTIONS["worst-incidents"].sql
    assert at.text_input(key="value-cause").value == "killed"
    assert [*at.dataframe[0].value["incident"]] == [killed(collector)["incident"]]


def test_files_hold_all_rows_of_the_answer(collector: Running) -> None:
    sql = "SELECT run, opened FROM v_incidents WHERE cause = $cause ORDER BY run"
    table = collector.client.sql_table(sql, parameters={"cause": "exception"})
    lines = [*csv.reader(io.StringIO(explore._csv(table).decode()))]
    assert lines[0] == ["run", "opened"]
    assert [line[0] for line in lines[1:]] == ["llama-1", "llama-2"]
    again = pyarrow.parquet.read_table(io.BytesIO(explore._parquet(table)))
    assert again.to_pylist() == table.to_pylist()
