"""The Slurm scripts: linted, and run as slurmd runs them, with a real agent between them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_process import clean_environment
from arrivals import steps_in, wait_until
from otlp_endpoint import OtlpEndpoint, otlp_endpoint
from training_process import TrainingProcess

FOLDER = Path(__file__).parents[2] / "deploy" / "slurm"
SCRIPTS = sorted(FOLDER.glob("*.sh"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_shellcheck_has_nothing_to_say(script: Path) -> None:
    said = subprocess.run(
        [str(Path(sys.executable).parent / "shellcheck"), str(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout + said.stderr == ""
    assert os.access(script, os.X_OK)


class Job:
    """What slurmd runs on a node for job 7 of this user."""

    def __init__(self, tmp_path: Path, endpoint: str) -> None:
        program = tmp_path / "headway"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headway "$@"\n')
        program.chmod(0o755)
        configuration = tmp_path / "agent.env"
        configuration.write_text(
            f"HEADWAY_ENDPOINT={endpoint}\nHEADWAY_AGENT_PORT=0\nHEADWAY_AGENT_INTERVAL=0.02\n"
        )
        self.folder = tmp_path / "spools" / "7"
        self.environment = clean_environment(
            HEADWAY_SPOOLS=str(tmp_path / "spools"),
            HEADWAY_PROGRAM=str(program),
            HEADWAY_AGENT_ENV=str(configuration),
            SLURM_JOB_ID="7",
            SLURM_JOB_UID=str(os.getuid()),
            SLURM_JOB_GID=str(os.getgid()),
        )

    def run(self, script: str, **variables: str) -> str:
        ended = subprocess.run(
            [str(FOLDER / f"{script}.sh")],
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return ended.stdout


@pytest.fixture
def endpoint() -> Iterator[OtlpEndpoint]:
    with otlp_endpoint() as served:
        yield served


@pytest.mark.slow
def test_a_jobs_records_are_shipped_and_nothing_is_left_of_it(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    job = Job(tmp_path, endpoint.address)
    job.run("prolog")
    try:
        exported = job.run("task_prolog")
        assert exported == f"export HEADWAY_SPOOL={job.folder}\n"
        wait_until((job.folder / "agent.json").exists)
        assert job.folder.stat().st_mode & 0o777 == 0o700
        rank = TrainingProcess(job.folder)
        rank.steps(100)
        assert "no agent" not in rank.exit()
    finally:
        job.run("epilog")
    assert len(steps_in(endpoint.arrived)) == 100
    assert not job.folder.exists()


@pytest.mark.slow
def test_what_no_collector_took_is_kept_for_an_import(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    endpoint.answer = lambda batch: 503
    job = Job(tmp_path, endpoint.address)
    job.run("prolog")
    try:
        wait_until((job.folder / "agent.json").exists)
        rank = TrainingProcess(job.folder)
        rank.steps(10)
        rank.exit()
    finally:
        job.run("epilog", HEADWAY_EPILOG_SECONDS="20")
    assert len(list(job.folder.glob("*/header"))) >= 1


def test_an_epilog_ends_no_process_but_the_jobs_agent(tmp_path: Path) -> None:
    job = Job(tmp_path, "http://127.0.0.1:1")
    job.folder.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        (job.folder / "agent.pid").write_text(str(other.pid))
        job.run("epilog")
        assert other.poll() is None
        other.communicate(b"\n")
    assert other.returncode == 0


def test_a_folder_that_cannot_be_made_never_drains_the_node(tmp_path: Path) -> None:
    job = Job(tmp_path, "http://127.0.0.1:1")
    (tmp_path / "spools").write_text("in the way")
    job.run("prolog")
    job.run("epilog")
