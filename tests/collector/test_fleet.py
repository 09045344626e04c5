"""What the read API says of many runs together, against sums by hand and the runs' own reports."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fleet_collector import DAY, HOUR, LONG, a_fleet, finished, of_node
from headway import cli
from headway.events import Health
from headway.settings import CollectorSettings
from headway.storage.collector_errors import CollectorRefused
from incident_collector import Running, running
from records import ANCHOR, SECOND, record


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("fleet") / "events.duckdb", a_fleet()) as found:
        yield found


def _get(collector: Running, path: str, **query: Any) -> dict[str, Any]:
    response = collector.http.get(f"/api/v1/{path}", params=query)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def test_without_a_window_the_fleet_is_the_sum_of_the_reports(collector: Running) -> None:
    (whole,) = _get(collector, "fleet")["groups"]
    reports = [collector.client.report(run) for run in ("old", "new-1", "new-2")]

    # the live run grows between two questions
    live = whole["wall_time"]["elapsed_ns"] - sum(one["elapsed_ns"] for one in reports)
    assert live == pytest.approx(LONG, abs=3 * SECOND)
    assert (whole["runs"], whole["running"], whole["incidents"]) == (4, 1, 4)
    assert [(one["side"], one["incidents"]) for one in whole["sides"]] == [
        ("machines", 1),
        ("software", 3),
    ]


def test_a_window_reaches_back_from_the_newest_sign_and_tells_what_was_before(
    collector: Running,
) -> None:
    found = _get(collector, "fleet", last=DAY)

    (whole,) = found["groups"]
    assert whole["runs"] == 3
    assert found["end"] == pytest.approx(ANCHOR + LONG, abs=SECOND)
    assert found["end"] - found["start"] == pytest.approx(DAY, abs=300 * SECOND)
    assert (found["before"]["runs"], found["before"]["incidents"]) == (0, 0)
    assert found["before"]["gpu_time"]["training_goodput"] == {"low": None, "high": None}


def test_a_window_of_a_run_is_the_one_that_the_run_itself_gives(collector: Running) -> None:
    start, end = ANCHOR - HOUR + 8 * SECOND, ANCHOR - HOUR + 20 * SECOND

    found = _get(collector, "fleet", name="llama", start=start, end=end - 1)
    own = collector.client.window("new-1", start, end)

    (whole,) = found["groups"]
    assert whole["runs"] == 1
    assert whole["wall_time"]["categories"] == own["categories"]
    assert whole["wall_time"]["training_goodput"]["low"] == own["training_goodput"]["low"]


def test_groups_sum_up_to_the_whole(collector: Running) -> None:
    until = {"end": ANCHOR - 60 * SECOND}  # before the live run
    (whole,) = _get(collector, "fleet", **until)["groups"]

    for by, labels in (("team", ["product", "research"]), ("month", ["2023-10", "2023-11"])):
        groups = _get(collector, "fleet", by=by, **until)["groups"]
        assert [one["label"] for one in groups] == labels
        for name in ("incidents", "attempts"):
            assert sum(one[name] for one in groups) == whole[name]
        spent = [one["gpu_time"]["elapsed_ns"] for one in groups]
        assert sum(spent) == whole["gpu_time"]["elapsed_ns"]


def test_a_month_holds_the_part_of_a_run_that_lies_in_it(collector: Running) -> None:
    old = collector.client.report("old")
    (october, *_) = _get(collector, "fleet", by="month")["groups"]

    assert october["wall_time"]["elapsed_ns"] == old["elapsed_ns"]


def test_the_course_holds_the_time_of_the_window_and_marks_its_incidents(
    collector: Running,
) -> None:
    window = {"start": ANCHOR - 3 * HOUR, "end": ANCHOR - HOUR // 2}
    found = _get(collector, "fleet/course", cells=40, **window)
    (whole,) = _get(collector, "fleet", **window)["groups"]

    cells = found["cells"]
    assert len(cells) <= 40
    assert all(one["end"] - one["start"] == found["width_ns"] for one in cells)
    spent = sum(sum(one["categories"].values()) for one in cells)
    assert spent == whole["gpu_time"]["elapsed_ns"]
    assert sum(one["incidents"] for one in cells) == whole["incidents"] == 2
    marked = [one["costliest"]["run"] for one in cells if one["costliest"] is not None]
    assert marked == ["new-2", "new-1"]


def test_the_runs_that_lose_most_come_first_and_pages_go_on(collector: Running) -> None:
    found = _get(collector, "fleet/runs", last=DAY, limit=2)
    rest = _get(collector, "fleet/runs", last=DAY, limit=2, cursor=found["next"])

    rows = [*found["runs"], *rest["runs"]]
    assert (found["of"], rest["next"]) == (3, None)
    assert rows[0]["run"] == "live"
    lost = [one["lost_gpu_ns"]["low"] for one in rows]
    assert lost == sorted(lost, reverse=True)
    assert rows[0]["largest_loss"]["category"] == "down"
    assert rows[0]["worst_incident"]["cause"] == "gpu_fault"
    strip = rows[-1]["strip"]
    assert (strip[0]["start"], strip[-1]["end"]) == (rows[-1]["start"], rows[-1]["end"])


def test_recovery_can_be_asked_for_one_run_and_is_that_of_its_report(collector: Running) -> None:
    found = _get(collector, "recovery", run="new-1")
    told = collector.client.report("new-1")["recovery"]

    assert found["incidents"] == 1
    assert told["all"].items() <= found["all"].items()
    assert _get(collector, "recovery", cause="gpu_fault")["incidents"] == 1
    assert _get(collector, "recovery", layer="scheduler")["incidents"] == 0


def test_hardware_counts_a_fault_once_and_calls_no_unseen_gpu_healthy(collector: Running) -> None:
    found = _get(collector, "hardware", last=DAY)

    (fault,) = found["faults"]
    assert (fault["fault"], fault["faults"], fault["records"]) == ("Xid 79", 1, 2)
    assert fault["classification"] == "reboot"
    (state,) = found["gpu_states"]
    assert (state["state"], state["detail"]) == ("disabled", "no driver")
    (row,) = found["heatmap"]["nodes"]
    assert row["failures"][-1] == 1


@pytest.mark.parametrize("path", ["fleet", "fleet/course", "fleet/runs", "recovery"])
def test_a_window_is_given_once_and_forwards(collector: Running, path: str) -> None:
    for query in ({"last": 1, "start": 5}, {"start": 5, "end": 4}):
        answer = collector.http.get(f"/api/v1/{path}", params=query)
        assert answer.status_code == 400
        assert answer.json()["next"]


def test_a_heatmap_of_ten_years_is_refused(collector: Running) -> None:
    with pytest.raises(CollectorRefused, match="last is 36"):
        collector.client.get("/api/v1/hardware", {"last": 3_650 * DAY})


def test_no_run_is_no_error(tmp_path: Path) -> None:
    with running(
        tmp_path / "events.duckdb", [of_node(record(1, Health(check="x", state="healthy")))]
    ) as empty:
        (whole,) = _get(empty, "fleet", last=DAY)["groups"]
        assert whole["runs"] == 0
        assert _get(empty, "fleet", by="team")["groups"] == []
        assert _get(empty, "fleet/runs")["runs"] == []
        assert _get(empty, "recovery")["incidents"] == 0
        assert _get(empty, "fleet/course")["width_ns"] > 0


def test_a_price_tells_what_lost_time_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = CollectorSettings(gpu_hour_price=3.6, currency="EUR")
    events = finished("new-1", "bb" * 16, -HOUR, "research")
    with running(tmp_path / "events.duckdb", events, settings=settings) as priced:
        found = _get(priced, "fleet")
        command = ["report", "--fleet", "--endpoint", priced.address]
        assert cli.main(command) == 0
        printed = capsys.readouterr().out
    (whole,) = found["groups"]
    assert found["price"] == {"per_gpu_hour": 3.6, "currency": "EUR"}
    assert whole["lost_cost"]["low"] == pytest.approx(whole["lost_gpu_ns"]["low"] / SECOND / 1_000)
    assert "EUR" in printed


def test_the_terminal_prints_what_the_api_says(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["report", "--fleet", "--by", "team", "--endpoint", collector.address]
    until = "2023-11-14T22:12:00+00:00"
    assert cli.main([*command, "--until", until, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert cli.main([*command, "--until", until]) == 0
    printed = capsys.readouterr().out

    assert [one["label"] for one in found["groups"]] == ["product", "research"]
    assert "product" in printed
    assert "HEADWAY_COLLECTOR_GPU_HOUR_PRICE" in printed
    assert found == _get(collector, "fleet", by="team", end=found["end"])


def test_a_time_ago_is_the_window_that_the_pages_show(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["report", "--fleet", "--since", "24h", "--endpoint", collector.address, "--json"]
    assert cli.main(command) == 0
    found = json.loads(capsys.readouterr().out)

    assert found["start"] == _get(collector, "fleet", last=DAY)["start"]
    assert found["groups"][0]["runs"] == 3


def test_a_part_of_the_fleet_that_ends_before_it_begins_is_refused(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["report", "--fleet", "--endpoint", collector.address]
    times = ["--since", "2023-11-14T22:00:00+00:00", "--until", "2023-11-14T21:00:00+00:00"]
    assert cli.main([*command, *times]) == 2
    assert "newest sign of any run" in capsys.readouterr().err
    assert cli.main([*command, "--exclude", "1h/2h"]) == 2
    assert "one run" in capsys.readouterr().err


def test_the_worst_nodes_can_be_asked_for_alone(collector: Running) -> None:
    whole, worst = _get(collector, "nodes"), _get(collector, "nodes", limit=1)

    assert worst["nodes"] == whole["nodes"][:1]
    assert (worst["of"], worst["repeats"]) == (len(whole["nodes"]), 0)
    assert worst["fleet"] == whole["fleet"]
