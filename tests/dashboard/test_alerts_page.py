"""The Alerts page says what the API says, and orders what the reader wants."""

import re
from collections.abc import Iterator
from html import unescape

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from headway.dashboard.views import alerts
from headway.storage.alert_client import AlertClient
from incident_collector import Running, running
from timeline import at as moment
from timeline import timeline

HUNG = """
0       allocation 4
0       attempt A launcher world=1
0       configured labels=team:llm
0-600   steps 1-600
"""


def _page() -> None:
    from headway.dashboard.views import alerts

    alerts.page()


@pytest.fixture
def collector(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("alerts") / "events.duckdb"
    with running(path, timeline(HUNG, "llama-1"), moment(2_400)) as found:
        monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", found.address)
        st.cache_data.clear()
        found.service.alerting.look()
        yield found
        st.cache_data.clear()
        st.cache_resource.clear()


def opened() -> AppTest:
    at = AppTest.from_function(_page, default_timeout=60).run()
    assert not at.exception, at.exception
    return at


def text(at: AppTest) -> str:
    """Return what stands in the pieces of HTML, captions and lines."""
    pieces = "\n".join(element.proto.body for element in at.get("html"))
    told = re.sub(r"<style>.*?</style>", "", unescape(pieces), flags=re.DOTALL)
    plain = re.sub(r"<[^>]+>", " ", told)
    return " ".join(
        [plain, *(one.value for one in at.caption), *(one.value for one in at.markdown)]
    )


def test_what_fires_is_shown_with_its_reason(collector: Running) -> None:
    state = AlertClient(collector.client).state()
    firing = {one["rule"] for one in state["alerts"] if one["state"] == "firing"}
    assert "RunHung" in firing
    at = opened()
    numbers = {metric.label: metric.value for metric in at.metric}
    assert numbers["Firing"] == str(len(firing))
    assert numbers["Hidden"] == "0"
    words = text(at)
    hung = next(one for one in state["alerts"] if one["rule"] == "RunHung")
    assert f"RunHung: {hung['annotations']['summary']}" in words
    assert f"{hung['condition']}, now {hung['value']:.4g}" in words
    assert "Nobody was told of anything yet." in words


def test_everybody_who_was_told_of_a_subject_is_named() -> None:
    pager = {"receiver": "pager", "told": 1.0, "acknowledged_by": "ada"}
    chat = {"receiver": "chat", "told": 2.0, "acknowledged_by": None}
    waiting = {"receiver": "mail", "told": None, "acknowledged_by": None}
    assert alerts.told([pager, chat, waiting]) == "pager (ada has it), chat"
    assert alerts.told([waiting]) == alerts.told([]) == "not yet"


@pytest.mark.slow
def test_who_would_be_told_is_shown(collector: Running) -> None:
    assert "**log** (log), because no route takes it" in text(opened())


@pytest.mark.slow
def test_a_silence_is_kept_under_the_reader_s_name(
    collector: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headway.dashboard.sign_in.person", lambda: "Ada")
    at = opened()
    inputs = {one.label: one for one in at.text_input}
    inputs["Alerts"].set_value('run="llama-1"')
    inputs["Reason"].set_value("moving racks")
    next(one for one in at.button if one.label == "Silence").click()
    at.run()
    assert not at.exception, at.exception
    (made,) = AlertClient(collector.client).silences()
    assert (made["owner"], made["reason"]) == ("Ada", "moving racks")
    assert made["matchers"] == ['run="llama-1"']


@pytest.mark.slow
def test_alerting_that_is_off_is_said_in_words(collector: Running) -> None:
    collector.service.alerting = None
    at = AppTest.from_function(_page, default_timeout=60).run()
    assert not at.exception, at.exception
    assert "lerting is off in this collector" in text(at)
