"""The read API over real HTTP: pages, filters, versions, columns, SQL."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pyarrow
import pytest

from headway.collector.endpoints import ENDPOINTS
from headway.collector.otlp.bodies import PROTOBUF
from headway.events import AttemptStarted, RunConfigured, RunEnded, RunStarted
from headway.storage.collector_errors import CollectorRefused
from headway.storage.connection import ARROW, AS_OF
from headway.storage.questions import QUESTIONS
from incident_collector import Running, broken, running
from otlp_requests import body
from records import ANCHOR, SECOND, record, steps

NUM_RUNS = 5


def run(number: int) -> list[object]:
    """A run of its own producer that began `number` hours after the first."""
    identity, producer = f"llama-{number}", f"{number:032x}"
    begin = number * 3600
    labels = {"team": "research" if number % 2 else "ads"}
    return [
        record(begin + 1, RunStarted(run_name="llama"), producer=producer, run=identity),
        record(begin + 2, RunConfigured(labels=labels), producer=producer, run=identity),
        record(begin + 3, AttemptStarted(layer="launcher"), producer=producer, run=identity),
        steps(begin + 4, begin + 13, producer=producer, run=identity),
        record(begin + 14, RunEnded(reason="completed"), producer=producer, run=identity),
    ]


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    events = [event for number in range(1, NUM_RUNS + 1) for event in run(number)]
    path = tmp_path_factory.mktemp("read") / "events.duckdb"
    now = ANCHOR + (NUM_RUNS + 1) * 3600 * SECOND
    with running(path, [*events, *broken("broken-1", "f" * 32)], now) as found:
        yield found


def get(collector: Running, path: str, **query: object) -> dict[str, object]:
    answer = collector.http.get(f"/api/v1/{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize("limit", [1, 2, NUM_RUNS + 1, 1000])
def test_pages_together_are_the_whole_list(collector: Running, limit: int) -> None:
    found, query = [], {"limit": limit}
    while True:
        answer = get(collector, "runs", **query)
        assert len(answer["runs"]) <= limit
        found += [one["run"] for one in answer["runs"]]
        if answer["next"] is None:
            break
        query["cursor"] = answer["next"]
    newest_first = [f"llama-{number}" for number in range(NUM_RUNS, 0, -1)]
    assert found == [*newest_first, "broken-1"]
    assert found == [one["run"] for one in collector.client.runs()]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ({"state": "completed"}, [5, 4, 3, 2, 1]),
        ({"name": "llama", "label": "team=ads", "state": "completed"}, [4, 2]),
        ({"label": ["team=ads", "team=research"]}, []),
        ({"since": ANCHOR + 4 * 3600 * SECOND, "state": "completed"}, [5, 4]),
        ({"until": ANCHOR + 3 * 3600 * SECOND, "state": "completed"}, [2, 1]),
        ({"name": "nobody"}, []),
    ],
)
def test_runs_are_filtered(
    collector: Running, query: dict[str, object], numbers: list[int]
) -> None:
    found = get(collector, "runs", **query)["runs"]
    assert [one["run"] for one in found] == [f"llama-{number}" for number in numbers]


def test_the_fleet_is_the_sum_of_its_runs(collector: Running) -> None:
    runs = collector.client.runs()
    (whole,) = collector.client.fleet()["groups"]
    assert whole["runs"] == len(runs)
    assert whole["wall_time"]["elapsed_ns"] == sum(one["elapsed_ns"] for one in runs)
    assert sum(whole["wall_time"]["categories"].values()) == whole["wall_time"]["elapsed_ns"]
    groups = collector.client.fleet("team")["groups"]
    assert [(one["label"], one["runs"]) for one in groups] == [
        ("ads", 2),
        ("research", 3),
        (None, 1),
    ]
    ads = groups[0]["wall_time"]
    productive = ads["categories"]["productive"]
    assert ads["training_goodput"]["low"] == productive / ads["elapsed_ns"]


def test_parts_of_a_report_come_in_pages(collector: Running) -> None:
    report = collector.client.report("broken-1")
    assert get(collector, "runs/broken-1/attempts")["attempts"] == report["attempt_list"]
    assert get(collector, "runs/broken-1/checkpoints")["checkpoints"] == report["checkpoints"]
    first = get(collector, "runs/llama-1/attempts", limit=1)
    assert [len(first["attempts"]), first["next"]] == [1, None]


def test_incidents_are_filtered(collector: Running) -> None:
    (one,) = collector.client.incidents()
    assert collector.client.incidents(state=one["state"], cause=one["cause"]) == [one]
    assert collector.client.incidents(cause="network") == []
    assert collector.client.incidents(until=one["opened"]) == []
    assert collector.client.incidents(since=one["opened"]) == [one]
    assert collector.client.incidents(node="elsewhere") == []


def test_events_come_in_order_of_time_and_in_pages(collector: Running) -> None:
    found = collector.client.events(run="llama-1")
    assert [one["name"] for one in found] == [
        "run.started",
        "run.configured",
        "attempt.started",
        "steps",
        "run.ended",
    ]
    assert found[1]["fields"]["labels"] == {"team": "research"}
    pages, query = [], {"run": "llama-1", "limit": 2}
    while True:
        answer = get(collector, "events", **query)
        pages += answer["events"]
        if answer["next"] is None:
            break
        query["cursor"] = answer["next"]
    assert pages == found
    assert {one["run"] for one in collector.client.events(name="run.ended")} == {
        f"llama-{number}" for number in range(1, NUM_RUNS + 1)
    }
    begin = found[3]["time"]
    assert [one["name"] for one in collector.client.events(run="llama-1", since=begin)] == [
        "steps",
        "run.ended",
    ]
    assert collector.client.events(run="llama-1", until=begin) == found[:3]
    assert collector.client.events(run="llama-1", rank=7) == []


def test_what_was_measured_of_each_step_is_read_in_columns(collector: Running) -> None:
    table = collector.client.step_records("llama-1", first=3606, last=3608, rank=0)
    assert table.to_pylist() == [
        {
            "step": number,
            "start": ANCHOR + (number - 1) * SECOND,
            "duration": SECOND,
            "data_wait": 0,
            "loss": float(number),
            "samples": number,
            "attempt": "a1",
            "rank": 0,
            "node": "n1",
        }
        for number in (3606, 3607, 3608)
    ]
    assert (
        table.to_pylist()
        == get(collector, "runs/llama-1/step_records", first=3606, last=3608)["steps"]
    )
    assert collector.client.step_records("llama-1", rank=5).num_rows == 0


BULK = [
    ("/api/v1/runs/llama-1/intervals", "intervals"),
    ("/api/v1/runs/llama-1/step_records", "steps"),
    ("/api/v1/events", "events"),
]


@pytest.mark.parametrize(("path", "name"), BULK)
def test_bulk_answers_say_the_same_in_columns(collector: Running, path: str, name: str) -> None:
    rows = collector.http.get(path).json()[name]
    for asked in ({"params": {"format": "arrow"}}, {"headers": {"Accept": ARROW}}):
        answer = collector.http.get(path, **asked)
        assert answer.headers["content-type"] == ARROW
        table = pyarrow.ipc.open_stream(answer.content).read_all()
        assert [plain(row) for row in table.to_pylist()] == rows
    assert collector.http.get(path, params={"format": "xml"}).status_code == 400


def plain(row: dict[str, object]) -> dict[str, object]:
    """Return a row of columns as JSON tells it."""
    for name, read in (("fields", json.loads), ("amounts", dict)):
        if name in row:
            row[name] = read(row[name])
    return row


GETS = [one.path for one in ENDPOINTS if one.method == "GET"]
TELL_THE_TIME = {"/api/v1/health", "/api/v1/health/nodes", "/api/v1/health/runs"}
QUERIES = {
    "/api/v1/comparison": {"one_run": "broken-1", "other_run": "broken-1"},
    "/api/v1/search": {"words": "ValueError"},
}


@pytest.fixture(scope="module")
def over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A collector whose only run is over."""
    end = record(15, RunEnded(reason="failed"), producer="f" * 32, run="broken-1")
    path = tmp_path_factory.mktemp("over") / "events.duckdb"
    with running(path, [*broken("broken-1", "f" * 32), end]) as found:
        yield found


