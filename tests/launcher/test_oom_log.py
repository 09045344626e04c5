"""Kills for lack of memory in a kernel log file, from the command's start on."""

import os
from pathlib import Path

import pytest

from headway.exporter.launcher.oom_log import OomLog

KILL = "Sep  8 10:00:02 node kernel: Out of memory: Killed process {} (python3) total-vm:9kB\n"


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_kills_before_the_command_are_none_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    append(path, KILL.format(1))
    log = OomLog(str(path))

    assert [kill.process_id for kill in log.read()] == []
    append(path, KILL.format(2))
    assert [kill.process_id for kill in log.read()] == [2]
    log.close()


def test_a_log_of_weeks_is_not_read_before_the_command_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kern.log"
    append(path, KILL.format(1) * 10_000)
    size = path.stat().st_size
    amounts: list[int] = []
    read = os.pread

    def counted(descriptor: int, length: int, offset: int) -> bytes:
        block = read(descriptor, length, offset)
        amounts.append(len(block))
        return block

    monkeypatch.setattr(os, "pread", counted)
    log = OomLog(str(path))

    assert sum(amounts) < size / 10
    append(path, KILL.format(2))
    assert [kill.process_id for kill in log.read()] == [2]
    log.close()


def test_a_log_that_is_rotated_meanwhile_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    append(path, KILL.format(1))
    log = OomLog(str(path))
    append(path, KILL.format(2))
    path.rename(tmp_path / "kern.log.1")
    append(path, KILL.format(3))

    assert [kill.process_id for kill in log.read()] == [2, 3]
    log.close()
