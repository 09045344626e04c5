"""What a process tells of itself beside its settings, and what it keeps to itself."""

import shlex
import sys
from pathlib import Path

import pytest

from headway.events import RunConfigured
from headway.exporter.recording.surroundings import LONGEST, command, completed, steering
from recording import of, record


def test_recorded_settings_tell_the_command_and_the_versions(tmp_path: Path) -> None:
    recorder = record(tmp_path)

    recorder.record(RunConfigured(target_step=9, versions={"mine": "1", "torch": "told"}))

    (found,) = of(tmp_path, RunConfigured)
    assert isinstance(found, RunConfigured)
    assert found.target_step == 9
    assert found.command is not None
    assert shlex.split(found.command)[0] == sys.orig_argv[0]
    assert found.versions is not None
    assert (found.versions["mine"], found.versions["torch"]) == ("1", "told")
    assert found.versions["python"] == ".".join(map(str, sys.version_info[:3]))


def test_what_the_program_says_itself_is_kept() -> None:
    told = RunConfigured(command="train", environment={"A": "b"})

    found = completed(told)

    assert (found.command, found.environment) == ("train", {"A": "b"})


@pytest.mark.parametrize(
    "arguments",
    [
        ["train.py", "--api-key", "s3cretWord99"],
        ["train.py", "--wandb_api_key=s3cretWord99"],
        ["train.py", "--store", "https://me:s3cretWord99@bucket/x"],
    ],
)
def test_a_secret_on_the_command_line_is_masked_in_the_spool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", *arguments])

    record(tmp_path).record(RunConfigured())

    (found,) = of(tmp_path, RunConfigured)
    assert isinstance(found, RunConfigured)
    assert found.command is not None
    assert found.command.startswith("python train.py")
    assert "[masked]" in found.command
    spooled = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"s3cretWord99" not in spooled


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("NCCL_DEBUG", True),
        ("TORCH_NCCL_ASYNC_ERROR_HANDLING", True),
        ("OMP_NUM_THREADS", True),
        ("HEADWAY_SPOOL", True),
        ("HEADWAY_TOKEN", False),
        ("HEADWAY_LAUNCH", False),
        ("TORCH_HUB_API_KEY", False),
        ("NVIDIA_SECRET", False),
        ("CUDA_VISIBLE_DEVICES", False),
        ("HOME", False),
        ("WANDB_API_KEY", False),
    ],
)
def test_only_variables_that_steer_a_library_and_are_no_secret_are_told(
    name: str, kept: bool
) -> None:
    assert steering({name: "1"}) == ({name: "1"} if kept else {})


def test_a_very_long_command_is_cut() -> None:
    assert len(command(["x" * 9_000]) or "") == LONGEST
    assert command([]) is None
