"""Only this machine may talk to the collector, and others with a token that allows it."""

import asyncio
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from headway.collector import tokens
from headway.collector.access import EVERYBODY, Access, TokenBook, check_address, needed_scope
from headway.collector.token_check import TokenCheck
from headway.collector.tokens import TokenError
from headway.events import Envelope, GpuXid, RunStarted
from headway.settings import CollectorSettings, SettingError
from records import record, steps
from served import served

SETTING = "a long secret"
NOW = 1_790_000_000_000_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.json"


def new(path: Path, name: str, *scopes: str, run: str | None = None) -> str:
    token, secret = tokens.new_token(name, scopes, run, NOW)
    tokens.add(path, token)
    return secret


# Addresses.


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_a_loopback_address_needs_no_token(host: str, path: Path) -> None:
    check_address(CollectorSettings(host=host, tokens=path))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", ""])  # noqa: S104  # refused
def test_any_other_address_needs_a_token(host: str, path: Path) -> None:
    with pytest.raises(SettingError, match="HEADWAY_COLLECTOR_TOKEN"):
        check_address(CollectorSettings(host=host, tokens=path))
    check_address(CollectorSettings(host=host, tokens=path, token=SETTING))
    new(path, "agents", "ingest")
    check_address(CollectorSettings(host=host, tokens=path))


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.7"])
def test_a_file_of_tokens_that_cannot_be_used_is_refused_everywhere(host: str, path: Path) -> None:
    path.write_text("{", encoding="utf-8")

    with pytest.raises(SettingError, match="cannot read the tokens"):
        check_address(CollectorSettings(host=host, tokens=path, token=SETTING))


# What a request needs.


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/v1/logs", "ingest"),
        ("POST", "/v1/traces", "ingest"),
        ("GET", "/v1/logs", "ingest"),
        ("GET", "/api/v1/clock", None),
        ("GET", "/api/v1/runs", "read"),
        ("HEAD", "/metrics", "read"),
        ("POST", "/api/v1/sql", "read"),
        ("POST", "/api/v1/incidents/3/ack", "admin"),
        ("DELETE", "/api/v1/runs", "admin"),
        ("POST", "/nowhere", "admin"),
    ],
)
def test_what_a_request_needs(method: str, path: str, scope: str | None) -> None:
    assert needed_scope(method, path) == scope


# What a token may write.


def access(run: str | None) -> Access:
    return Access(scopes=frozenset({"ingest"}), name="agents", run=run)


def of_run(run: str | None, started: str | None = None) -> Envelope:
    event = (
        GpuXid(code=79, device="0000:01:00.0") if started is None else RunStarted(run_name=started)
    )
    return record(1, event, run=run)


@pytest.mark.parametrize(
    ("pattern", "envelope", "allowed"),
    [
        (None, of_run("llama-3f"), True),
        (None, of_run(None), True),
        ("llama-*", of_run("llama-8b-3f"), True),
        ("llama-8b", of_run("llama-8b-3f"), True),
        ("llama", of_run("llama-8b-3f"), False),
        ("LLAMA-*", of_run("llama-8b-3f"), False),
        ("llama-8b", of_run("llama-8b-3f", started="llama-8b"), True),
        ("llama-8b", of_run("llama-8b-3f", started="qwen"), False),
        ("qwen", of_run("llama-8b-3f", started="qwen"), False),
        ("llama", of_run("llama"), True),
        ("llama-*", of_run(None), False),
        ("*", of_run(None), False),
    ],
)
def test_a_token_for_some_runs_writes_to_those_and_to_no_node(
    pattern: str | None, envelope: Envelope, allowed: bool
) -> None:
    refusal = access(pattern).refusal(envelope)

    assert (refusal is None) is allowed
    assert refusal is None or "the token 'agents' may write to runs" in refusal


def test_whoever_needs_no_token_may_write_everything() -> None:
    assert EVERYBODY.refusal(steps(1, 10)) is None


# The tokens that are valid now.


def test_a_secret_has_what_the_file_says(path: Path) -> None:
    reading = new(path, "grafana", "read")
    writing = new(path, "agents", "ingest", run="llama-*")
    book = TokenBook(path)

    assert book.access(reading) == Access(scopes=frozenset({"read"}), name="grafana")
    assert book.access(writing) == Access(
        scopes=frozenset({"ingest"}), name="agents", run="llama-*"
    )
    assert book.access(reading + "x") is None
    assert book.access("") is None


