"""The Run page over a real collector: its numbers are those of the API and of `headway report`."""

import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import pairwise
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from headway.__main__ import main
from headway.events import RunConfigured
from headway.wording import count, duration, percent, ratio_range
from incident_collector import Running, running
from page_bars import bars
from timeline import Timeline, at, seconds, timeline

VIEWS = {
    "Course": "Attempts",
    "Ranks": "Ranks over time",
    "Checkpoints": None,
    "Incidents": "Restarts left",
    "Settings": "Longest phases against timeouts",
    "Compare": None,
    "Notes": None,
}
"""Each tab with a heading that it always shows."""
BROKEN = """
    0       run_started broken
    0       allocation 2
    0       attempt A1 launcher world=2 rank=0..1
    0-10    phase model rank=0..1
    10-40   steps 1-30 each=0.9 wait=0.1 loss=2 rank=0..1
    20      scheduled c10 10 blocking=1
    22      finalized c10 10
    30      scheduled c20 20 blocking=2
    32      finalized c20 20
    40      fault exception rank=1
    41      exit rank=1 code=1 by=itself
    41      budget launcher 2 limit=3
    50      launcher stop_workers
    52      exit rank=0 signal=15 by=launcher
    60      attempt B2 launcher world=2 rank=0..1
    60-65   phase checkpoint_load rank=0..1
    65      resumed 20 from=c20 rank=0..1
    65-105  steps 21-60 each=0.9 wait=0.1 loss=2 rank=0..1
"""
ENDED = """
    105     run_ended completed
    105     exit code=0
    105     exit code=0 rank=1
"""
BARE = """
    0       run_started bare
    0       attempt A launcher world=1
    0-50    steps 1-50
    50      run_ended completed
"""
STEPLESS = """
    0       run_started stepless
    0       attempt A launcher world=1
    5       fault exception
    6       exit code=1 by=itself
"""


def events(text: str, run: str) -> list[Any]:
    return [
        one.__class__(**{**_fields(one), "producer": f"{run} {one.producer}"})
        for one in timeline(text, run)
    ]


def _fields(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__slots__}


def configured() -> list[Any]:
    """What two attempts of the broken run told of themselves."""
    built = Timeline("broken-1")
    links = {"tracker": "https://tracker.example/run/7", "logs": "not an address"}
    for begin, attempt, rate in ((1, "A1", 0.1), (61, "B2", 0.25)):
        built.attempt = attempt
        told = RunConfigured(
            target_step=100, options={"lr": rate}, links=links, labels={"team": "Zo\u00eb"}
        )
        built.emit(seconds(begin), told)
    return built.envelopes


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    told = [
        *events(BROKEN + ENDED, "broken-1"),
        *events(BROKEN, "live-1"),
        *events(BARE, "bare-1"),
        *events(STEPLESS, "stepless-1"),
        *configured(),
    ]
    path = tmp_path_factory.mktemp("page") / "events.duckdb"
    with running(path, told, at(110)) as found:
        yield found


