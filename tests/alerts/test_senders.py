"""What each kind of receiver is sent, over a real connection, and what becomes of its answers."""

import email
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alert_receiver import AlertReceiver, alert_receiver
from headway.alerts.notices import Notice, Told
from headway.alerts.receivers import Email, PagerDuty, Receiver, Slack, Webhook
from headway.alerts.senders import send

SECRET = "the-routing-key"  # noqa: S105  # made up
TOLD = Told(
    labels={
        "alertname": "RestartLoop",
        "run": "llama",
        "team": "llm",
        "cluster": "east",
        "severity": "page",
        "area": "training",
        "subject": "run llama",
    },
    annotations={
        "summary": "3 attempts of run llama <b> & more",
        "suspect": "exception, node n7, rank 12",
        "stake": "10.0 GPU-hours so far",
        "incident_url": "http://board/incident?incident=abc",
        "run_url": "http://board/run?run=llama",
    },
    starts_at=1_790_000_000.0,
)
FIRING = Notice(
    receiver="x",
    key="headway-1",
    subject="run llama",
    status="firing",
    severity="page",
    why="it fires",
    firing=(TOLD,),
)
OVER = Notice(
    receiver="x",
    key="headway-1",
    subject="run llama",
    status="resolved",
    severity="page",
    why="it is over",
    firing=(),
    resolved=(TOLD,),
)


@pytest.fixture
def receiver() -> Iterator[AlertReceiver]:
    with alert_receiver() as served:
        yield served


@pytest.fixture
def key(tmp_path: Path) -> str:
    (tmp_path / "key").write_text(f"{SECRET}\n", encoding="utf-8")
    return f"file:{tmp_path / 'key'}"


def test_pagerduty_is_sent_an_event_of_its_second_version(
    receiver: AlertReceiver, key: str
) -> None:
    pager = PagerDuty(name="x", key=key, url=receiver.address)
    assert send(FIRING, pager, "http://board").state == "delivered"
    assert send(OVER, pager, "http://board").state == "delivered"
    (path, _, first), (_, _, last) = receiver.taken
    assert path == "/v2/enqueue"
    assert first["routing_key"] == SECRET
    assert (first["event_action"], first["dedup_key"]) == ("trigger", "headway-1")
    assert first["payload"]["severity"] == "critical"
    assert first["payload"]["summary"] == TOLD.annotations["summary"]
    assert first["payload"]["source"] == "run llama"
    assert first["payload"]["timestamp"] == "2026-09-21T14:13:20.000Z"
    assert first["payload"]["group"] == "east"
    assert first["payload"]["class"] == "RestartLoop"
    assert {"href": "http://board/incident?incident=abc", "text": "Incident"} in first["links"]
    assert last == {"routing_key": SECRET, "event_action": "resolve", "dedup_key": "headway-1"}


def test_a_long_summary_and_key_are_cut_to_what_pagerduty_takes(
    receiver: AlertReceiver, key: str
) -> None:
    long = Told(labels=TOLD.labels, annotations={"summary": "x" * 5_000}, starts_at=TOLD.starts_at)
    notice = Notice(
        receiver="x",
        key="k" * 900,
        subject="run llama",
        status="firing",
        severity="page",
        why="it fires",
        firing=(long,),
    )
    send(notice, PagerDuty(name="x", key=key, url=receiver.address), "http://board")
    ((_, _, body),) = receiver.taken
    assert len(body["payload"]["summary"]) == 1024
    assert len(body["dedup_key"]) == 255


