"""`headway doctor`: what is wrong is named with the next step, and no secret is shown."""

import json
import socket
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

from collector_process import collector_process
from headway import cli
from headway.cli import doctor_collector, doctor_machine
from headway.cli.findings import OK, PROBLEM, WARNING, Finding, fine, guarded
from headway.collector import tokens
from headway.collector.access import TokenBook
from headway.collector.token_check import TokenCheck
from headway.settings import SettingError
from served import served

WORD = "s3cretWord99"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the developer's own machine out: settings name an empty folder, ports are any."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADWAY_SPOOL", str(tmp_path / "spools"))
    monkeypatch.setenv("HEADWAY_ENDPOINT", "http://127.0.0.1:9")
    for service in ("COLLECTOR", "AGENT", "DASHBOARD"):
        monkeypatch.setenv(f"HEADWAY_{service}_PORT", "0")
    return tmp_path


def verdicts(findings: Iterator[Finding], subject: str) -> list[str]:
    return [finding.verdict for finding in findings if finding.subject == subject]


def only(findings: Iterator[Finding], subject: str) -> Finding:
    (found,) = (finding for finding in findings if finding.subject == subject)
    return found


# The command.


def test_a_problem_is_exit_status_1_and_has_a_next_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["doctor"]) == 1

    said = capsys.readouterr().out
    assert "ok       python: " in said
    assert "problem  collector: none answers at http://127.0.0.1:9" in said
    assert "         -> start one with `headway collect`" in said


def test_as_json_every_finding_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--json"]) == 1

    said = json.loads(capsys.readouterr().out)
    assert said["problems"] == sum(item["verdict"] == PROBLEM for item in said["findings"]) == 1
    for item in said["findings"]:
        assert set(item) == {"subject", "verdict", "sentence", "next_step"}
        assert (item["next_step"] is None) == (item["verdict"] == OK)


def test_a_look_that_breaks_ends_no_other_and_a_wrong_setting_is_said() -> None:
    def broken() -> Iterator[Finding]:
        yield fine("x", "so far")
        raise RuntimeError(f"https://u:{WORD}@h")

    def wrong() -> Iterator[Finding]:
        raise SettingError("port must be int")
        yield

    assert [finding.verdict for finding in guarded("x", broken)] == [OK, PROBLEM]
    assert WORD not in str(list(guarded("x", broken)))
    assert only(guarded("y", wrong), "y").sentence == "port must be int"


# This machine.


