"""The pages say what the collector's API says, in a real session against a real port."""

import dataclasses
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from headway.dashboard import answers
from headway.wording import count, ratio_range
from page_bars import bars
from sample_run import Sample, sample
from stub_collector import collector

LIVE = sample("llama-8b", seed=3, live=True)
ENDED = sample("demo")
GAPS = sample("demo", seed=9, gap=9.0)


def _fleet() -> None:
    from headway.dashboard.views import fleet

    fleet.page()


def _run() -> None:
    from headway.dashboard.views import run

    run.page()


@pytest.fixture(autouse=True)
def _no_answer_of_another_test() -> Iterator[None]:
    st.cache_data.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


def _served(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", address)


@pytest.fixture
def three_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with collector([LIVE, ENDED, GAPS]) as address:
        _served(monkeypatch, address)
        yield


def _open(page: Any, run: str | None = None, view: str | None = None) -> AppTest:
    at = AppTest.from_function(page, default_timeout=30)
    if view is not None:
        at.query_params["view"] = view
    if run is not None:
        at.query_params["run"] = run
    at.run()
    assert not at.exception
    return at


def _metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def _html(at: AppTest) -> str:
    return "\n".join(element.proto.body for element in at.get("html"))


def _captions(at: AppTest) -> str:
    return " ".join(caption.value for caption in at.caption)


@pytest.mark.slow
@pytest.mark.usefixtures("three_runs")
@pytest.mark.parametrize("one", [LIVE, ENDED, GAPS], ids=["live", "ended", "with a range"])
def test_the_run_page_shows_the_reports_goodputs(one: Sample) -> None:
    at = _open(_run, one.report["run"])

    shown = _metrics(at)
    assert shown["Training goodput"] == ratio_range(**one.report["training_goodput"])
    assert shown["Infrastructure goodput"] == ratio_range(**one.report["infrastructure_goodput"])
    assert shown["Attempts"] == count(one.report["attempts"])


@pytest.mark.slow
@pytest.mark.usefixtures("three_runs")
def test_the_run_page_draws_the_ledger_that_the_report_holds() -> None:
    at = _open(_run, ENDED.report["run"])

    _, *parts = [row[0] for row in bars(_html(at), "Waterfall").values()]
    productive = ENDED.report["categories"]["productive"] / ENDED.report["elapsed_ns"]
    assert parts[-1] == (0, pytest.approx(100 * productive, abs=0.01))
    assert sum(width for _, width in parts) == pytest.approx(100, abs=0.01)


@pytest.mark.slow
def test_an_incident_without_a_suspect_or_a_known_rollback_says_so_and_a_node_alone_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, *_ = ENDED.report["incidents"]
    nobody = {"suspect_rank": None, "suspect_node": None, "rollback_steps": None}
    told = [first | nobody, second | {"suspect_rank": None, "suspect_node": "node-7"}]
    run = dataclasses.replace(ENDED, report=ENDED.report | {"incidents": told})
    with collector([run]) as address:
        _served(monkeypatch, address)
        cells = re.findall(r"<td[^>]*>([^<]*)", _html(_open(_run, view="Incidents")))

    assert {"none", "node-7", "unknown"} <= set(cells)
    assert "unknown steps" not in cells


@pytest.mark.slow
@pytest.mark.usefixtures("three_runs")
def test_a_run_name_in_the_address_opens_its_newest_run() -> None:
    at = _open(_run, "demo")

    assert _metrics(at)["Training goodput"] == ratio_range(**ENDED.report["training_goodput"])


@pytest.mark.slow
@pytest.mark.usefixtures("three_runs")
def test_without_a_run_in_the_address_the_newest_opens() -> None:
    at = _open(_run)

    assert _metrics(at)["Training goodput"] == ratio_range(**LIVE.report["training_goodput"])


@pytest.mark.slow
@pytest.mark.usefixtures("three_runs")
def test_an_unknown_run_in_a_link_is_a_sentence_with_the_next_step() -> None:
    at = _open(_run, "deleted-long-ago")

    assert "No run 'deleted-long-ago' is known here." in at_text(at)
    assert "Open the Fleet page" in _html(at)
    assert not at.metric


def at_text(at: AppTest) -> str:
    return _html(at).replace("&#x27;", "'")


@pytest.mark.slow
@pytest.mark.usefixtures("three_runs")
def test_a_live_run_has_an_age_and_an_ended_one_is_final() -> None:
    live, ended = _open(_run, LIVE.report["run"]), _open(_run, ENDED.report["run"])

    assert "Running." in _captions(live)
    assert "Looks again every 5 s" in _html(live)
    assert "these numbers are final" in _captions(ended)


@pytest.mark.parametrize("page", [_fleet, _run])
def test_without_a_collector_a_page_says_so_and_what_to_do(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        _served(monkeypatch, f"http://127.0.0.1:{probe.getsockname()[1]}")

        at = _open(page)

    html = _html(at)
    assert "No collector answers at" in html
    assert "headway collect" in html


@pytest.mark.parametrize("page", [_fleet, _run])
def test_before_the_first_run_a_page_says_how_to_start_one(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with collector([]) as address:
        _served(monkeypatch, address)
        at = _open(page)

    html = _html(at)
    assert "No run has been seen yet." in html
    assert "headway demo" in html


@pytest.mark.slow
def test_when_the_collector_goes_away_the_last_numbers_stay_with_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = AppTest.from_function(_run, default_timeout=30)
    at.query_params["run"] = LIVE.report["run"]
    with collector([LIVE]) as address:
        _served(monkeypatch, address)
        at.run()
    for name in ("LIFETIME", "AT_ONCE"):
        monkeypatch.setattr(answers, name, 0.0)  # the page asks again

    at.run()

    assert not at.exception
    assert "No collector answers at" in _html(at)
    assert _metrics(at)["Training goodput"] == ratio_range(**LIVE.report["training_goodput"])


@pytest.mark.slow
def test_a_run_in_its_first_second_draws_without_a_step_or_an_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = sample("new", live=True)
    nothing = dict.fromkeys(full.report["categories"], 0)
    report = full.report | {
        "elapsed_ns": 0,
        "categories": nothing,
        "parts": {},
        "training_goodput": {"low": None, "high": None},
        "infrastructure_goodput": {"low": None, "high": None},
        "checkpoint": None,
        "steps_at_risk": 0,
        "steps": {"highest": None, "executed": 0, "surviving": 0, "rework": 0, "target": None},
        "attempts": 0,
        "restarts": {},
        "rollbacks": [],
        "attempt_list": [],
        "incidents": [],
        "checkpoints": [],
        "checkpoint_efficiency": None,
    }
    report["formulas"] = {
        name: formula | {"numerator_ns": [0, 0], "denominator_ns": 0}
        for name, formula in full.report["formulas"].items()
    }
    report["gpu_time"] = full.report["gpu_time"] | {"elapsed_gpu_ns": 0}
    with collector([Sample(report=report, intervals=[], points=[])]) as address:
        _served(monkeypatch, address)
        at = _open(_run, report["run"])

    assert _metrics(at)["Training goodput"] == "unknown"
    assert re.search("just begun", _html(at))