def asked(collector: Running, path: str, tag: str | None = None) -> httpx.Response:
    """Ask an endpoint about what there is, as who has the answer with this tag."""
    named = {
        "run": "broken-1",
        "node": "n1",
        "incident": collector.client.incidents()[0]["incident"],
        "question": next(iter(QUESTIONS)),
        "rule": "RestartLoop",
    }
    headers = {} if tag is None else {"If-None-Match": f'"other", W/{tag}'}
    url = path.format_map(named)
    return collector.http.get(url, params=QUERIES.get(path, {}), headers=headers)


@pytest.mark.parametrize("path", GETS)
def test_what_did_not_change_is_not_sent_again(over: Running, path: str) -> None:
    first = asked(over, path)
    assert first.status_code == 200, first.text
    again = asked(over, path, first.headers["ETag"])
    if path not in TELL_THE_TIME:
        assert (again.status_code, again.content) == (304, b"")
    assert asked(over, path, '"of-another-answer"').status_code == 200


@pytest.mark.parametrize("path", ["/api/v1/runs", "/api/v1/runs/{run}/report", "/api/v1/incidents"])
def test_what_is_confirmed_says_up_to_when_it_is_true(over: Running, path: str) -> None:
    first = asked(over, path)
    again = asked(over, path, first.headers["ETag"])

    assert again.status_code == 304
    assert first.json()["as_of"] <= int(first.headers[AS_OF]) < int(again.headers[AS_OF])


