"""What was done before, on pages: search, configurations side by side, attached results."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import unescape
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from incident_collector import Running, running
from timeline import at, timeline

pytestmark = pytest.mark.slow

RUN = """
    0       run_started llama
    0       attempt A launcher world=1
    1       configured timeouts=heartbeat:60
    0-100   steps 1-100
    100     fault exception
    101     exit code=1 by=itself
    110     attempt B launcher world=1
    110     configured timeouts=heartbeat:30
    120-240 steps 1-120
    240     run_ended completed
"""


def _run() -> None:
    from headway.dashboard.views import run

    run.page()


def _explore() -> None:
    from headway.dashboard.views import explore

    explore.page()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("memory") / "events.duckdb"
    with running(path, timeline(RUN, "llama-1"), at(400)) as found:
        found.client.note("run", "llama-1", "Ada", "mind the <heartbeat>")
        for attempt, rate in ((1, 10), (2, 15)):
            found.client.attach(
                "ingest", f'{{"rate": {rate}}}', "Ada", run="llama", attempt=attempt
            )
        yield found


@pytest.fixture(autouse=True)
def _asked(served: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", served.address)
    st.cache_data.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


def html(page: Any, **parameters: str) -> str:
    drawn = AppTest.from_function(page, default_timeout=120)
    for name, value in parameters.items():
        drawn.query_params[name] = value
    drawn.run()
    assert not drawn.exception, drawn.exception
    return "\n".join(element.proto.body for element in drawn.get("html"))


def words(text: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", text))


def test_search_tells_what_followed_a_change_and_leads_to_it() -> None:
    found = html(_explore, find="heartbeat timeout")
    assert "timeouts.heartbeat from 1 min 0 s to 30 s" in words(found)
    assert "training goodput" in words(found)
    assert 'href="run?run=llama-1&amp;view=Settings&amp;attempt=2"' in found
    compare = "compare=Configurations&amp;one_attempt=2&amp;other_attempt=1"
    assert compare in found
    noted = html(_explore, find="mind")
    assert "mind the <heartbeat>" in words(noted)
    assert "<heartbeat>" not in noted


@pytest.mark.parametrize(
    ("find", "said"), [("nothingofthekind", "Nothing of"), ("%%", "holds no word")]
)
def test_what_is_not_found_is_said(find: str, said: str) -> None:
    assert said in words(html(_explore, find=find))


def test_two_configurations_stand_side_by_side() -> None:
    chosen = {"compare": "Configurations", "one_attempt": "2", "other_attempt": "1"}
    found = words(html(_run, run="llama-1", view="Compare", **chosen))
    assert "A: llama-1#2" in found
    assert "B: llama-1#1" in found
    assert "Training goodput" in found
    assert "ingest: rate" in found


def test_a_run_stands_beside_itself_before_a_change() -> None:
    moment = datetime.fromtimestamp(at(105) / 1e9, UTC)
    chosen = {"compare": "Before and after", "moment": moment.strftime("%Y-%m-%dT%H:%M")}
    found = words(html(_run, run="llama-1", view="Compare", **chosen))
    shown = moment.strftime("%Y-%m-%d %H:%M")
    assert re.search(f"A: llama-1, {shown}.* to now", found), found
    assert re.search(f"B: llama-1, the beginning to {shown}", found)


def test_the_results_of_a_configuration_stand_with_its_settings() -> None:
    found = words(html(_run, run="llama-1", view="Settings", attempt="1"))
    assert re.search(r"rate\s+10\b", found)
    assert not re.search(r"rate\s+15\b", found)
