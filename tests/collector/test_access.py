"""Only this machine may talk to the collector, unless a token is set."""

from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from headway.collector.access import TokenCheck, check_address
from headway.settings import CollectorSettings, SettingError
from served import served

TOKEN = "a long secret"  # noqa: S105  # known to these tests only


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_a_loopback_address_needs_no_token(host: str) -> None:
    check_address(CollectorSettings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", ""])  # noqa: S104  # refused
def test_any_other_address_needs_a_token(host: str) -> None:
    with pytest.raises(SettingError, match="HEADWAY_COLLECTOR_TOKEN"):
        check_address(CollectorSettings(host=host))
    check_address(CollectorSettings(host=host, token=TOKEN))


@pytest.fixture
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    routes = [
        Route(path, lambda _: PlainTextResponse("in"))
        for path in ("/metrics", "/healthz", "/readyz")
    ]
    with served(TokenCheck(Starlette(routes=routes), request.param)) as found:
        yield found


@pytest.mark.parametrize("address", [None], indirect=True)
def test_without_a_token_everybody_is_let_in(address: str) -> None:
    assert httpx.get(f"{address}/metrics").text == "in"


@pytest.mark.parametrize("address", [TOKEN], indirect=True)
def test_a_wrong_token_is_answered_401_with_the_next_step(address: str) -> None:
    wrong = ["", TOKEN, "Bearer wrong", f"Bearer {TOKEN}2", f"Basic {TOKEN}", "Bearer \u00e9"]
    for given in wrong:
        headers = {"Authorization": given.encode("latin-1")} if given else {}
        answer = httpx.get(f"{address}/metrics", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "HEADWAY_TOKEN" in answer.json()["next"]


@pytest.mark.parametrize("address", [TOKEN], indirect=True)
def test_the_token_lets_in_and_health_needs_none(address: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert httpx.get(f"{address}/metrics", headers=headers).text == "in"
    assert httpx.get(f"{address}/healthz").text == "in"
    assert httpx.get(f"{address}/readyz").text == "in"