def test_admin_is_every_scope(path: Path) -> None:
    secret = new(path, "me", "admin")

    assert TokenBook(path).access(secret) == Access(scopes=EVERYBODY.scopes, name="me")


def test_the_setting_is_a_token_with_every_scope_beside_the_file(path: Path) -> None:
    book = TokenBook(path, SETTING)
    assert book.needs_token
    assert book.access(SETTING) == Access(scopes=EVERYBODY.scopes, name="token")

    assert book.access(new(path, "grafana", "read")) is not None
    assert book.access(SETTING) is not None


def test_a_setting_that_is_also_in_the_file_has_what_the_file_says(path: Path) -> None:
    secret = new(path, "agents", "ingest")

    assert TokenBook(path, secret).access(secret) == Access(
        scopes=frozenset({"ingest"}), name="agents"
    )


def test_a_change_of_the_file_is_noticed_at_once(path: Path) -> None:
    book = TokenBook(path)
    assert not book.needs_token

    secret = new(path, "agents", "ingest")
    assert book.needs_token
    assert book.access(secret) is not None

    tokens.revoke(path, "agents")
    assert book.needs_token
    assert book.access(secret) is None


def test_a_file_that_is_deleted_lets_nobody_in(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = new(path, "agents", "ingest")
    book = TokenBook(path)

    path.unlink()

    assert book.needs_token
    assert book.access(secret) is None
    assert book.access(secret) is None
    assert [line.levelname for line in caplog.records] == ["ERROR"]
    assert "is gone" in caplog.text


def test_a_file_that_breaks_lets_nobody_in_until_it_is_whole(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = new(path, "agents", "ingest")
    book = TokenBook(path, SETTING)
    whole = path.read_bytes()

    path.write_text("{", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(TokenError, match="cannot read"):
            book.access(secret)
    assert book.access(SETTING) is not None
    assert len(caplog.records) == 1

    path.write_bytes(whole)
    assert book.access(secret) is not None


# The door.


def seen(request: Request) -> JSONResponse:
    access: Access = request.state.access
    return JSONResponse({"name": access.name, "scopes": sorted(access.scopes)})


def health(_: Request) -> JSONResponse:
    return JSONResponse({})


@pytest.fixture
def book(path: Path) -> TokenBook:
    return TokenBook(path)


@pytest.fixture
def refused() -> Counter[str]:
    return Counter()


@pytest.fixture
def address(book: TokenBook, refused: Counter[str]) -> Iterator[str]:
    routes = [
        Route("/healthz", health),
        Route("/readyz", health),
        Route("/{path:path}", seen, methods=["GET", "POST"]),
    ]
    with served(TokenCheck(Starlette(routes=routes), book, refused)) as found:
        yield found


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_without_a_token_every_program_of_this_machine_may_do_everything(address: str) -> None:
    everything = {"name": None, "scopes": ["admin", "ingest", "read"]}
    port = httpx.URL(address).port

    for host in (f"127.0.0.1:{port}", "localhost", "LOCALHOST:1", "[::1]:8750"):
        assert httpx.post(f"{address}/api", headers={"Host": host}).json() == everything


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example:8750"},
        {"Host": "192.0.2.7"},
        {"Host": ""},
        {"Host": "[::1"},
        {"Host": "localhost@rebound.example"},
        {"Host": "127.0.0.1.rebound.example:8750"},
        {"Host": "0.0.0.0:8750"},
        {"Host": "localhost.rebound.example"},
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
    ],
)
def test_without_a_token_a_page_of_elsewhere_is_refused(
    address: str, headers: dict[str, str]
) -> None:
    answer = httpx.get(f"{address}/api/v1/runs", headers=headers)

    assert answer.status_code == 403
    assert "headway token add" in answer.json()["next"]
    named = headers.get("Origin") or headers["Host"].rpartition("@")[2].removesuffix(":8750")
    assert named in answer.json()["error"]
    assert httpx.get(f"{address}/healthz", headers=headers).status_code == 200


def test_a_wrong_token_is_answered_401_with_the_next_step(address: str, path: Path) -> None:
    secret = new(path, "grafana", "read")

    wrong = [
        "",
        secret,
        "Bearer",
        f"Bearer\t{secret}",
        "Bearer wrong",
        f"Bearer {secret}2",
        f"Basic {secret}",
    ]
    for given in [*wrong, "Bearer \u00e9", f"Bearer {secret[:-1]}"]:
        headers = {"Authorization": given.encode("latin-1")} if given else {}
        answer = httpx.get(f"{address}/metrics", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "HEADWAY_TOKEN" in answer.json()["next"]


def test_a_token_lets_in_and_health_needs_none(address: str, path: Path) -> None:
    headers = bearer(new(path, "grafana", "read"))

    assert httpx.get(f"{address}/metrics", headers=headers).json()["name"] == "grafana"
    assert httpx.get(f"{address}/healthz").status_code == 200
    assert httpx.get(f"{address}/readyz").status_code == 200


def test_a_token_without_the_scope_is_answered_403_and_told_which(address: str, path: Path) -> None:
    headers = bearer(new(path, "agents", "ingest"))

    assert httpx.post(f"{address}/v1/logs", headers=headers).status_code == 200
    assert httpx.get(f"{address}/api/v1/clock", headers=headers).status_code == 200
    answer = httpx.get(f"{address}/api/v1/runs", headers=headers)
    assert answer.status_code == 403
    assert answer.json()["error"] == "The token 'agents' has the scope ingest; this needs read."


def test_a_broken_file_is_answered_503_so_that_agents_keep_what_they_have(
    address: str, path: Path
) -> None:
    secret = new(path, "agents", "ingest")
    assert httpx.post(f"{address}/v1/logs", headers=bearer(secret)).status_code == 200

    path.write_text("{", encoding="utf-8")

    answer = httpx.post(f"{address}/v1/logs", headers=bearer(secret))
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert str(path) not in answer.text


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "get", "POST", "TRACE"])
@pytest.mark.parametrize(
    "target", ["/api/v1/runs", "//healthz", "/healthz/", "/healthz/../metrics", "/healthz%2f", "*"]
)
def test_no_method_and_no_spelling_of_a_path_goes_around_the_door(
    address: str, target: str, method: str, path: Path
) -> None:
    new(path, "agents", "ingest")
    port = httpx.URL(address).port
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        status = connection.makefile("rb").readline().split()[1]
    assert status == b"401"


