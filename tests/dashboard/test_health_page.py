"""The Health page says what the API says, and no page sends a table of millions to a browser."""

from collections.abc import Iterator
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from headway.dashboard import source
from headway.dashboard.views import reader
from headway.events import (
    AgentCost,
    AttemptStarted,
    Dropped,
    RecorderCost,
    RunConfigured,
    RunStarted,
)
from headway.wording import count, size
from incident_collector import Running, running
from records import ANCHOR, SECOND, record, steps

FAULTY = "1" * 32


def _health() -> None:
    from headway.dashboard.views import health

    health.page()


def _explore() -> None:
    from headway.dashboard.views import explore

    explore.page()


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    events = [
        record(1, RunStarted(run_name="faulty"), producer=FAULTY, run="faulty"),
        record(2, RunConfigured(versions={"torch": "2.9.1"}), producer=FAULTY, run="faulty"),
        record(3, AttemptStarted(layer="launcher"), producer=FAULTY, run="faulty"),
        steps(4, 9, producer=FAULTY, run="faulty"),
        record(10, Dropped(count=1234, reason="queue full"), producer=FAULTY, run="faulty"),
        record(11, RecorderCost(step=940), producer=FAULTY, run="faulty"),
        record(12, AgentCost(cpu=0.0042, memory=61 * 2**20), producer=FAULTY, run=None),
    ]
    path = tmp_path_factory.mktemp("health") / "events.duckdb"
    with running(path, events, ANCHOR + 60 * SECOND) as found:
        yield found


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch, collector: Running) -> Iterator[None]:
    monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", collector.address)
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()
    st.cache_data.clear()


def opened(page: Any, **parameters: str) -> AppTest:
    at = AppTest.from_function(page, default_timeout=60)
    for name, value in parameters.items():
        at.query_params[name] = value
    at.run()
    assert not at.exception
    return at


def html(at: AppTest) -> str:
    return "\n".join(element.proto.body for element in at.get("html"))


def test_the_numbers_of_the_health_page_are_the_apis() -> None:
    at = opened(_health)

    shown = {metric.label: metric.value for metric in at.metric}
    health = source.answer("health")
    assert shown["Dropped events"] == "1,234"
    assert shown["Open gaps"] == count(health["open_gaps"])
    assert shown["Quarantined"] == count(health["records"]["quarantined"])
    assert shown["Recorder, per step"] == "0.9 us"
    assert shown["Agent, of one core"] == "0.4 %"
    assert shown["Agent, memory"] == size(61 * 2**20)
    assert 'href="run?run=faulty"' in html(at)
    assert "2.9.1" in html(at)
    assert reader.ASKS not in html(at)
    assert health["versions"]["headway"] in html(at)


@pytest.mark.slow
def test_every_number_of_the_health_page_offers_its_meaning_and_its_query() -> None:
    at = opened(_health)

    said = [code.value for code in at.code]
    assert source.query("health") in said
    assert source.query("health/runs", limit=100) in said
    assert len(said) >= len(at.metric)


@pytest.mark.slow
def test_of_five_million_rows_a_page_sends_a_thousand_and_says_so() -> None:
    at = opened(_explore, question="own", sql="SELECT range AS step FROM range(5000000)")

    assert len(at.dataframe[0].value) == 1_000
    assert any("5,000,000" in caption.value for caption in at.caption)