@pytest.fixture(autouse=True)
def _asks_it(collector: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", collector.address)
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


def _run() -> None:
    from headway.dashboard.views import run

    run.page()


def opened(run: str, **address: str) -> AppTest:
    found = AppTest.from_function(_run, default_timeout=30)
    for name, value in {"run": run, **address}.items():
        found.query_params[name] = value
    found.run()
    assert not found.exception
    return found


def metrics(page: AppTest) -> dict[str, tuple[str, str]]:
    return {one.label: (one.value, one.delta) for one in page.metric}


def html(page: AppTest) -> str:
    return "\n".join(element.proto.body for element in page.get("html"))


def captions(page: AppTest) -> str:
    return " ".join(caption.value for caption in page.caption)


def cells(page: AppTest) -> list[str]:
    return re.findall(r"<td[^>]*>(?:<[^>]*>)*([^<]*)", html(page))


def printed(run: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        assert main(["report", run]) == 0
    return out.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("run", ["broken-1", "bare-1", "live-1"])
def test_the_numbers_are_those_of_the_report_on_the_page_and_in_the_terminal(
    collector: Running, run: str
) -> None:
    report = collector.client.report(run)
    shown = metrics(opened(run))

    for title, ratio in (
        ("Training goodput", "training_goodput"),
        ("Infrastructure goodput", "infrastructure_goodput"),
    ):
        assert shown[title][0] == ratio_range(**report[ratio])
        assert re.search(rf"{title}\s+{re.escape(shown[title][0])}\s", printed(run))
    assert shown["Highest step"][0] == count(report["steps"]["highest"])
    assert shown["Attempts"][0] == count(report["attempts"])


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("run", ["broken-1", "live-1", "bare-1", "stepless-1"])
def test_every_tab_of_every_kind_of_run_is_drawn(run: str, view: str) -> None:
    page = opened(run, view=view)

    headings = {header.value for header in page.header}
    others = {heading for name, heading in VIEWS.items() if name != view} - {None}
    assert {VIEWS[view]} - {None} <= headings
    assert not headings & others
    assert not page.error


def test_the_ledger_sums_to_the_whole_and_shows_the_unattributed() -> None:
    page = opened("broken-1")

    rows = bars(html(page), "Waterfall")
    (elapsed, *parts) = [row[0] for row in rows.values()]
    assert elapsed == (0, 100)
    assert sum(width for _, width in parts) == pytest.approx(100, abs=0.01)
    assert "Unattributed" in rows


@pytest.mark.slow
def test_steps_fall_at_a_rollback() -> None:
    page = opened("broken-1")

    figures = [json.loads(one.proto.spec)["data"] for one in page.get("plotly_chart")]
    steps = next(one["y"] for data in figures for one in data if one.get("name") == "Step")
    falls = [(a, b) for a, b in pairwise(steps) if b < a]
    assert falls == [(30, 20)]


@pytest.mark.slow
def test_a_live_run_with_a_target_says_how_long_it_has_to_go_and_others_what_to_record(
    collector: Running,
) -> None:
    assert metrics(opened("live-1"))["Time to target"] == ("unknown", "record target_step")
    ended = collector.client.report("broken-1")
    assert metrics(opened("broken-1"))["Time it took"][0] == duration(ended["elapsed_ns"])


@pytest.mark.slow
def test_the_checkpoint_tab_tells_what_the_api_says_of_the_writes(collector: Running) -> None:
    writing = collector.client.report("broken-1")["checkpoint_writing"]

    shown = metrics(opened("broken-1", view="Checkpoints"))

    assert shown["Training waits for a save"][0] == duration(writing["blocking_ns"]["p50"])
    assert shown["Write in the background"][0] == duration(writing["background_ns"]["p50"])
    assert shown["Write against interval"][0] == percent(writing["write_to_interval"]["mean"])


@pytest.mark.slow
def test_a_run_without_checkpoints_or_steps_says_what_to_record() -> None:
    assert "Record CheckpointScheduled" in captions(opened("bare-1", view="Checkpoints"))
    assert "No step has been completed yet." in captions(opened("stepless-1"))


@pytest.mark.slow
def test_the_incidents_tab_links_each_incident_and_tells_the_restarts_left(
    collector: Running,
) -> None:
    (one,) = collector.client.report("broken-1")["incidents"]

    page = opened("broken-1", view="Incidents")

    assert f'href="incident?incident={one["incident"]}"' in html(page)
    assert {"Launcher", "2", "3"} <= set(cells(page))


@pytest.mark.slow
def test_the_settings_tab_tells_what_changed_since_the_attempt_before() -> None:
    page = opened("broken-1", view="Settings")

    found = cells(page)
    place = found.index("Options: lr")
    assert found[place : place + 3] == ["Options: lr", "0.1", "0.25"]
    first = opened("broken-1", view="Settings", attempt="1")
    assert "0.25" not in cells(first)


@pytest.mark.slow
def test_links_lead_out_only_where_they_are_web_addresses_and_labels_survive() -> None:
    page = opened("broken-1")

    assert 'href="https://tracker.example/run/7"' in html(page)
    assert "team: Zo\u00eb" in html(page)
    assert "not an address" not in html(page)


@pytest.mark.slow
def test_two_runs_stand_side_by_side_as_the_api_compares_them(collector: Running) -> None:
    answer = collector.http.get("/api/v1/comparison?one_run=broken-1&other_run=bare-1").json()
    goodput = answer["figures"][0]

    page = opened("broken-1", view="Compare", other="bare-1")

    found = cells(page)
    place = found.index("Training goodput")
    assert found[place + 1 : place + 3] == [
        ratio_range(goodput[side]["low"], goodput[side]["high"]) for side in ("one", "other")
    ]
    assert found[place + 3] == f"{goodput['difference']['low'] * 100:+.1f} pp"
    assert found[place + 4] == "too few to tell it from chance"


@pytest.mark.slow
def test_the_table_of_ranks_tells_their_times_as_the_api_does(collector: Running) -> None:
    rows = collector.http.get("/api/v1/runs/broken-1/ranks").json()["rows"]

    found = cells(opened("broken-1", view="Ranks"))

    for row in rows:
        place = found.index(f"Rank {row['ranks'][0]} on {row['node']}")
        assert found[place + 1].startswith(duration(row["times"]["productive"]))


@pytest.mark.slow
def test_a_part_of_a_run_in_the_address_is_asked_for(collector: Running) -> None:
    begin, end = at(35) // 10**6, at(65) // 10**6

    page = opened("broken-1", view="Ranks", **{"from": str(begin), "to": str(end)})

    assert f"start={at(35)}&end={at(65)}" in " ".join(one.value for one in page.code)
