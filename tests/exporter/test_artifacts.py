"""Files kept as references: stack dumps and dumps of the flight recorder, from real files."""

import hashlib
import os
import threading
from pathlib import Path

import pytest

from headway.exporter.nvrx import artifacts
from headway.exporter.nvrx.artifacts import FlightRecorderDumps, artifact, dump_stacks


def test_a_reference_names_size_and_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pyspy.txt").write_bytes(b"Thread 1 (idle)\n")
    monkeypatch.chdir(tmp_path)

    found = artifact(Path("pyspy.txt"), "stacks")

    assert found.path == str(tmp_path / "pyspy.txt")
    assert found.size == 16
    assert found.sha256 == hashlib.sha256(b"Thread 1 (idle)\n").hexdigest()


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "LARGEST_SUMMED", 3)
    (tmp_path / "dump").write_bytes(b"1234")

    assert artifact(tmp_path / "dump", "flight_recorder").sha256 is None
    assert artifact(tmp_path / "dump", "flight_recorder").size == 4


def test_a_dump_shows_where_each_thread_is(tmp_path: Path) -> None:
    waiting, done = threading.Event(), threading.Event()

    def stuck_in_a_collective() -> None:
        waiting.set()
        done.wait(30)

    thread = threading.Thread(target=stuck_in_a_collective)
    thread.start()
    waiting.wait(30)
    try:
        found = dump_stacks(tmp_path / "new" / "stacks.txt")
    finally:
        done.set()
        thread.join()

    text = Path(found.path).read_text(encoding="utf-8")
    assert "stuck_in_a_collective" in text
    assert "test_a_dump_shows_where_each_thread_is" in text
    with pytest.raises(FileExistsError):
        dump_stacks(tmp_path / "new" / "stacks.txt")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return what tells torch and NVRx where to write, for rank 3."""
    return {
        "RANK": "3",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "nccl_trace_rank_"),
        "TORCH_FR_DUMP_TEMP_FILE": str(tmp_path / "nccl_trace_rank_"),
        "NVRX_FR_TRACE_PATH": str(tmp_path / "traces"),
    }


def write(path: Path, text: str, written: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(written, written))
    return path


def test_each_dump_of_the_rank_is_found_once_and_again_when_it_changes(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    dumps = FlightRecorderDumps(environment, launched=1000)
    assert dumps.new() == []
    torch = write(tmp_path / "nccl_trace_rank_3", "one", 2000)
    nvrx = write(tmp_path / "traces" / "iter_0" / "_dump_3.json", "two", 2000)
    write(tmp_path / "nccl_trace_rank_4", "another rank's", 2000)
    write(tmp_path / "traces" / "iter_0" / "_dump_4.json", "another rank's", 2000)

    assert dumps.new() == [torch, nvrx]
    assert dumps.new() == []

    write(torch, "again", 3000)
    assert dumps.new() == [torch]


def test_what_is_older_than_the_launch_or_empty_is_no_dump_of_this_run(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    path = write(tmp_path / "nccl_trace_rank_3", "of last week", 999)
    dumps = FlightRecorderDumps(environment, launched=1000)
    assert dumps.new() == []

    write(path, "", 2000)  # torch has only opened it yet
    assert dumps.new() == []


def test_a_rank_that_shifts_looks_for_its_new_number(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    dumps = FlightRecorderDumps(environment, launched=0)
    path = write(tmp_path / "nccl_trace_rank_2", "one", 2000)
    assert dumps.new() == []
    environment["RANK"] = "2"
    assert dumps.new() == [path]


def test_without_settings_nothing_is_looked_for() -> None:
    assert FlightRecorderDumps({"RANK": "0"}, launched=0).new() == []
