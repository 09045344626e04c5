"""`headway alerts` against a real collector: what fires, whom it reaches, what keeps it quiet."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.alerts.catalogue import RULES
from headway.cli import main
from headway.events import AttemptStarted, Envelope, RunConfigured, RunStarted
from incident_collector import Running, running
from records import ANCHOR, SECOND, record, steps

RUN = {"producer": "e" * 32, "run": "llama-1"}
NOW = ANCHOR + 40 * 60 * SECOND


def hung() -> list[Envelope]:
    """A run whose only rank completed its last step half an hour ago."""
    return [
        record(1, RunStarted(run_name="llama"), **RUN),
        record(2, RunConfigured(labels={"team": "llm"}), **RUN),
        record(3, AttemptStarted(layer="launcher", world_size=1), **RUN),
        steps(4, 600, **RUN),
    ]


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("alerts") / "events.duckdb"
    with running(path, hung(), NOW) as found:
        yield found


@pytest.fixture
def told(collector: Running, capsys: pytest.CaptureFixture[str]):
    """Return what a command exits with, and what it prints, after one look of the engine."""

    def run(*words: str) -> tuple[int, str]:
        collector.service.alerting.look()
        status = main(["alerts", *words, "--endpoint", collector.address])
        return status, " ".join(capsys.readouterr().out.split())

    return run


def test_what_fires_is_told_with_its_reason_and_the_status_says_that_a_page_does(told) -> None:
    status, text = told("check")
    assert status == 1
    assert "firing page RunHung: run llama-1 has completed no step and no phase for " in text
    assert "because headway_progress_silence_ratio >= 1.0, now " in text
    assert "what to do: docs/runbooks/RunHung.md" in text


def test_a_rule_is_explained_where_it_fires_and_where_it_does_not(told) -> None:
    status, text = told("explain", "RunHung", "llama-1")
    assert status == 0
    assert "firing for run llama-1: now " in text
    _, text = told("explain", "RestartLoop", "llama-1")
    assert "it does not hold for run llama-1: now 1" in text
    _, text = told("explain", "RestartLoop", "llama-9")
    assert "it does not fire for llama-9: nothing live is measured so; is the name right" in text
    assert RULES["RestartLoop"].meaning in text


def test_who_would_be_told_is_said(told) -> None:
    status, text = told("route", "--labels", "team=llm", "severity=page")
    assert status == 0
    assert text.startswith("reaches log (log), because no route takes it")


def test_a_silence_hides_what_it_matches_and_can_be_ended(told) -> None:
    status, text = told(
        "silence", 'run="llama-1"', "--until", "2100-01-01", "--reason", "moving", "--author", "ada"
    )
    assert status == 0
    status, text = told("check")
    assert status == 0
    assert "alerts hidden; see them with --all" in text, text
    _, text = told("check", "--all")
    assert "nobody is told: silence 1 of ada: moving" in text
    (made,) = json.loads(told("silences", "--json")[1])
    assert (made["state"], made["matchers"]) == ("active", ['run="llama-1"'])
    assert told("silence", "--end", str(made["silence"]), "--author", "ada")[0] == 0
    assert told("check")[0] == 1


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "RunHang"),
        ("silence", 'run="a"', "--reason", "x"),
        ("silence", 'run="a"', "--for", "2h"),
        ("silence", "run", "--for", "2h", "--reason", "x"),
        ("silence", 'run="a"', "--until", "2001-01-01", "--reason", "x"),
        ("silence", "--for", "2h", "--reason", "x"),
        ("silence", "--end", "77"),
        ("ack", "headway-nothing"),
        ("route", "--labels", "team"),
    ],
)
def test_what_makes_no_sense_is_wrong_use(told, words: tuple[str, ...]) -> None:
    assert told(*words)[0] == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "check"),
    [
        ("prometheus", ("promtool", "check", "rules")),
        ("alertmanager", ("amtool", "check-config")),
    ],
)
def test_what_is_exported_is_what_prometheus_and_alertmanager_take(
    tmp_path: Path, form: str, check: tuple[str, ...]
) -> None:
    written = tmp_path / "written.yml"
    assert main(["alerts", "export", form, "--output", str(written)]) == 0
    done = subprocess.run([*check, str(written)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
