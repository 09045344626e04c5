"""`headway ask`: saved questions of a collector, and of a file that none holds any more."""

import csv
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import httpx
import pytest

from headway import cli
from headway.storage.questions import QUESTIONS
from incident_collector import Running, running


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("ask") / "events.duckdb") as found:
        assert found.service._upkeep.say()
        yield found


def test_a_question_is_answered_as_the_api_does(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["ask", "worst-incidents", "--run", "llama", "--endpoint", collector.address]
    assert cli.main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (incident,) = collector.client.incidents()
    (row,) = found["rows"]
    told = dict(zip([column["name"] for column in found["columns"]], row, strict=True))
    assert told["incident"] == incident["incident"]
    assert told["headline"] == incident["headline"]
    assert told["lost_gpu_hours"] == incident["lost_gpu_ns"] / 3.6e12
    assert cli.main([*command, "--csv"]) == 0
    first, second = csv.reader(StringIO(capsys.readouterr().out))
    assert dict(zip(first, second, strict=True))["headline"] == incident["headline"]
    assert cli.main(command) == 0
    assert "Which incidents cost the most?" in capsys.readouterr().out


def test_a_time_is_read_as_people_write_it(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["ask", "worst-incidents", "--json", "--endpoint", collector.address]
    assert cli.main([*command, "--since", "1d"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == []
    assert cli.main([*command, "--since", "2023-11-14T22:00"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 1
    assert cli.main([*command, "--since", "yesterday"]) == 2
    assert "--since: cannot read the time 'yesterday'" in capsys.readouterr().err


def test_without_a_question_they_are_listed_and_their_statements_can_be_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["ask"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in QUESTIONS)
    assert cli.main(["ask", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == [*QUESTIONS]
    assert cli.main(["ask", "what-changed", "--sql"]) == 0
    assert capsys.readouterr().out == QUESTIONS["what-changed"].sql


@pytest.mark.parametrize("words", [["nothing"], ["worst-incidents", "--limit", "many"]])
def test_what_is_no_question_is_wrong_use(words: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        cli.main(["ask", *words])
    assert refused.value.code == 2


def test_a_value_that_the_collector_refuses_is_a_sentence(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["ask", "worst-incidents", "--limit", "0", "--endpoint", collector.address]
    assert cli.main(command) == 2
    assert "limit must be a whole number from 1" in capsys.readouterr().err


@pytest.mark.slow
def test_a_closed_file_answers_as_its_collector_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "events.duckdb"
    before = {}
    with running(path) as found:
        found.service._upkeep.say()
        for name in ("worst-incidents", "what-changed", "faults-per-1000-node-days"):
            assert cli.main(["ask", name, "--json", "--endpoint", found.address]) == 0
            before[name] = json.loads(capsys.readouterr().out)
    for name, answer in before.items():
        assert cli.main(["ask", name, "--json", "--database", str(path)]) == 0
        after = json.loads(capsys.readouterr().out)
        assert after["rows"] == answer["rows"], name
        assert after["columns"] == answer["columns"], name


def test_the_api_lists_questions_and_refuses_others(collector: Running) -> None:
    listed = collector.http.get("/api/v1/questions").json()["questions"]
    assert [one["name"] for one in listed] == [*QUESTIONS]
    unknown = collector.http.get("/api/v1/questions/nothing")
    assert unknown.status_code == httpx.codes.NOT_FOUND
    assert "worst-incidents" in unknown.json()["next"]
    for pair in ("cause=luck", "nobody=1", "cause"):
        refused = collector.http.get(
            "/api/v1/questions/worst-incidents", params={"parameter": pair}
        )
        assert refused.status_code == httpx.codes.BAD_REQUEST
        assert refused.json()["next"]


def test_an_answer_that_is_known_already_is_not_sent_again(collector: Running) -> None:
    path = "/api/v1/questions/recovery-by-cause"
    tag = collector.http.get(path).headers["etag"]
    again = collector.http.get(path, headers={"If-None-Match": tag})
    assert again.status_code == httpx.codes.NOT_MODIFIED


def test_values_are_bound_to_the_parameters_of_any_statement(collector: Running) -> None:
    statement = "SELECT run, $n + 1 AS n FROM v_runs WHERE run_name = $name"
    found = collector.client.sql(statement, parameters={"name": "llama", "n": 1})
    assert found["rows"] == [["llama-1", 2]]
    attack = {"name": "x' OR 'x' = 'x", "n": 1}
    assert collector.client.sql(statement, parameters=attack)["rows"] == []
    for wrong in ({"name": "llama"}, {"name": "a", "n": 1, "m": 2}, {"name": ["a"], "n": 1}, "x"):
        refused = collector.http.post("/api/v1/sql", json={"sql": statement, "parameters": wrong})
        assert refused.status_code == httpx.codes.BAD_REQUEST
        assert refused.json()["next"]


def test_how_many_rows_there_are_is_told_where_they_are_cut(collector: Running) -> None:
    statement = "SELECT range FROM range(5000) -- all;"
    cut = collector.client.sql(statement, 10, counted=True)
    assert (len(cut["rows"]), cut["truncated"], cut["total"]) == (10, True, 5000)
    assert collector.client.sql(statement, 10)["total"] is None
