"""The course of a run over real HTTP: bounded, versioned, and refused in words."""

from collections.abc import Iterator

import httpx
import pytest

from headway.collector import course_api
from incident_collector import Running, running
from timeline import at, timeline

RUN = """
    0       run_started llama
    0       attempt A launcher world=8 rank=0..7
    0-100   steps 1-100 rank=0..7 loss=2
    50      finalized c50 50
    100     fault exception rank=3
    101     exit rank=3 code=1 by=itself
    130     launcher stop_workers
    140     attempt B launcher world=8 rank=0..7
    150     resumed 50 from=c50 rank=0..7
    150-300 steps 51-200 rank=0..7 loss=2
"""
PATHS = ("ranks", "pace", "configuration")


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("course") / "events.duckdb"
    live = timeline(RUN, "live-1")
    ended = timeline(f"{RUN}\n    300 run_ended completed", "ended-1")
    with running(path, [*live, *ended], at(310)) as found:
        yield found


def ask(collector: Running, path: str, **headers: str) -> httpx.Response:
    return collector.http.get(f"/api/v1/runs/{path}", headers=headers)


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_that_is_known_is_not_sent_again(collector: Running, path: str) -> None:
    first = ask(collector, f"ended-1/{path}")

    again = ask(collector, f"ended-1/{path}", **{"If-None-Match": first.headers["etag"]})

    assert (first.status_code, again.status_code) == (200, 304)
    assert first.json()["as_of"] > 0


def test_rows_of_the_same_course_share_a_lane_and_cover_every_column(collector: Running) -> None:
    found = ask(collector, "ended-1/ranks?columns=300").json()

    assert found["columns"] == 300
    assert all(sum(lane[::2]) == 300 for lane in found["lanes"])
    assert [row["ranks"] for row in found["rows"]] == [[rank] for rank in range(8)]
    usual = {row["lane"] for row in found["rows"] if row["ranks"] != [3]}
    assert len(usual) == 1
    assert len(found["lanes"]) == 2
    elapsed = found["end"] - found["start"]
    assert all(sum(row["times"].values()) == elapsed for row in found["rows"])


def test_an_answer_that_would_be_too_large_has_wider_columns(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course_api, "MOST_PAIRS", 30)

    found = ask(collector, "live-1/ranks?columns=257").json()

    assert found["columns"] < 257
    assert sum(len(found["lanes"][row["lane"]]) for row in found["rows"]) <= 60


@pytest.mark.parametrize(
    ("query", "rows", "columns"),
    [
        ("rows=3", 3, 1_000),
        ("by=node", 2, 1_000),
        (f"start={at(90)}&end={at(110)}&columns=10", 8, 10),
        (f"start={at(900)}", 8, 1),
        (f"end={at(-900)}", 8, 1),
    ],
)
def test_a_part_and_the_rows_can_be_chosen(
    collector: Running, query: str, rows: int, columns: int
) -> None:
    found = ask(collector, f"ended-1/ranks?{query}").json()

    assert (len(found["rows"]), found["columns"]) == (rows, columns)
    assert found["start"] <= found["end"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        (f"ended-1/ranks?start={at(9)}&end={at(3)}", 400, "is not after start"),
        ("ended-1/ranks?by=rack", 400, "Choose one of: rank, node."),
        ("ended-1/ranks?columns=9000", 400, "must be a number from 1 to 4000"),
        ("gone/pace", 404, "gone"),
    ],
)
def test_what_cannot_be_answered_is_refused_in_words(
    collector: Running, path: str, status: int, words: str
) -> None:
    answer = ask(collector, path)

    assert answer.status_code == status
    assert words in answer.text
    assert answer.json()["next"]


def test_a_live_runs_rows_are_kept_for_as_long_as_a_column_is_wide(collector: Running) -> None:
    coarse, fine = (
        ask(collector, f"live-1/ranks?columns={columns}").headers["etag"] for columns in (10, 310)
    )

    assert coarse != fine
    assert ask(collector, "live-1/ranks?columns=10").headers["etag"] == coarse
    assert ask(collector, "live-1/ranks?columns=12").headers["etag"] != fine


def test_the_pace_tells_steps_and_losses(collector: Running) -> None:
    found = ask(collector, "ended-1/pace?columns=3").json()

    assert [one["steps"] for one in found["columns"]] == [100, 50, 100]
    assert found["columns"][-1]["loss"] == pytest.approx(2 * (1 + 1 / 200))
