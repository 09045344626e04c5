"""Who a recorder speaks for: its run, its rank and its attempts."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headway.events import AttemptEnded, AttemptStarted, Misuse, RunStarted
from headway.exporter import Recorder, identity
from headway.exporter.spooling.layout import AGENT_MARKER
from headway.exporter.spooling.reader import SpoolReader, spools
from headway.settings import RecorderSettings
from recording import environment, events, misuses, of, read, record, step_numbers

_TOP_LEVEL = """
import multiprocessing, sys
from pathlib import Path
from recording import record, step_numbers
recorder = record(Path(sys.argv[1]))

def work():
    with recorder.step(1):
        pass

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode == 0
    with recorder.step(1):
        pass
"""
SECOND = 1_000_000_000


def test_an_attempt_tells_which_devices_its_rank_may_see_and_who_gave_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    record(tmp_path, rank=0).close()
    (started,) = of(tmp_path, AttemptStarted)
    assert (started.visible_devices, started.scheduler) == ("2,3", "kubernetes")


def test_the_first_attempt_began_when_the_process_did(tmp_path: Path) -> None:
    record(tmp_path)
    announced, started = read(tmp_path).envelopes
    assert announced.event == RunStarted(run_name="llama")
    assert isinstance(started.event, AttemptStarted)
    assert started.event.layer == "scheduler"
    assert started.event.process_id == os.getpid()
    expected = identity.process_started()
    assert expected is not None
    assert abs(started.monotonic - expected) < SECOND
    assert abs(started.wall - started.anchor - started.monotonic) < SECOND


def test_each_iteration_in_process_is_an_attempt_and_iteration_0_is_the_processs(
    tmp_path: Path,
) -> None:
    recorder = record(tmp_path)
    recorder.attempt(layer="in_process", iteration=0)
    with recorder.step(1):
        pass
    before = time.monotonic_ns()
    recorder.attempt(layer="in_process", iteration=1, world_size=2)
    with recorder.step(1):
        pass
    batch = read(tmp_path)
    _, first, one, ended, second, again = batch.envelopes
    assert first.attempt == one.attempt == ended.attempt
    assert second.attempt == again.attempt != first.attempt
    assert isinstance(ended.event, AttemptEnded)
    assert isinstance(second.event, AttemptStarted)
    assert (second.event.iteration, second.event.world_size) == (1, 2)
    assert second.monotonic >= before
    assert of(tmp_path, Misuse) == []


def test_under_torchelastic_ranks_of_a_round_share_the_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job")
    monkeypatch.setenv("WORLD_SIZE", "2")
    attempts = []
    for restarts in ("0", "1"):
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restarts)
        for rank in ("0", "1"):
            monkeypatch.setenv("RANK", rank)
            recorder = record(tmp_path / f"{restarts}{rank}")
            envelope = read(tmp_path / f"{restarts}{rank}").envelopes[-1]
            assert isinstance(envelope.event, AttemptStarted)
            assert envelope.event.layer == "launcher"
            assert envelope.rank == int(rank)
            attempts.append(envelope.attempt)
            recorder.close()
    assert attempts[0] == attempts[1] != attempts[2] == attempts[3]


def test_a_run_without_any_identity_announces_itself(tmp_path: Path) -> None:
    (tmp_path / AGENT_MARKER).touch()
    checkpoints = tmp_path / "checkpoints"
    settings = RecorderSettings(spool=tmp_path)
    first = Recorder("llama", checkpoints=checkpoints, settings=settings)
    first.close()
    run = read(tmp_path).envelopes[0].run
    assert isinstance(events(tmp_path)[0], RunStarted)
    other = tmp_path / "later"
    other.mkdir()
    (other / AGENT_MARKER).touch()
    Recorder("llama", checkpoints=checkpoints, settings=RecorderSettings(spool=other)).close()
    assert read(other).envelopes[0].run == run
    assert of(other, RunStarted) == []


@pytest.mark.parametrize(
    "name", ["org/llama 8b", "\u6a21\u578b-\U0001f999", "a\nb", "\ud800", "x" * 5000]
)
def test_any_name_of_a_run_can_be_recorded(tmp_path: Path, name: str) -> None:
    (tmp_path / AGENT_MARKER).touch()
    recorder = Recorder(name, settings=RecorderSettings(spool=tmp_path, run_id="7" * 500))
    with recorder.step(1):
        pass
    recorder.close()
    batch = read(tmp_path)
    assert (batch.damaged, batch.finished) == (0, True)
    (started,) = of(tmp_path, RunStarted)
    assert started.run_name == name[:120].replace("\ud800", "?")
    assert (batch.envelopes[0].run or "").startswith(f"{started.run_name}-")
    assert misuses(tmp_path) == (["run_name"] if len(name) > 120 else [])


def test_the_widest_name_of_a_run_has_room(tmp_path: Path) -> None:
    (tmp_path / AGENT_MARKER).touch()
    settings = RecorderSettings(spool=tmp_path, run_id="\U0001f999" * 120)
    Recorder("\U0001f999" * 120, settings=settings).close()
    assert read(tmp_path).damaged == 0


def test_a_rank_as_the_environment_spells_it_is_that_rank(tmp_path: Path) -> None:
    record(tmp_path, rank="3").close()  # type: ignore[arg-type]
    assert {envelope.rank for envelope in read(tmp_path).envelopes} == {3}


def test_a_rank_that_is_none_is_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "2")
    record(tmp_path, rank=1.5).close()  # type: ignore[arg-type]
    assert {envelope.rank for envelope in read(tmp_path).envelopes} == {2}
    assert misuses(tmp_path) == ["rank"]


def test_checkpoints_that_cannot_keep_the_runs_id_cost_only_that(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder")
    (tmp_path / AGENT_MARKER).touch()
    settings = RecorderSettings(spool=tmp_path)
    recorder = Recorder("llama", checkpoints=tmp_path / "file" / "x", settings=settings)
    with recorder.step(1):
        pass
    assert step_numbers(tmp_path) == [1]
    assert misuses(tmp_path) == ["run_id"]
    assert "which a later job will not share; set HEADWAY_RUN_ID" in caplog.text


def test_checkpoints_in_an_object_store_are_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = RecorderSettings(spool=tmp_path / "spool")
    recorder = Recorder("llama", checkpoints="s3://bucket/llama", settings=settings)  # type: ignore[arg-type]
    recorder.close()
    assert [path.name for path in tmp_path.iterdir()] == ["spool"]
    assert misuses(tmp_path / "spool") == ["run_id"]


def test_nodes_that_know_their_run_by_its_address_alone_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A static launcher has the same address every time."""
    (tmp_path / AGENT_MARKER).touch()
    launched = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
    for name, value in {**launched, "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}.items():
        monkeypatch.setenv(name, value)
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        settings = RecorderSettings(spool=tmp_path / rank)
        Recorder("llama", settings=settings).close()
    assert (misuses(tmp_path / "0"), misuses(tmp_path / "1")) == (["run_id"], [])
    settings = RecorderSettings(spool=tmp_path / "known", run_id="7")
    Recorder("llama", settings=settings).close()
    assert misuses(tmp_path / "known") == []


def test_a_launch_that_a_launcher_or_scheduler_names_says_what_its_run_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`headway report NAME` finds a run by the name in its `run.started`."""
    (tmp_path / AGENT_MARKER).touch()
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job")
    for rank, restarts in (("0", "0"), ("1", "0"), ("0", "1")):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", restarts)
        settings = RecorderSettings(spool=tmp_path / f"{rank}-{restarts}")
        Recorder("llama", settings=settings).close()
    assert of(tmp_path / "0-0", RunStarted) == [RunStarted(run_name="llama")]
    assert of(tmp_path / "1-0", RunStarted) == of(tmp_path / "0-1", RunStarted) == []


def test_the_rank_that_makes_the_runs_id_says_that_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        settings = RecorderSettings(spool=tmp_path / rank)
        Recorder("llama", checkpoints=tmp_path / "checkpoints", settings=settings).close()
    assert of(tmp_path / "1", RunStarted) == [RunStarted(run_name="llama")]
    assert of(tmp_path / "0", RunStarted) == []


def test_each_start_of_ranks_in_one_slurm_job_is_an_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "99")
    attempts = []
    for step in ("0", "1"):
        monkeypatch.setenv("SLURM_STEP_ID", step)
        settings = RecorderSettings(spool=tmp_path / step)
        Recorder("llama", settings=settings).close()
        attempts.append(read(tmp_path / step).envelopes[-1].attempt)
    assert attempts[0] != attempts[1]


def test_a_program_that_trains_again_begins_again(tmp_path: Path) -> None:
    found = []
    for name in ("first", "second"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / AGENT_MARKER).touch()
        before = time.monotonic_ns()
        Recorder("sweep", settings=RecorderSettings(spool=folder)).close()
        (started,) = [e for e in read(folder).envelopes if isinstance(e.event, AttemptStarted)]
        found.append((started.run, started.attempt, started.monotonic >= before))
    (first, second) = found
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert second[2]  # not when the process started, long before


def test_two_programs_from_one_shell_are_two_runs(tmp_path: Path) -> None:
    program = "from headway.exporter import Recorder\nRecorder('llama').close()\n"
    (tmp_path / AGENT_MARKER).touch()
    for _ in range(2):
        where = {**environment(), "HEADWAY_SPOOL": str(tmp_path)}
        subprocess.run([sys.executable, "-c", program], env=where, check=True)
    runs = spools(tmp_path)
    assert len(runs) == 2

    batches = [SpoolReader(path).read() for path in runs]
    assert len({batch.envelopes[0].run for batch in batches}) == 2
    assert len({batch.envelopes[-1].attempt for batch in batches}) == 2


@pytest.mark.slow
def test_a_spawned_worker_that_runs_the_programs_top_level_again_records_nothing(
    tmp_path: Path,
) -> None:
    program = tmp_path / "train.py"
    program.write_text(_TOP_LEVEL)
    spool = tmp_path / "spool"
    command = [sys.executable, str(program), str(spool)]
    subprocess.run(command, env=environment(), check=True, timeout=60)
    assert len(spools(spool)) == 1
    assert step_numbers(spool) == [1]
