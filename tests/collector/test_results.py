"""Results of benchmarks and drills over HTTP: attached, listed, compared, kept over a start."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.collector.result_api import LONGEST_CONTENT
from headway.collector.results import Results
from headway.events import Envelope, ResultAttached
from headway.redaction import MASK
from headway.storage.collector_errors import CollectorRefused
from incident_collector import Running, running
from timeline import at, timeline

RUN = """
    0       run_started llama
    0       attempt A launcher world=1
    1       configured timeouts=process_group:10
    0-100   steps 1-100
    100     fault exception
    101     exit code=1 by=itself
    140     attempt B launcher world=1
    141     configured timeouts=process_group:20
    150-300 steps 1-150
    300     run_ended completed
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results") / "events.duckdb"


@pytest.fixture(scope="module")
def collector(path: Path) -> Iterator[Running]:
    with running(path, timeline(RUN, "llama-1"), at(400)) as found:
        yield found


def attach(collector: Running, number: float, **to: object) -> dict[str, object]:
    content = json.dumps({"rate": number, "api_key": "sk-1234567890abcdef1234567890"})
    return collector.client.attach("ingest", content, "Ada", **to)


def test_results_stay_with_their_configuration_and_compare(collector: Running, path: Path) -> None:
    before = collector.client.report("llama-1")
    first = attach(collector, 10.0, run="llama", attempt=1)
    newest = attach(collector, 15.0, run="llama-1")
    assert (first["configuration"], newest["configuration"]) == ("A", "B")
    assert attach(collector, 15.0, configuration="B") == newest

    found = collector.client.results(run="llama-1")
    assert [one["numbers"] for one in found] == [{"rate": 15.0}, {"rate": 10.0}]
    assert found[0]["content"] == {"api_key": MASK, "rate": 15.0}
    assert collector.client.results(configuration="A") == [found[1]]
    assert collector.client.results(title="drill") == []

    two = {"one_run": "llama-1", "other_run": "llama-1", "one_attempt": 2, "other_attempt": 1}
    compared = collector.client.comparison(**two)["figures"]
    (rate,) = (one for one in compared if one["name"] == "result:ingest: rate")
    assert (rate["one"]["low"], rate["other"]["low"], rate["difference"]["low"]) == (15, 10, 5)
    sql = collector.client.sql("SELECT attempt, title FROM v_results ORDER BY time")
    assert sql["rows"] == [["A", "ingest"], ["B", "ingest"]]
    # a word about a run is no sign that it lives
    after = collector.client.report("llama-1")
    assert (after["end"], after["categories"]) == (before["end"], before["categories"])


@pytest.mark.parametrize(
    ("content", "to", "words"),
    [
        ("{", {"run": "llama-1"}, "the result is no JSON"),
        ("[1]", {"run": "llama-1"}, "no JSON object"),
        ("[" * 50_000, {"run": "llama-1"}, "the result is no JSON"),
        # what no answer in JSON can hold would be one that cannot be listed
        ('{"p99": NaN}', {"run": "llama-1"}, "the result is no JSON"),
        ('{"p99": 1e999}', {"run": "llama-1"}, "the result is no JSON"),
        (r'{"node": "\ud800"}', {"run": "llama-1"}, "the result is no JSON"),
        ('{"a":' * 900 + "1" + "}" * 900, {"run": "llama-1"}, "the result is no JSON"),
        ("x" * (LONGEST_CONTENT + 1), {"run": "llama-1"}, "characters, more than"),
        ("{}", {}, "of which configuration?"),
        ("{}", {"run": "llama-1", "configuration": "A"}, "of which configuration?"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    collector: Running, content: str, to: dict[str, str], words: str
) -> None:
    with pytest.raises(CollectorRefused, match=words.replace("?", r"\?")):
        collector.client.attach("ingest", content, "Ada", **to)


@pytest.mark.parametrize(
    ("to", "words"),
    [
        ({"run": "gone"}, "gone"),
        ({"run": "llama-1", "attempt": 3}, "has 2 attempts and no 3"),
        ({"configuration": "Z"}, "no attempt 'Z' is known"),
    ],
)
def test_an_unknown_configuration_is_refused(
    collector: Running, to: dict[str, object], words: str
) -> None:
    said = {"title": "b", "content": "{}", "author": "Ada", **to}
    answer = collector.http.post("/api/v1/results", json=said)
    assert (answer.status_code, words in answer.text) == (404, True)


@pytest.mark.parametrize("content", ["no JSON", "[1]", '{"p99": NaN}', "[" * 50_000])
def test_what_another_program_sent_and_nobody_can_read_hides_no_other_result(content: str) -> None:
    event = ResultAttached(title="ingest", content=content, configuration="A", author="Ada")
    readable = dataclasses.replace(event, content='{"rate": 1}')
    results = Results()

    results.add([*timeline(RUN, "llama-1"), _sent(event), _sent(readable)])

    assert [one.numbers for one in results.all()] == [{"rate": 1.0}]


def _sent(event: ResultAttached) -> Envelope:
    return Envelope(
        producer="p",
        anchor=0,
        first_sequence=0,
        last_sequence=0,
        run="llama-1",
        wall=at(400),
        monotonic=at(400),
        event=event,
    )


def test_results_are_there_after_another_start(tmp_path: Path) -> None:
    path = tmp_path / "events.duckdb"
    with running(path, timeline(RUN, "llama-1"), at(400)) as collector:
        kept = attach(collector, 1.0, run="llama-1")
    with running(path, [], at(500)) as collector:
        assert collector.client.results() == [kept]