def test_a_token_counts_only_where_it_belongs_and_only_once(address: str, path: Path) -> None:
    secret = new(path, "grafana", "read")
    for elsewhere in (
        {"params": {"token": secret, "access_token": secret}},
        {"cookies": {"token": secret}},
        {"headers": {"X-Authorization": f"Bearer {secret}"}},
        {"headers": [("Authorization", f"Bearer {secret}"), ("Authorization", "Bearer x")]},
        {"headers": [("Authorization", f"Bearer {secret}")] * 2},
    ):
        answer = httpx.get(f"{address}/metrics", **elsewhere)
        assert answer.status_code == 401
        assert secret not in answer.text


def test_who_is_turned_away_is_counted_by_reason(
    address: str, path: Path, refused: Counter[str]
) -> None:
    httpx.get(f"{address}/metrics", headers={"Origin": "https://elsewhere.example"})
    secret = new(path, "agents", "ingest")
    httpx.get(f"{address}/metrics")
    httpx.get(f"{address}/metrics", headers=bearer("wrong"))
    httpx.get(f"{address}/metrics", headers=bearer(secret))
    httpx.post(f"{address}/v1/logs", headers=bearer(secret))
    assert refused == {"web_page": 1, "no_token": 1, "wrong_token": 1, "scope": 1}


def test_nobody_gets_in_by_a_websocket(book: TokenBook) -> None:
    """The collector has none; a route for one would be behind no door."""
    sent = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def never(*_: object) -> None:
        pytest.fail("it was let in")

    door = TokenCheck(never, book)
    scope = {"type": "websocket", "path": "/healthz", "headers": []}
    asyncio.run(door(scope, never, send))
    assert [message["type"] for message in sent] == ["websocket.close"]
