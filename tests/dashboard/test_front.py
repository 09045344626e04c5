"""Addresses are answered in words, and the browser is told to ask nobody else."""

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from headway.dashboard.front import Front
from headway.dashboard.pages import PAGES

START_PAGE = "<html><head><title>Streamlit</title></head><body>start</body></html>"


async def health(_: Request) -> Response:
    return JSONResponse("ok")


async def anything(request: Request) -> Response:
    if request.headers.get("if-none-match"):
        return Response(status_code=304)
    return HTMLResponse(START_PAGE, headers={"etag": '"1"'})


def _modules(path: str) -> list[str]:
    return ["./static/js/Plot.1.js", "./static/js/Html.2.js"] if path == "fleet" else []


@pytest.fixture
def client() -> TestClient:
    inner = Starlette(routes=[Route("/_stcore/health", health), Route("/{path:path}", anything)])
    front = Front(inner, lambda: {page.path: page.title for page in PAGES}, _modules)
    return TestClient(front, follow_redirects=False)


@pytest.mark.parametrize("path", ["/", "/fleet", "/run?run=demo", "/run/"])
def test_a_page_tells_the_browser_where_the_server_is(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"If-None-Match": '"1"'})

    assert answer.status_code == 200
    assert "BACKEND_BASE_URL" in answer.text
    assert "<title>Headway</title>" in answer.text
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize("path", ["/", "/fleet", "/fleet/"])
def test_a_page_has_the_browser_load_what_draws_it_beforehand(
    client: TestClient, path: str
) -> None:
    text = client.get(path).text

    for module in ("./static/js/Plot.1.js", "./static/js/Html.2.js"):
        assert f'<link rel="modulepreload" crossorigin href="{module}">' in text
        assert f'import("{module}");' in text
    assert text.index("Plot.1.js") < text.index("Html.2.js")


def test_a_page_that_names_nothing_has_nothing_loaded_beforehand(client: TestClient) -> None:
    assert "modulepreload" not in client.get("/health").text


def test_the_browser_may_ask_nobody_but_the_dashboard(client: TestClient) -> None:
    policy = client.get("/run").headers["content-security-policy"]

    assert policy.startswith("default-src 'self' ")
    assert "http" not in policy
    assert "*" not in policy


@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/run/demo", "../run?run=demo"),
        ("/run/a%20b%3Fc", "../run?run=a%20b%3Fc"),
        ("/run/team/demo", "../../run?run=team%2Fdemo"),
        ("/incident/4711", "../incident?incident=4711"),
        ("/hardware/gpu-fra-003", "../hardware?node=gpu-fra-003"),
    ],
)
def test_an_address_that_names_a_thing_leads_to_its_page(
    client: TestClient, path: str, address: str
) -> None:
    answer = client.get(path)

    assert answer.status_code == 307
    assert answer.headers["location"] == address


def test_an_address_without_a_page_says_so_and_what_there_is(client: TestClient) -> None:
    answer = client.get("/<script>")

    assert answer.status_code == 404
    assert "Headway has no page /&lt;script&gt;." in answer.text
    assert '<a href="./fleet">Fleet</a>' in answer.text
    assert "BACKEND_BASE_URL" not in answer.text


def test_what_is_no_page_passes_unchanged(client: TestClient) -> None:
    assert client.get("/_stcore/health").json() == "ok"
    assert client.post("/run").status_code == 405
