"""Comparisons over real HTTP: runs, windows, configurations, settings over all runs; refusals."""

from collections.abc import Iterator
from typing import Any

import pytest

from incident_collector import Running, running
from timeline import at, timeline

RUN = """
    0       run_started llama
    0       attempt A launcher world=1
    1       configured timeouts=process_group:10 labels=team:ads
    0-100   steps 1-100
    50      finalized c50 50
    100     fault exception
    101     exit code=1 by=itself
    130     launcher stop_workers
    140     attempt B launcher world=1
    141     configured timeouts=process_group:20 labels=team:ads
    145     resumed 50 from=c50
    150-300 steps 51-200
"""
OTHER = """
    0       run_started other
    0       attempt A launcher world=1
    1       configured timeouts=process_group:20 labels=team:research
    0-200   steps 1-200
    200     run_ended completed
"""
SECOND = 10**9


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("compared") / "events.duckdb"
    events = [
        *timeline(f"{RUN}\n    300 run_ended completed", "llama-1"),
        *timeline(OTHER, "other-1"),
        *timeline(RUN, "live-1"),
    ]
    with running(path, events, at(310)) as found:
        yield found


def elapsed(found: dict[str, Any]) -> tuple[int, int]:
    return found["one"]["elapsed_ns"] // SECOND, found["other"]["elapsed_ns"] // SECOND


def figure(found: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = (item for item in found["figures"] if item["name"] == name)
    return one


def test_two_runs_have_the_figures_of_their_reports(collector: Running) -> None:
    found = collector.client.comparison(one_run="llama", other_run="other-1")
    for side, run in (("one", "llama-1"), ("other", "other-1")):
        report = collector.client.report(run)
        assert found[side]["runs"] == [run]
        assert figure(found, "training_goodput")[side]["low"] == report["training_goodput"]["low"]
        assert figure(found, "share:down")[side]["ns"] == report["categories"]["down"]
    (change,) = (one for one in found["settings"] if one["field"] == "labels")
    assert (change["before"], change["after"]) == ("research", "ads")
    assert not any(one["name"] == "process_group" for one in found["settings"])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (
            {"one_run": "llama-1", "one_attempt": 1, "other_run": "llama-1", "other_attempt": 2},
            (140, 160),
        ),
        (
            {"one_setting": "timeouts.process_group=10s", "other_setting": "process_group=20s"},
            (280, 530),
        ),
        (
            {"one_setting": "process_group=20s", "label": ["team=research"], "other_run": "other"},
            (200, 200),
        ),
        ({"one_end": at(100), "other_start": at(100)}, (300, 510)),
        (
            {"one_run": "llama-1", "one_start": at(0), "one_end": at(50), "other_run": "llama-1"},
            (50, 300),
        ),
        (
            {"one_run": "other", "other_run": "llama-1", "exclude": [f"{at(100)}-{at(150)}"]},
            (150, 250),
        ),
    ],
)
def test_a_side_is_a_run_a_window_or_a_configuration(
    collector: Running, asked: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert elapsed(collector.client.comparison(**asked)) == expected


def test_what_is_unfair_is_said(collector: Running) -> None:
    found = collector.client.comparison(one_run="live-1", other_run="llama-1")
    assert [found["one"]["live"], found["other"]["live"]] == [True, False]
    assert any(doubt.startswith("A is not over") for doubt in found["doubts"])


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"one_run": "gone"}, 404, "gone"),
        ({"one_run": "llama-1", "one_attempt": "9"}, 404, "has 2 attempts and no 9"),
        ({"one_attempt": "1"}, 400, "an attempt without its run"),
        ({"one_setting": "process_group"}, 400, "setting must be NAME=VALUE"),
        ({"one_setting": "colour=red"}, 404, "no run tells of a setting 'colour'"),
        (
            {"one_setting": "process_group=7s"},
            404,
            "There were: timeouts.process_group=10000000000",
        ),
        ({"one_start": str(at(9)), "one_end": str(at(3))}, 400, "ends before it starts"),
        ({"exclude": "now"}, 400, "exclude must be START-END"),
        ({"label": "team"}, 400, "label must be NAME=VALUE"),
    ],
)
def test_a_side_that_is_none_is_refused_in_words(
    collector: Running, asked: dict[str, str], status: int, words: str
) -> None:
    answer = collector.http.get("/api/v1/comparison", params=asked)
    assert answer.status_code == status
    assert words in answer.text
    assert answer.json()["next"]
