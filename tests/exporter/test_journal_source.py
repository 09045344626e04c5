"""The journal through a real child process, which plays `journalctl` over a file of entries."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headway.exporter.kernel.journal import JournalSource
from headway.exporter.kernel.line_times import KernelTime
from headway.kernel_log.records import Message

SECOND = 10**9
_DEADLINE = 10.0

_PLAYER = """#!/bin/sh
from=0
for word; do case $word in --after-cursor=*) from=${word#--after-cursor=};; esac; done
echo "$*" >> "$0.asked"
exec tail -n +$((from + 1)) -f "$0.entries"
"""


class Journal:
    """Entries whose cursor is their number, and the program that follows them."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "journalctl"
        self.program.write_text(_PLAYER, encoding="ascii")
        self.program.chmod(0o700)
        self._entries = folder / "journalctl.entries"
        self._entries.touch()
        self._asked = folder / "journalctl.asked"
        self._number = 0

    def write(self, seconds: float, text: str, **fields: str) -> None:
        self._number += 1
        entry = {
            "__CURSOR": str(self._number),
            "__REALTIME_TIMESTAMP": str(1_788_000_000_000_000 + round(seconds * 1e6)),
            "__MONOTONIC_TIMESTAMP": str(round(seconds * 1e6)),
            "_BOOT_ID": "0123456789abcdef0123456789abcdef",
            "_TRANSPORT": "kernel",
            "MESSAGE": text,
            **fields,
        }
        with self._entries.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    @property
    def asked(self) -> list[str]:
        return self._asked.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


@pytest.fixture
def opened(journal: Journal) -> Iterator[Callable[..., JournalSource]]:
    sources = []

    def open_(position: dict[str, str] | None = None) -> JournalSource:
        sources.append(JournalSource(position or {}, program=str(journal.program)))
        return sources[-1]

    yield open_
    for source in sources:
        source.close()


def read(source: JournalSource, count: int) -> list[Message]:
    found: list[Message] = []
    end = time.monotonic() + _DEADLINE
    while len(found) < count:
        assert time.monotonic() < end, f"{len(found)} of {count} entries came"
        found += source.read(time.monotonic_ns()).messages
        time.sleep(0.005)
    return found


def test_entries_are_followed_from_the_begin_of_the_boot(
    journal: Journal, opened: Callable[..., JournalSource]
) -> None:
    journal.write(1, "before")
    source = opened()
    first = read(source, 1)
    journal.write(2, "a program's words", _TRANSPORT="stdout")
    journal.write(3, "after")
    second = read(source, 1)

    assert [message.text for message in (*first, *second)] == ["before", "after"]
    assert second[0].received == 3 * SECOND
    assert "--dmesg" in journal.asked[0]
    assert source.proven


def test_a_new_reader_goes_on_behind_the_cursor_also_before_the_last_boot(
    journal: Journal, opened: Callable[..., JournalSource]
) -> None:
    for number in range(1, 4):
        journal.write(number, f"line {number}")
    source = opened()
    read(source, 3)
    journal.write(4, "line 4")

    found = read(opened(dict(source.position())), 1)

    assert [message.text for message in found] == ["line 4"]
    assert "--after-cursor=3" in journal.asked[1]
    assert "--dmesg" not in journal.asked[1]


def test_a_program_that_ends_is_started_again_and_nothing_is_lost(
    journal: Journal, opened: Callable[..., JournalSource]
) -> None:
    journal.write(1, "line 1")
    source = opened()
    read(source, 1)
    child = source._child
    assert child is not None
    os.kill(child.pid, 9)
    journal.write(2, "line 2")

    assert [message.text for message in read(source, 1)] == ["line 2"]


def test_a_journal_that_stays_empty_is_said_to_be_closed_to_this_user(
    opened: Callable[..., JournalSource],
) -> None:
    source = opened()
    source.read(1_000 * SECOND)

    with pytest.raises(OSError, match="is this user of the group systemd-journal"):
        source.read(1_011 * SECOND)


def test_the_programs_own_words_say_why_it_cannot_read(
    journal: Journal, opened: Callable[..., JournalSource]
) -> None:
    journal.program.write_text("#!/bin/sh\necho 'No journal files were opened' >&2\nexit 1\n")
    source = opened()

    with pytest.raises(OSError, match="No journal files were opened"):
        read(source, 1)


def test_a_missing_program_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        JournalSource({}, program="/no/such/journalctl").read(0)


def test_an_entry_of_another_boot_has_no_place_on_this_boots_clock(
    journal: Journal, opened: Callable[..., JournalSource]
) -> None:
    journal.write(1, "line")
    (message,) = read(opened(), 1)

    def at(boot_id: str) -> int | None:
        return KernelTime(boot_id).monotonic(
            message, None, live=True, since=None, now=5 * SECOND, clocks=0
        )

    assert at("01234567-89ab-cdef-0123-456789abcdef") == SECOND
    assert at("another") is None
