"""Fleet, Recovery and Hardware show the numbers of the API and of the terminal."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from fleet_collector import DAY, a_fleet
from headway import cli
from headway.events import RunStarted
from headway.fleet import words
from headway.settings import CollectorSettings
from headway.wording import count, duration, percent, ratio_range, titled
from incident_collector import Running, running
from page_bars import bars
from records import record


def _fleet() -> None:
    from headway.dashboard.views import fleet

    fleet.page()


def _recovery() -> None:
    from headway.dashboard.views import recovery

    recovery.page()


def _hardware() -> None:
    from headway.dashboard.views import hardware

    hardware.page()


PAGES = [_fleet, _recovery, _hardware]


@pytest.fixture(autouse=True)
def _no_answer_of_another_test() -> Iterator[None]:
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = CollectorSettings(gpu_hour_price=3_600.0, currency="EUR")
    path = tmp_path_factory.mktemp("pages") / "events.duckdb"
    with running(path, a_fleet(), settings=settings) as found:
        yield found


def _open(collector: Running, page: Any, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", collector.address)
    at = AppTest.from_function(page, default_timeout=30)
    for name, value in query.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    return at


def _metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def _html(at: AppTest) -> str:
    return "\n".join(element.proto.body for element in at.get("html"))


def _text(at: AppTest) -> str:
    return " ".join(unescape(re.sub("<[^>]*>", " ", _html(at))).split())


def _links(at: AppTest) -> list[str]:
    return [unescape(one) for one in re.findall(r'href="([^"]*)"', _html(at))]


def _ask(collector: Running, path: str, **query: Any) -> dict[str, Any]:
    response = collector.http.get(f"/api/v1/{path}", params=query)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def _told(collector: Running, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    """Return what `headway report --fleet` says of all time."""
    assert cli.main(["report", "--fleet", "--json", "--endpoint", collector.address, *options]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_fleet_page_shows_the_numbers_of_the_terminal_report(
    collector: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = _open(collector, _fleet, monkeypatch, window="all time")
    told = _told(collector, capsys)
    (group,) = told["groups"]

    shown = _metrics(at)
    time = group["gpu_time"]
    assert shown["Training goodput"] == ratio_range(**time["training_goodput"])
    assert shown["Infrastructure goodput"] == ratio_range(**time["infrastructure_goodput"])
    assert shown["GPU time lost"] == words.lost(group["lost_gpu_ns"])
    assert shown["Cost of what was lost"] == words.cost(group["lost_cost"], told["price"])
    assert shown["Open incidents"] == count(group["open_incidents"]) == "1"
    assert shown["Between failures"] == words.mtbf(group["mtbf"])
    assert shown["Recovery, p50"] == duration(group["recovered_ns"]["p50"])
    assert "EUR" in shown["Cost of what was lost"]


@pytest.mark.slow
def test_the_waterfall_leads_from_all_time_to_productive_time(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _fleet, monkeypatch, window="all time")
    (group,) = _ask(collector, "fleet")["groups"]

    first, *others = bars(_html(at), "Waterfall").values()
    assert first == [(0, 100)]
    widths = [width for ((_, width),) in others]
    assert sum(widths) == pytest.approx(100, abs=0.01)
    assert widths[-1] == pytest.approx(100 * group["gpu_time"]["training_goodput"]["low"], abs=0.5)


@pytest.mark.slow
def test_what_incidents_cost_by_cause_is_that_of_the_api(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _fleet, monkeypatch, window="all time")
    causes = _ask(collector, "fleet")["groups"][0]["causes"]

    rows = bars(_html(at), "GPU-hours lost by cause")
    assert list(rows) == [titled(one["cause"]) for one in causes]
    (widest, *_) = causes
    for one, ((begin, width),) in zip(causes, rows.values(), strict=True):
        assert begin == 0
        assert width == pytest.approx(80 * one["lost_gpu_ns"] / widest["lost_gpu_ns"], abs=0.01)


@pytest.mark.slow
def test_a_window_leaves_out_what_lay_before_and_compares_with_it(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _fleet, monkeypatch, window="24 h")
    (group,) = _ask(collector, "fleet", last=DAY)["groups"]

    assert group["runs"] == 3
    shown = {metric.label: metric.delta for metric in at.metric}
    assert shown["Training goodput"] == "nothing before to compare"
    assert not any("run=old" in link for link in _links(at))
    assert any("run=new-1" in link for link in _links(at))


@pytest.mark.slow
def test_every_run_leads_to_its_page_and_to_the_evidence_of_its_costliest_incident(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _fleet, monkeypatch, window="all time")
    rows = _ask(collector, "fleet/runs")["runs"]

    links = _links(at)
    for one in rows:
        assert f"run?run={one['run']}" in links
        assert f"incident?incident={one['worst_incident']['incident']}" in links
    assert "incidents?run=live&state=open" in links


@pytest.mark.slow
def test_the_first_sentence_names_the_run_the_loss_and_whose_fault_incidents_are(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _fleet, monkeypatch, window="all time")

    text = _text(at)
    assert "llama loses most" in text
    assert _links(at)[0] == "run?run=live"
    assert "mainly down" in text
    assert re.search("All incidents cost .*: (machines|software)", text)


@pytest.mark.slow
def test_a_team_and_a_month_can_be_chosen_in_the_address(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _fleet, monkeypatch, window="all time", team="product", by="month")

    links = _links(at)
    assert any("run=new-2" in link for link in links)
    assert not any("run=new-1" in link for link in links)
    assert "2023-11" in _text(at)
    assert "2023-10" not in _text(at)


@pytest.mark.slow
def test_totals_by_team_are_those_of_the_terminal(
    collector: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at = _open(collector, _fleet, monkeypatch, window="all time", by="team")
    groups = _told(collector, capsys, "--by", "team")["groups"]

    table = next(
        one.proto.body for one in at.get("html") if 'aria-label="Totals"' in one.proto.body
    )
    assert [one["label"] for one in groups] == ["product", "research", None]
    for one in groups[:2]:
        cells = re.findall("<td[^>]*>([^<]*)", table[table.index(f">{one['label']}<") :])
        assert cells[3] == ratio_range(**one["gpu_time"]["training_goodput"])
        assert unescape(cells[4]) == words.lost(one["lost_gpu_ns"])
    assert "without it" in table


@pytest.mark.slow
def test_a_team_in_a_link_that_is_gone_says_so(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _fleet, monkeypatch, window="all time", team="nobody")

    assert "No such run lived in this time." in _text(at)


@pytest.mark.slow
def test_recovery_shows_the_rates_of_the_api_with_their_counts(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _recovery, monkeypatch, window="all time")
    found = _ask(collector, "recovery")

    shown = _metrics(at)
    assert shown["Recovered"] == percent(found["all"]["rate"])
    assert shown["Open"] == count(found["all"]["outcomes"]["open"]) == "1"
    assert "too few to compare" in " ".join(one.value for one in at.caption)


@pytest.mark.slow
def test_recovery_of_one_cause_is_chosen_in_the_address(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _recovery, monkeypatch, window="all time", cause="GPU fault")
    found = _ask(collector, "recovery", cause="gpu_fault")

    shown = {metric.label: metric.delta for metric in at.metric}
    assert found["incidents"] == 1
    assert shown["Open"] == "of 1 incident"


@pytest.mark.slow
def test_recovery_of_a_time_without_an_incident_says_what_to_do(
    collector: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events = [record(1, RunStarted(run_name="calm"), run="calm-1")]
    with running(tmp_path / "events.duckdb", events) as calm:
        at = _open(calm, _recovery, monkeypatch)

    assert "No such incident opened in this time" in _text(at)
    assert "Choose a longer time" in _text(at)


@pytest.mark.slow
def test_hardware_says_what_a_fault_means_and_calls_no_unseen_gpu_healthy(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _hardware, monkeypatch, window="all time")
    nodes = _ask(collector, "nodes")

    shown = _metrics(at)
    assert shown["Nodes"] == count(len(nodes["nodes"]))
    assert shown["Failures per 1,000 node-days"] == f"{nodes['fleet']['rate']:,.1f}"
    assert shown["GPUs not seen"] == "1 node"
    text = _text(at)
    assert "GPU has fallen off the bus" in text
    assert "Drain the node and reboot it." in text
    assert "cannot be seen" in text
    assert "no driver" in text
    assert "headway 2026" in text


@pytest.mark.slow
def test_the_heatmap_is_that_of_the_api(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _hardware, monkeypatch, window="24 h")
    found = _ask(collector, "hardware", last=DAY)["heatmap"]

    shown = _html(at)
    (drawn,) = re.findall('<div class="hw-days".*', shown)
    links = re.findall(r'href="hardware\?node=([^"]*)"', drawn)
    assert links == [one["node"] for one in found["nodes"]]
    failed = [count for one in found["nodes"] for count in one["failures"] if count]
    assert failed
    assert re.findall(r'title="[-\d]*: ([^ ]*) failures?"', drawn) == [*map(str, failed)]


@pytest.mark.slow
def test_a_node_in_the_address_shows_its_incidents_and_how_to_cordon_it(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _hardware, monkeypatch, node="n1")
    (one, *_) = _ask(collector, "incidents", node="n1")["incidents"]

    assert "n1: 1 failure" in _text(at)
    assert f"incident?incident={one['incident']}" in _links(at)
    assert any("kubectl cordon n1" in code.value for code in at.code)


@pytest.mark.slow
def test_an_unknown_node_in_a_link_is_a_sentence_with_the_next_step(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = _open(collector, _hardware, monkeypatch, node="gone")

    assert "nothing is known of a node 'gone'" in _text(at).lower()


@pytest.mark.slow
def test_a_run_in_its_first_second_is_drawn_on_every_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events = [record(99, RunStarted(run_name="new"), run="new-1")]
    with running(tmp_path / "events.duckdb", events) as begun:
        for page in PAGES:
            _open(begun, page, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        (_fleet, "No run has been seen yet."),
        (_recovery, "No run has been seen yet."),
        (_hardware, "No node has been heard yet."),
    ],
)
def test_without_a_run_each_page_says_what_to_do(
    page: Any, sentence: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with running(tmp_path / "events.duckdb", []) as empty:
        assert sentence in _text(_open(empty, page, monkeypatch))