@pytest.mark.slow
def test_what_changed_is_sent_by_every_endpoint(tmp_path: Path) -> None:
    with running(tmp_path / "events.duckdb", broken("broken-1", "f" * 32)) as collector:
        before = {path: asked(collector, path) for path in GETS}
        (incident,) = collector.client.incidents()
        collector.client.acknowledge(incident["incident"], "Ada")
        end = record(20, RunEnded(reason="failed"), producer="f" * 32, run="broken-1")
        collector.http.post("/v1/logs", content=body([end]), headers={"content-type": PROTOBUF})
        sent = set()
        for path, first in before.items():
            again = asked(collector, path, first.headers["ETag"])
            now = asked(collector, path)
            assert (again.status_code == 304) == (now.content == first.content), path
            if again.status_code == 200:
                sent.add(path)
        assert {"/api/v1/runs", "/api/v1/incidents", "/api/v1/fleet", "/api/v1/events"} <= sent


def test_columns_and_rows_have_versions_of_their_own(collector: Running) -> None:
    path = "/api/v1/events"
    rows, columns = collector.http.get(path), collector.http.get(path, params={"format": "arrow"})
    assert rows.headers["ETag"] != columns.headers["ETag"]
    assert rows.headers["Vary"] == columns.headers["Vary"] == "Accept"


