"""TLS and tokens between real processes, and no secret anywhere that something is kept or said.

Secrets are planted where people leave them: in the environment, headers, addresses, labels, the
message of an exception, a command line; then everything that was stored, logged or answered is
searched for the word that they all hold.
"""

import json
import shutil
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest

from agent_process import AgentProcess, agent_process, clean_environment
from certificates import make_certificate
from collector_process import CollectorProcess, collector_process
from headway.collector import tokens
from headway.storage.store import EventStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here"),
]

WORD = "s3cretWord99"
"""Stands in every secret that is planted here."""
TRAINING = """
import os
from headway.events import Note, RunConfigured, RunEnded
from headway.exporter import Recorder

recorder = Recorder(run="llama")
recorder.record(RunConfigured(
    labels={"team": "x", "api_key": os.environ["WANDB_API_KEY"]},
    links={"tracker": "https://me:" + os.environ["WANDB_API_KEY"] + "@tracker.example/run"},
))
recorder.record(Note(text="HF_TOKEN=" + os.environ["HF_TOKEN"]))
recorder.record(Note(text="the value is " + os.environ["DB_PASSWORD"]))
with recorder.step(1) as step:
    step.loss = 1.0
try:
    with recorder.phase("checkpoint_load"):
        raise RuntimeError("GET https://u:" + os.environ["DB_PASSWORD"] + "@bucket/x answered 403")
except RuntimeError as error:
    recorder.exception(error)
recorder.record(RunEnded(reason="completed"))
recorder.close()
"""
PLANTED = {
    "WANDB_API_KEY": f"wandb-{WORD}",
    "HF_TOKEN": f"hf_{WORD}{WORD}",
    "DB_PASSWORD": f"pass {WORD}",
}


def eventually(found: object, deadline: float = 60.0) -> None:
    """Call until it gives something true."""
    assert callable(found)
    end = time.monotonic() + deadline
    while not found():
        assert time.monotonic() < end
        time.sleep(0.05)


