"""Every page says in words why it has nothing to show, and what to do about it."""

import socket
from collections.abc import Iterator, Mapping

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from streamlit.testing.v1 import AppTest

from fleet_collector import a_fleet
from headway.dashboard.pages import PAGES
from headway.dashboard.views import reader
from incident_collector import running
from records import ANCHOR
from served import served

pytestmark = pytest.mark.slow

DRAWN = {page.path: page.draw.__module__ for page in PAGES}
WHAT = {"run": {"run": "gone"}, "incident": {"incident": "gone"}, "hardware": {"node": "gone"}}
"""What a link to these pages names, which has been deleted since."""


@pytest.fixture(autouse=True)
def _no_answer_of_another_test() -> Iterator[None]:
    st.cache_data.clear()
    st.cache_resource.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


def opened(name: str, what: Mapping[str, str]) -> AppTest:
    """Open a page by a link that names something."""
    at = AppTest.from_string(f"from {DRAWN[name]} import page\npage()\n", default_timeout=60)
    for parameter, value in what.items():
        at.query_params[parameter] = value
    at.run()
    assert not at.exception, at.exception
    assert len(at.title) == 1
    return at


def said(name: str) -> str:
    """Return the words of a page as it is opened by a link."""
    at = opened(name, WHAT.get(name, {}))
    pieces = [element.proto.body for element in at.get("html")]
    return " ".join([*pieces, *(one.value for one in (*at.caption, *at.markdown))])


@pytest.mark.parametrize("name", DRAWN)
def test_a_collector_that_is_down_is_said_so_with_the_next_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, so that nobody else listens there
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", address)

        words = said(name)

    assert f"No collector answers at {address}" in words
    assert "headway collect" in words
    assert reader.LOOKS_AGAIN in words


@pytest.mark.parametrize("name", DRAWN)
def test_a_collector_that_takes_too_long_is_said_so_with_the_next_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and says nothing
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", address)
        monkeypatch.setenv("HEADWAY_CLIENT_TIMEOUT", "0.1")

        words = said(name)

    assert f"The collector at {address} gave no answer in time" in words
    assert "HEADWAY_CLIENT_TIMEOUT" in words


@pytest.mark.parametrize("name", DRAWN)
def test_a_token_that_is_refused_is_said_so_with_the_next_step(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_: Request) -> JSONResponse:
        told = {"error": "This collector wants a token.", "next": "Give one with HEADWAY_TOKEN."}
        return JSONResponse(told, status_code=401)

    with served(Starlette(routes=[Route("/{path:path}", refuse)])) as address:
        monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", address)

        words = said(name)

    assert "This collector wants a token." in words
    assert "Give one with HEADWAY_TOKEN." in words


def test_an_empty_collector_is_no_error_on_any_page_and_what_a_link_names_is_missed_in_words(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path_factory.mktemp("empty") / "events.duckdb"
    with running(path, [], ANCHOR) as found:
        monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", found.address)
        words = {name: said(name) for name in DRAWN}

    for name in ("fleet", "incidents", "recovery"):
        assert "headway demo" in words[name], name
    assert "Open the Fleet page" in words["run"]
    assert "Open the Incidents page" in words["incident"]
    assert "headway agent" in words["hardware"]
    assert "Nothing fires." in words["alerts"] or "always fires" in words["alerts"]
    assert "headway agent" in words["health"]


def test_every_number_of_every_page_offers_its_meaning_and_the_question_behind_it(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path_factory.mktemp("numbers") / "events.duckdb"
    with running(path, a_fleet()) as found:
        monkeypatch.setenv("HEADWAY_CLIENT_ENDPOINT", found.address)
        (one, *_) = found.client.incidents("live")
        what = {"run": {"run": "live"}, "incident": {"incident": one["incident"]}}
        shown = 0
        for name in DRAWN:
            at = opened(name, what.get(name, {}))
            asked = [code.value for code in at.code]
            explained = [markdown.value for markdown in at.markdown]
            for metric in at.metric:
                assert metric.proto.help, (name, metric.label)
                assert f"**{metric.label}**" in explained, (name, metric.label)
            assert sum("/api/v1/" in query for query in asked) >= len(at.metric), name
            shown += len(at.metric)

    assert shown > 30


def _broken() -> None:
    from headway.dashboard.views import reader

    def draw() -> None:
        raise ZeroDivisionError

    reader.refreshed(draw)


def test_a_page_that_cannot_be_drawn_does_not_say_that_it_waits() -> None:
    at = AppTest.from_function(_broken, default_timeout=60)

    at.run()

    assert [one.message for one in at.exception]
    assert reader.ASKS not in " ".join(element.proto.body for element in at.get("html"))
