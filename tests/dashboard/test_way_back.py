"""Who had to sign in goes on to the page of the link, and nobody is led out of the dashboard."""

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from headway.dashboard.way_back import CALLBACK, WayBack, kept, wanted

PAGES = {"fleet": "Fleet", "run": "Run", "incident": "Incident"}


async def page(_: Request) -> Response:
    return HTMLResponse("<html></html>")


async def signed_in(_: Request) -> Response:
    return RedirectResponse("/", status_code=302)


@pytest.fixture
def client() -> TestClient:
    inner = Starlette(routes=[Route(CALLBACK, signed_in), Route("/{path:path}", page)])
    return TestClient(WayBack(inner, lambda: PAGES), follow_redirects=False)


@pytest.mark.parametrize(
    "address", ["run?run=demo", "run?run=a%20b%26c&view=Ranks", "incident?incident=47%2F11", "run"]
)
def test_a_sign_in_ends_on_the_page_that_was_opened_last(client: TestClient, address: str) -> None:
    client.get("/fleet")
    client.get(f"/{address}")

    answer = client.get(f"{CALLBACK}?code=1&state=2")

    assert answer.headers["location"] == address
    assert client.get(CALLBACK).headers["location"] == "/"


def test_a_sign_in_on_the_start_page_ends_there(client: TestClient) -> None:
    client.get("/run?run=demo")
    client.get("/")

    assert client.get(CALLBACK).headers["location"] == "/"


def test_what_is_no_page_is_not_remembered(client: TestClient) -> None:
    assert "set-cookie" not in client.get("/static/app.js").headers
    assert client.get(CALLBACK).headers["location"] == "/"


@pytest.mark.parametrize(
    "cookies",
    [
        "headway_wanted=https%3A%2F%2Felsewhere.net",
        "headway_wanted=%2F%2Felsewhere.net",
        "headway_wanted=..%2Frun",
        "headway_wanted=run%0D%0ASet-Cookie%3A%20a",
        "headway_wanted=",
        "other=run",
        "headway_wanted",
        "",
    ],
)
def test_a_cookie_leads_to_no_place_outside_the_pages(cookies: str) -> None:
    assert wanted(cookies, PAGES) is None


@pytest.mark.parametrize("odd", ['seen={"a": 1}', "two words", "x=\u00ff", "=", '"'])
def test_an_odd_cookie_of_another_program_on_this_host_loses_no_page(odd: str) -> None:
    assert wanted(f"{odd}; headway_wanted=run%3Frun%3Da", PAGES) == "run?run=a"


def test_parameters_of_a_forged_cookie_stay_parameters() -> None:
    forged = "headway_wanted=run%3Frun%3Da%0D%0ASet-Cookie%3A%20b%3D1"

    assert wanted(forged, PAGES) == "run?run=a%0D%0ASet-Cookie%3A%20b%3D1"


def test_an_address_too_long_for_a_cookie_is_forgotten() -> None:
    assert "Max-Age=0" in kept("explore", "sql=" + "x" * 4_000)