class Site:
    """A folder with a certificate, a file of tokens and what the clients are told."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = make_certificate(folder)
        self.tokens = folder / "tokens.json"
        self.database = folder / "events.duckdb"
        self.spool = folder / "spools"

    def token(self, name: str, *scopes: str, run: str | None = None) -> str:
        made, secret = tokens.new_token(name, scopes, run, time.time_ns())
        tokens.add(self.tokens, made)
        return secret

    @property
    def server(self) -> Mapping[str, str]:
        return {
            **PLANTED,
            "HEADWAY_COLLECTOR_TLS_CERTIFICATE": str(self.certificate),
            "HEADWAY_COLLECTOR_TLS_KEY": str(self.key),
            "HEADWAY_COLLECTOR_TOKEN": f"old-{WORD}",
            "HEADWAY_LOG_FORMAT": "json",
            "HEADWAY_LOG_LEVEL": "debug",
        }

    def client(self, secret: str) -> Mapping[str, str]:
        return {
            **PLANTED,
            "HEADWAY_CA_FILE": str(self.certificate),
            "HEADWAY_TOKEN": secret,
            "HEADWAY_LOG_LEVEL": "debug",
        }


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def train(site: Site) -> str:
    """Run the training with its secrets; return what it printed."""
    environment = clean_environment(**PLANTED, HEADWAY_SPOOL=str(site.spool))
    said = subprocess.run(
        [sys.executable, "-c", TRAINING], env=environment, capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    return said.stdout + said.stderr


def answers(http: httpx.Client) -> Iterator[tuple[str, str]]:
    """Yield every answer of the read API about the run, and of a few wrong questions."""
    paths = ["/metrics", "/openapi.json", "/api/v1/access", "/api/v1/clock", "/nowhere"]
    document = http.get("/openapi.json").json()
    run = http.get("/api/v1/runs").json()["runs"][0]["run"]
    paths += [
        path.replace("{run}", run) for path, ways in document["paths"].items() if "get" in ways
    ]
    for path in paths:
        yield path, http.get(path, params={"token": f"hf_{WORD}{WORD}"}).text
        yield path, http.get(path).text


def test_no_secret_is_stored_logged_or_answered(site: Site) -> None:
    sending, reading = site.token("agents", "ingest"), site.token("grafana", "read")
    said = [train(site), lost_agent(site)]
    spooled = b"".join(path.read_bytes() for path in site.spool.rglob("*") if path.is_file())
    with collector_process(site.database, variables=site.server) as collector:
        assert collector.address.startswith("https://")
        with agent_process(site.spool, collector.address, variables=site.client(sending)) as agent:
            context = ssl.create_default_context(cafile=str(site.certificate))
            with httpx.Client(
                base_url=collector.address,
                verify=context,
                headers={"Authorization": f"Bearer {reading}"},
            ) as http:
                eventually(lambda: "completed" in http.get("/api/v1/runs").text)
                for headers in (
                    {"Authorization": f"Bearer {WORD}"},
                    {"Authorization": f"Basic {WORD}"},
                    {"Authorization": f"Bearer {sending}", "Content-Type": f"text/{WORD}"},
                ):
                    http.post("/v1/logs", headers=headers, content=WORD.encode())
                found = dict(answers(http))
            said.append(agent.stop()[1])
        status, errors = collector.stop()
        said += [errors, *collector.said]
    assert status == 0
    store = EventStore.open(site.database)
    try:
        stored = [repr(envelope) for envelope in store.envelopes()]
    finally:
        store.close()

    kept = {
        "spools": spooled.decode("latin-1"),
        "database": site.database.read_bytes().decode("latin-1"),
        "events": "\n".join(stored),
        "logs": "\n".join(said),
        **{path: text for path, text in found.items() if path != "/nowhere"},
    }
    assert "[masked]" in kept["events"]
    assert any("RunConfigured" in line for line in stored)
    for secret in (WORD, sending, reading):
        assert [where for where, text in kept.items() if secret in text] == []
    for line in errors.splitlines():
        json.loads(line)


def lost_agent(site: Site) -> str:
    """Return what an agent says whose collector's address holds a password and is nobody's."""
    address = f"http://me:{WORD}@127.0.0.1:9"
    return AgentProcess(site.spool, address, variables=site.client(WORD)).stop()[1]


def headway(
    *words: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headway", *words],
        cwd=cwd,
        env=clean_environment(**variables),
        capture_output=True,
        text=True,
    )


def runs(collector: CollectorProcess, site: Site, secret: str) -> subprocess.CompletedProcess[str]:
    variables = {**site.client(secret), "HEADWAY_ENDPOINT": collector.address}
    return headway("report", "llama", "--json", **variables)


def test_the_command_line_speaks_tls_and_a_revoked_token_is_known_at_once(site: Site) -> None:
    sending = site.token("agents", "ingest", run="llama")
    reading = site.token("grafana", "read")
    train(site)
    with collector_process(site.database, variables=site.server) as collector:
        with agent_process(site.spool, collector.address, variables=site.client(sending)):
            eventually(lambda: runs(collector, site, reading).returncode == 0)

        refused = runs(collector, site, sending)
        assert refused.returncode == 2
        assert "has the scope ingest; this needs read" in refused.stderr

        tokens.revoke(site.tokens, "grafana")
        refused = runs(collector, site, reading)
        assert refused.returncode == 2
        assert "The token is missing or wrong" in refused.stderr
        assert reading not in refused.stderr

        ended = headway("report", "llama", HEADWAY_ENDPOINT=collector.address)
        assert ended.returncode == 2
        assert "CERTIFICATE_VERIFY_FAILED" in ended.stderr

        doctor = headway(
            *("doctor", "--json"),
            cwd=site.spool,
            HEADWAY_ENDPOINT=collector.address,
            HEADWAY_SPOOL=str(site.spool),
            **site.client(site.token("me", "admin")),
        )
        verdicts = {item["subject"]: item for item in json.loads(doctor.stdout)["findings"]}
        assert verdicts["token"]["sentence"] == "'me' allows admin and ingest and read"
        for subject in ("collector", "version", "token", "clock", "data"):
            assert verdicts[subject]["verdict"] == "ok", verdicts[subject]