def test_settings_say_where_they_come_from_and_show_no_secret(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "headway.toml"
    file.write_text(f'[client]\ntoken = "{WORD}"\ntimeout = 3\n', encoding="utf-8")
    file.chmod(0o600)
    monkeypatch.setenv("HEADWAY_CONFIG", str(file))
    monkeypatch.setenv("HEADWAY_AGENT_ENDPOINT", f"https://me:{WORD}@host")

    found = [finding.sentence for finding in doctor_machine.settings()]

    assert f"[client] token = [masked] from [client] of {file}" in found
    assert f"[client] timeout = 3.0 from [client] of {file}" in found
    assert "[agent] endpoint = https://[masked]@host from HEADWAY_AGENT_ENDPOINT" in found
    assert WORD not in str(found)

    file.chmod(0o644)
    assert WARNING in verdicts(doctor_machine.settings(), "settings")


def test_a_setting_that_does_not_fit_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_AGENT_BATCH", "many")

    assert PROBLEM in verdicts(doctor_machine.settings(), "settings")


def test_a_spool_folder_that_cannot_be_written_is_a_problem(folder: Path) -> None:
    assert only(doctor_machine.spools(), "spools").verdict == OK
    (folder / "spools").write_text("a file", encoding="ascii")

    assert only(doctor_machine.spools(), "spools").verdict == PROBLEM


def test_an_agent_that_ships_another_folder_is_a_problem(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_AGENT_SPOOL", str(folder / "others"))

    assert verdicts(doctor_machine.spools(), "spools") == [PROBLEM, OK]


def test_an_agent_at_work_is_seen(folder: Path) -> None:
    assert only(doctor_machine.spools(), "agent").verdict == WARNING
    (folder / "spools").mkdir()
    (folder / "spools" / "agent.json").write_text("{}", encoding="ascii")

    assert only(doctor_machine.spools(), "agent").verdict == OK


def test_a_kernel_log_that_cannot_be_read_is_a_warning(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = folder / "kern.log"
    monkeypatch.setenv("HEADWAY_AGENT_KERNEL_LOG", str(log))
    assert only(doctor_machine.kernel_log(), "kernel log").verdict == WARNING

    log.write_text("", encoding="ascii")
    assert only(doctor_machine.kernel_log(), "kernel log").verdict == OK

    monkeypatch.setenv("HEADWAY_AGENT_KERNEL_LOG", "off")
    assert only(doctor_machine.kernel_log(), "kernel log").verdict == OK


@pytest.mark.parametrize(
    ("name", "found", "verdict"),
    [
        ("torch", "2.13.0+cpu", OK),
        ("torch", "2.8.1", WARNING),
        ("nvidia-resiliency-ext", "0.4.1", OK),
        ("nvidia-resiliency-ext", "0.6.3", OK),
        ("nvidia-resiliency-ext", "0.5.0", WARNING),
    ],
)
def test_versions_that_were_not_tested_are_a_warning(
    monkeypatch: pytest.MonkeyPatch, name: str, found: str, verdict: str
) -> None:
    monkeypatch.setattr(doctor_machine, "version", {name: found}.get)

    (only_one,) = doctor_machine.libraries()
    assert only_one.verdict == verdict


# The collector.


class Stand:
    """A collector that says what a test wants it to."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {
            "version": version("headway"),
            "offset": 0,
            "age": 3.0,
            "state": "running",
            "ready": True,
        }
        self.book = TokenBook(Path("stand-tokens.json"))
        routes = [
            Route("/readyz", self._ready),
            Route("/api/v1/access", self._access),
            Route("/api/v1/clock", self._clock),
            Route("/api/v1/runs", self._runs),
            Route("/metrics", self._metrics),
        ]
        self.app = TokenCheck(Starlette(routes=routes), self.book)

    def _ready(self, _: Request) -> JSONResponse:
        if self.said["ready"]:
            return JSONResponse({})
        return JSONResponse({"error": "ledgers are being rebuilt", "next": ""}, status_code=503)

    def _access(self, request: Request) -> JSONResponse:
        access = request.state.access
        found = {"name": access.name, "scopes": sorted(access.scopes), "run": access.run}
        return JSONResponse({**found, "version": self.said["version"]})

    def _clock(self, _: Request) -> JSONResponse:
        return JSONResponse({"time": time.time_ns() + self.said["offset"]})

    def _runs(self, _: Request) -> JSONResponse:
        return JSONResponse({"runs": [{"state": self.said["state"]}]})

    def _metrics(self, _: Request) -> PlainTextResponse:
        return PlainTextResponse(
            f'headway_last_event_age_seconds{{run="a"}} {self.said["age"]}\n'
            'headway_last_event_age_seconds{run="b"} 9000.0\n'
        )


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    found = Stand()
    with served(found.app) as address:
        monkeypatch.setenv("HEADWAY_ENDPOINT", address)
        yield found


def reachable() -> Iterator[Finding]:
    return doctor_collector.reachable(exporter=True, server=True)


def token(monkeypatch: pytest.MonkeyPatch, *scopes: str) -> None:
    made, secret = tokens.new_token("mine", scopes, None, 0)
    tokens.add(Path("stand-tokens.json"), made)
    monkeypatch.setenv("HEADWAY_TOKEN", secret)


def test_a_collector_that_is_well_is_all_ok(stand: Stand) -> None:
    found = list(reachable())

    assert {finding.verdict for finding in found} == {OK}
    subjects = [finding.subject for finding in found]
    assert subjects == ["collector", "version", "token", "clock", "data"]
    assert found[-1].sentence == "2 runs, 1 of them running; the newest event is 3 s old"


@pytest.mark.parametrize(
    ("offset", "words"),
    [(3 * 10**9, "behind the collector's"), (-3 * 10**9, "ahead of the collector's")],
)
def test_a_clock_that_is_off_is_said_to_be_ahead_or_behind(
    stand: Stand, offset: int, words: str
) -> None:
    stand.said |= {"offset": offset}

    assert words in only(reachable(), "clock").sentence


@pytest.mark.parametrize(
    ("said", "subject", "verdict"),
    [
        ({"ready": False}, "collector", PROBLEM),
        ({"version": "9.9"}, "version", WARNING),
        ({"offset": 5 * 10**9}, "clock", WARNING),
        ({"offset": -5 * 10**9}, "clock", WARNING),
        ({"age": 900.0}, "data", WARNING),
        ({"age": 900.0, "state": "completed"}, "data", OK),
    ],
)
def test_what_is_not_well_is_said(
    stand: Stand, said: dict[str, Any], subject: str, verdict: str
) -> None:
    stand.said |= said

    assert only(reachable(), subject).verdict == verdict


def test_a_token_without_a_scope_that_this_machine_needs_is_a_problem(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    token(monkeypatch, "ingest")

    found = [finding for finding in reachable() if finding.subject == "token"]
    assert {finding.verdict for finding in found} == {PROBLEM}
    assert "'mine' has the scope ingest, and this machine needs read" in found[0].sentence
    assert only(doctor_collector.reachable(exporter=True, server=False), "token").verdict == OK


def test_a_wrong_token_is_a_problem(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    token(monkeypatch, "read")
    monkeypatch.setenv("HEADWAY_TOKEN", "another")

    assert "answers 401" in only(reachable(), "token").sentence


def test_a_token_that_travels_in_the_clear_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_ENDPOINT", "http://collector.invalid:1")
    monkeypatch.setenv("HEADWAY_TOKEN", WORD)

    found = list(reachable())
    assert [finding.verdict for finding in found] == [WARNING, PROBLEM]
    assert WORD not in str(found)


def test_tokens_of_a_collector_here_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("headway-tokens.json")
    assert only(doctor_collector.tokens(), "tokens").verdict == OK

    tokens.add(path, tokens.new_token("a", ["read"], None, 0)[0])
    assert only(doctor_collector.tokens(), "tokens").sentence == f"1 in {path}"
    path.chmod(0o644)
    assert verdicts(doctor_collector.tokens(), "tokens") == [WARNING, OK]

    monkeypatch.setenv("HEADWAY_COLLECTOR_TOKEN", "short")
    assert verdicts(doctor_collector.tokens(), "tokens") == [WARNING, WARNING, OK]


def test_a_public_address_without_a_token_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_COLLECTOR_HOST", "192.0.2.7")

    found = only(guarded("tokens", doctor_collector.tokens), "tokens")
    assert found.verdict == PROBLEM
    assert "headway token add" in found.sentence


def test_a_database_that_is_none_is_a_problem(folder: Path) -> None:
    assert only(doctor_collector.database(), "database").verdict == OK
    (folder / "headway.duckdb").write_bytes(b"something else" * 1000)

    assert only(doctor_collector.database(), "database").verdict == PROBLEM


@pytest.mark.slow
def test_a_database_that_is_in_use_is_fine_in_few_words(folder: Path) -> None:
    with collector_process(folder / "headway.duckdb"):
        found = only(doctor_collector.database(), "database")
    assert found.verdict == OK
    assert found.sentence == "headway.duckdb is in use by another process"


def test_a_port_that_a_stranger_has_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setenv("HEADWAY_AGENT_PORT", str(taken.getsockname()[1]))
        monkeypatch.setattr(doctor_collector, "_TIMEOUT", 0.2)
        (found,) = doctor_collector.ports(exporter=True, server=False)
    assert found.verdict == WARNING
    assert found.next_step is not None
    assert "HEADWAY_AGENT_PORT" in found.next_step

    (found,) = doctor_collector.ports(exporter=True, server=False)
    assert found.verdict == OK


def test_a_port_that_our_own_service_has_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Starlette(routes=[Route("/healthz", lambda _: PlainTextResponse("ok\n"))])
    with served(app) as address:
        monkeypatch.setenv("HEADWAY_COLLECTOR_PORT", address.rpartition(":")[2])
        (found,) = doctor_collector.ports(exporter=False, server=True)
    assert (found.verdict, found.sentence) == (OK, "the collector has it")