def test_slack_is_sent_a_text_whose_marks_are_escaped(
    receiver: AlertReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK", f"{receiver.address}/services/T/B/x")
    slack = Slack(name="x", url="env:SLACK", channel="#llm")
    assert send(FIRING, slack, "http://board").state == "delivered"
    ((path, _, body),) = receiver.taken
    assert path == "/services/T/B/x"
    assert body["channel"] == "#llm"
    assert "3 attempts of run llama &lt;b&gt; &amp; more" in body["text"]
    assert "<http://board/incident?incident=abc|Incident>" in body["text"]
    assert "exception, node n7, rank 12; 10.0 GPU-hours so far" in body["text"]


def test_a_webhook_is_sent_its_token_and_nobody_else_sees_it(
    receiver: AlertReceiver, key: str
) -> None:
    hook = Webhook(name="x", url=f"{receiver.address}/hook", token=key)
    outcome = send(FIRING, hook, "http://board")
    ((_, headers, body),) = receiver.taken
    assert headers["Authorization"] == f"Bearer {SECRET}"
    assert SECRET not in str(body) + outcome.answer


@pytest.mark.parametrize(
    ("status", "state"),
    [
        *((status, "delivered") for status in (200, 202)),
        *((status, "refused") for status in (400, 404)),
        *((status, "later") for status in (408, 429, 500, 503)),
    ],
)
def test_an_answer_says_whether_to_come_again(
    receiver: AlertReceiver, status: int, state: str
) -> None:
    receiver.answers = [status]
    outcome = send(FIRING, Webhook(name="x", url=receiver.address), "http://board")
    assert outcome.state == state
    assert outcome.answer.startswith(f"HTTP {status}")


@pytest.mark.parametrize("place", ["file:/nowhere/key", "env:NO_SUCH_KEY"])
def test_a_secret_that_is_missing_is_named_by_its_place_and_tried_again(place: str) -> None:
    outcome = send(FIRING, PagerDuty(name="x", key=place), "http://board")
    assert outcome.state == "later"
    assert place.partition(":")[2] in outcome.answer


@pytest.mark.parametrize("kind", ["slack", "webhook", "pagerduty"])
def test_a_receiver_that_says_back_what_it_was_told_shows_no_secret(
    receiver: AlertReceiver, tmp_path: Path, kind: str
) -> None:
    receiver.echo, receiver.answers = True, [404]
    address, key = tmp_path / "address", tmp_path / "key"
    address.write_text(f"{receiver.address}/services/T0/B0/hush")
    key.write_text("hush-hush")
    found: Receiver = {
        "slack": Slack(name="x", url=f"file:{address}"),
        "webhook": Webhook(name="x", url=f"file:{address}", token=f"file:{key}"),
        "pagerduty": PagerDuty(name="x", key=f"file:{key}", url=receiver.address),
    }[kind]
    answer = send(FIRING, found, "http://board").answer
    assert answer.startswith("HTTP 404: no ")
    assert "hush" not in answer


def test_a_test_with_a_severity_of_somebody_else_reaches_pagerduty(
    receiver: AlertReceiver, key: str
) -> None:
    notice = replace(FIRING, severity="critical")
    outcome = send(notice, PagerDuty(name="x", key=key, url=receiver.address), "http://board")
    assert outcome.state == "delivered"


def test_an_address_that_nobody_has_is_tried_again_and_not_shown() -> None:
    outcome = send(FIRING, Webhook(name="x", url="http://127.0.0.1:9/token-in-path"), "")
    assert outcome.state == "later"
    assert outcome.answer == "cannot be reached: ConnectError"


class _Mailbox(socketserver.ThreadingTCPServer):
    """A mail server that takes every mail, or answers the text with another code."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, code: int) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.code = code
        self.mails: list[bytes] = []


class _Talk(socketserver.StreamRequestHandler):
    server: _Mailbox

    def handle(self) -> None:
        self.wfile.write(b"220 test\r\n")
        while line := self.rfile.readline():
            word = line.split()[0].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = list(iter(self.rfile.readline, b".\r\n"))
                self.server.mails.append(b"".join(lines))
                self.wfile.write(f"{self.server.code} done\r\n".encode())
            elif word == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 fine\r\n")


@pytest.mark.parametrize(("code", "state"), [(250, "delivered"), (451, "later"), (550, "refused")])
def test_a_mail_is_sent_and_its_refusal_understood(code: int, state: str) -> None:
    with _Mailbox(code) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        port = int(server.server_address[1])
        to = Email(
            name="x",
            to="ada@example.org",
            sender="headway@example.org",
            host="127.0.0.1",
            port=port,
            tls=False,
        )
        outcome: Any = send(FIRING, to, "http://board")
        server.shutdown()
        thread.join()
        (raw,) = server.mails
    assert outcome.state == state
    mail = email.message_from_bytes(raw)
    assert mail["Subject"] == "[firing] 3 attempts of run llama <b> & more"
    assert mail["To"] == "ada@example.org"
    assert "Incident: http://board/incident?incident=abc" in mail.get_payload(decode=True).decode()
