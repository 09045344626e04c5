"""Launches of many nodes that nobody counts are told apart once their ranks have met."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headway.events import Envelope, Heartbeat, RunEnded
from headway.exporter.identity import boot_id
from headway.exporter.node.witness import Witness
from headway.exporter.spooling.reader import SpoolReader, spools
from oracle.comparison import disagreements
from recording import record
from run_report import report_on

STATIC = {
    "MASTER_ADDR": "trainer-0",
    "MASTER_PORT": "29500",
    "WORLD_SIZE": "2",
    "LOCAL_WORLD_SIZE": "1",
}


@pytest.fixture
def static(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of each pod, the same after every restart of the job."""
    for name, value in STATIC.items():
        monkeypatch.setenv(name, value)


def launch(
    folder: Path, word: str, steps: range, before_they_meet: Callable[[], None] = lambda: None
) -> None:
    """Let both ranks start, meet, train and leave without having finished."""
    recorders = [record(folder, rank=rank) for rank in (0, 1)]
    before_they_meet()
    for recorder in recorders:
        with recorder.phase("startup"):
            recorder.confirm(word)
        recorder.resumed(completed=steps.start - 1)
        for number in steps:
            with recorder.step(number):
                time.monotonic_ns()
    if steps.stop > 9:
        recorders[0].record(RunEnded(reason="completed"))
    for recorder in recorders:
        recorder.close()


def recorded(folder: Path) -> list[Envelope]:
    return [
        envelope
        for spool in spools(folder)
        for envelope in SpoolReader(spool).read(limit=10**6).envelopes
    ]


@pytest.mark.usefixtures("static")
def test_a_job_started_again_at_the_same_address_is_another_attempt(tmp_path: Path) -> None:
    launch(tmp_path, "first", range(1, 6))
    launch(tmp_path, "second", range(4, 10))
    told = report_on(recorded(tmp_path))

    first, second = told["attempt_list"]
    assert (first["first_step"], first["last_step"]) == (1, 5)
    assert (second["resumed"], second["first_step"], second["last_step"]) == (3, 4, 9)
    assert [attempt["layer"] for attempt in told["attempt_list"]] == ["scheduler"] * 2
    assert told["steps"]["surviving"] == 9
    assert told["steps"]["rework"] == 2
    assert told["problems"] == []


@pytest.mark.usefixtures("static")
def test_a_launch_that_somebody_counts_keeps_its_identity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    launch(tmp_path, "word", range(1, 3))
    assert len({each.attempt for each in recorded(tmp_path) if each.attempt}) == 1
    assert "attempt.bound" not in {each.event.name for each in recorded(tmp_path)}


@pytest.mark.usefixtures("static")
def test_what_an_agent_tells_of_ranks_that_are_still_to_meet_follows_them(tmp_path: Path) -> None:
    """A slow start: the agent tells that its ranks live before they know which attempt it is."""
    witness = Witness(tmp_path, 1, boot_id())

    def beat() -> None:
        for reader in map(SpoolReader, spools(tmp_path)):
            producer, status = reader.producer, reader.status()
            if producer is not None and producer.rank is not None and not status.closed:
                witness.alive(producer, status)

    launch(tmp_path, "first", range(1, 6), beat)
    launch(tmp_path, "second", range(4, 10), beat)
    witness.close()
    envelopes = recorded(tmp_path)

    beats = [each for each in envelopes if isinstance(each.event, Heartbeat)]
    assert len(beats) == 4
    assert len({each.attempt for each in beats}) == 1  # one provisional name for both launches
    told = report_on(envelopes)
    assert [attempt["first_step"] for attempt in told["attempt_list"]] == [1, 4]
    assert told["failed_starts"] == 0
    assert told["problems"] == []
    newest = max(each.anchor + each.monotonic for each in envelopes)
    assert disagreements(envelopes, newest, 0) == []
