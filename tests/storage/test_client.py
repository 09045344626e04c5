"""The client turns every failure into a sentence with the next step."""

from pathlib import Path

import httpx
import pytest

from headway.settings import ClientSettings, SettingError
from headway.storage.client import CollectorClient
from headway.storage.collector_errors import (
    CollectorBusy,
    CollectorRefused,
    CollectorUnreachable,
    UnknownRun,
)

TOKEN = "a long secret"  # noqa: S105  # known to these tests only


def client(
    answer: httpx.Response | Exception, seen: list[httpx.Request] | None = None
) -> CollectorClient:
    def handle(request: httpx.Request) -> httpx.Response:
        if seen is not None:
            seen.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    settings = ClientSettings(endpoint="http://collector:1/", token=TOKEN)
    return CollectorClient(settings, httpx.MockTransport(handle))


def test_answers_are_unwrapped() -> None:
    with client(httpx.Response(200, json={"runs": [{"run": "a"}]})) as found:
        assert found.runs() == [{"run": "a"}]
    with client(httpx.Response(200, json={"run": "a"})) as found:
        assert found.report("a") == {"run": "a"}
    with client(httpx.Response(200, json={"intervals": [1]})) as found:
        assert found.intervals("a") == [1]


def test_the_token_is_sent_and_any_name_is_one_part_of_the_path() -> None:
    seen: list[httpx.Request] = []
    with client(httpx.Response(200, json={"points": []}), seen) as found:
        found.steps("team/llama 8b?", points=10)
    assert seen[0].headers["Authorization"] == f"Bearer {TOKEN}"
    assert seen[0].url.raw_path == b"/api/v1/runs/team%2Fllama%208b%3F/steps?points=10"


def test_nobody_there_says_how_to_start_a_collector() -> None:
    with (
        client(httpx.ConnectError("refused")) as found,
        pytest.raises(
            CollectorUnreachable, match="No collector answers at http://collector:1"
        ) as raised,
    ):
        found.runs()
    assert "headway collect" in raised.value.next_step


def test_something_else_there_is_not_taken_for_a_collector() -> None:
    with (
        client(httpx.Response(200, text="<html>")) as found,
        pytest.raises(CollectorUnreachable, match="no Headway collector"),
    ):
        found.runs()
    with (
        client(httpx.Response(404, json=["what"])) as found,
        pytest.raises(CollectorUnreachable, match="no Headway collector"),
    ):
        found.runs()


@pytest.mark.parametrize(("status", "kind"), [(404, UnknownRun), (401, CollectorRefused)])
def test_the_collectors_own_words_reach_the_person(status: int, kind: type[Exception]) -> None:
    answer = httpx.Response(status, json={"error": "It is so.", "next": "Do this."})
    with client(answer) as found, pytest.raises(kind, match=r"It is so\. Do this\."):
        found.report("x")


def test_a_collector_that_is_busy_is_told_from_one_that_refuses() -> None:
    words = {"error": "It is being computed.", "next": "Try again in a moment."}
    answer = httpx.Response(503, json=words, headers={"Retry-After": "1"})
    with client(answer) as found, pytest.raises(CollectorBusy, match="being computed"):
        found.report("x")


def test_a_file_of_authorities_that_holds_none_is_a_wrong_setting(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate", encoding="ascii")
    with pytest.raises(
        SettingError, match=r"ca_file must hold certificates in PEM form, got '.*ca"
    ):
        CollectorClient(ClientSettings(ca_file=file))