@pytest.mark.parametrize(
    ("path", "query", "error"),
    [
        ("runs", {"limit": 0}, "limit must be a number from 1 to 1000, got '0'"),
        ("runs", {"limit": "ten"}, "limit must be a number from 1 to 1000, got 'ten'"),
        ("runs", {"limit": ["1", "2"]}, "limit is given 2 times"),
        ("runs", {"limt": 1}, "unknown parameter 'limt'"),
        ("runs", {"state": "asleep"}, "unknown state 'asleep'"),
        ("runs", {"label": "team"}, "label must be NAME=VALUE, got 'team'"),
        ("runs", {"cursor": "%%%"}, "cursor '%%%' is not one of these pages"),
        ("runs", {"cursor": "WyJ4IiwgInkiXQ=="}, "is not one of these pages"),
        ("runs", {"cursor": "WzFd"}, "is not one of these pages"),
        ("runs", {"cursor": "e30="}, "is not one of these pages"),
        ("events", {"cursor": "WyJ4IiwgInkiXQ=="}, "is not one of these pages"),
        ("events", {"cursor": "Wzk5OTk5OTk5OTk5OTk5OTk5OTk5LCAieCIsIDFd"}, "is not one of these"),
        ("events", {"name": "teleported"}, "unknown name 'teleported'"),
        ("runs/llama/step_records", {"first": -1}, "first must be a number from 1"),
        ("incidents", {"since": "9" * 40}, "since must be a number from 0"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_in_words(
    collector: Running, path: str, query: dict[str, object], error: str
) -> None:
    answer = collector.http.get(f"/api/v1/{path}", params=query)
    assert answer.status_code == 400
    assert error in answer.json()["error"]
    assert answer.json()["next"]


def test_what_to_do_about_a_value_is_said(collector: Running) -> None:
    answer = collector.http.get("/api/v1/runs", params={"limit": 0})
    step = "Leave limit out for 100, or correct it. Most items of a page."
    assert answer.json()["next"] == step
    answer = collector.http.get("/api/v1/runs", params={"since": "yesterday"})
    assert answer.json()["next"].startswith("Leave since out, or correct it. Only runs that lived")


def test_sql_answers_rows_and_columns(collector: Running) -> None:
    statement = "SELECT run, count(*) AS n FROM events GROUP BY run ORDER BY run LIMIT 2"
    found = collector.client.sql(statement)
    assert [column["name"] for column in found["columns"]] == ["run", "n"]
    assert found["rows"] == [["broken-1", 5], ["llama-1", 5]]
    assert not found["truncated"]
    assert collector.client.sql_table(statement).to_pydict() == {
        "run": ["broken-1", "llama-1"],
        "n": [5, 5],
    }
    cut = collector.client.sql("FROM events", limit=3)
    assert (len(cut["rows"]), cut["truncated"]) == (3, True)


def test_sql_tells_every_value_that_json_knows_and_those_it_does_not(collector: Running) -> None:
    found = collector.client.sql(
        "SELECT 1, 1.5::DECIMAL(4, 2), 'NaN'::DOUBLE, NULL, true, 'x'::BLOB, [1, 2], {'a': 1}, "
        "MAP {'k': 1}, DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05', INTERVAL 1 DAY, "
        "170141183460469231731687303715884105727::HUGEINT, 1, 1"
    )
    assert found["rows"][0][:10] == [
        1,
        1.5,
        None,
        None,
        True,
        "eA==",
        [1, 2],
        {"a": 1},
        [["k", 1]],
        "2026-01-02",
    ]
    assert found["rows"][0][10] == "2026-01-02T03:04:05"
    assert found["rows"][0][12] == 170141183460469231731687303715884105727
    assert len(collector.client.sql_table("SELECT 1 AS a, 2 AS a").schema.names) == 2


def test_sql_tells_values_that_python_has_not(collector: Running) -> None:
    found = collector.client.sql(
        "SELECT row(1, 2), [row(3, NULL)], list_zip([1], ['a']), {'a': DATE '99999-01-01'}, "
        "DATE '99999-01-01', TIMESTAMPTZ '30000-01-01', 'infinity'::TIMESTAMP, DATE '-infinity', "
        "MAP {DATE '99999-01-01': row(1, 2)}"
    )
    (row,) = found["rows"]
    assert row[:3] == [[1, 2], [[3, None]], [[1, "a"]]]
    assert row[5].startswith("30000-01-01")
    assert all("range" in each for each in (row[3]["a"], row[4], row[6], row[7], row[8][0][0]))
    assert row[8][0][1] == [1, 2]


def test_refused_sql_is_a_sentence(collector: Running) -> None:
    with pytest.raises(CollectorRefused, match="DELETE is not read-only"):
        collector.client.sql("DELETE FROM events")
    assert collector.http.post("/api/v1/sql", content=b"SELECT 1").status_code == 400
    assert collector.http.post("/api/v1/sql", json={"sql": 5}).status_code == 400
    assert collector.http.post("/api/v1/sql", json={"sql": "x" * 70_000}).status_code == 413
    assert collector.http.get("/api/v1/sql").status_code == 405


def test_more_queries_than_may_run_are_asked_to_wait(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = collector.service.store.reading.sql
    monkeypatch.setattr(taken, "_room", NoRoom())
    answer = collector.http.post("/api/v1/sql", json={"sql": "SELECT 1"})
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "1"


class NoRoom:
    """A semaphore that others hold."""

    def acquire(self, *, blocking: bool) -> bool:
        return blocking


def test_what_sql_can_read_is_told_with_its_meaning(collector: Running) -> None:
    views = {view["name"]: view["columns"] for view in collector.client.views()}
    assert "events" in views
    for name, columns in views.items():
        described = collector.client.sql(f"DESCRIBE {name}")["rows"]
        assert [row[0] for row in described] == [column["name"] for column in columns]
        assert all(column["sentence"] for column in columns)


def test_health_tells_what_arrived(collector: Running) -> None:
    health = collector.client.health()
    assert health["runs"] == NUM_RUNS + 1
    assert health["nodes"] == 1
    assert health["open_gaps"] == 0
    assert health["records"]["stored"] > NUM_RUNS * 5


def test_a_client_that_knows_no_run_of_a_step_record_is_told(collector: Running) -> None:
    answer = httpx.get(f"{collector.address}/api/v1/runs/nobody/step_records")
    assert answer.status_code == 404
    assert "nobody" in answer.json()["error"]
