"""The kernel's lines of the systemd journal, through a `journalctl` that follows it.

The program is the stable interface to the journal's files. It is a child that writes JSON into a
pipe; it is started again, from the last cursor, when it ends.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, Any

from headway.exporter.kernel.sources import Taken
from headway.kernel_log.records import of_journal

JOURNAL = "journal"
"""What people call it."""
_PROGRAM = "journalctl"
_MOST_BYTES = 1024 * 1024
_LONGEST_LINE = 4 * 1024 * 1024
_BLOCK = 65_536
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1_000_000_000, 60_000_000_000
"""Time in ns before an ended program is started again; doubled each time."""
_PROOF = 10_000_000_000
"""Time in ns within which the boot's lines come where the journal can be read."""
_BLIND = "it gives no line of the kernel; is this user of the group systemd-journal?"
_LONGEST_WORDS = 500


class JournalSource:
    """Follows the journal from behind a cursor, or from the begin of this boot."""

    name = JOURNAL
    live = True

    def __init__(self, position: Mapping[str, Any], program: str = _PROGRAM) -> None:
        """Prepare; the first `read` starts the program."""
        self._program = program
        self._cursor: str | None = position.get("cursor")
        self._rest = b""
        self._child: subprocess.Popen[bytes] | None = None
        self._pause = _SHORTEST_PAUSE
        self._next_start = 0
        self._started = 0
        self._words: IO[bytes] | None = None

    @property
    def proven(self) -> bool:
        """Whether a line of the kernel was read."""
        return self._cursor is not None

    def read(self, now: int) -> Taken:
        """Return new entries; `now` is monotonic ns.

        Raises:
            OSError: the program cannot be started, or gives nothing, not even the boot's lines.
        """
        taken = Taken()
        if self._child is None:
            if now < self._next_start:
                return taken
            self._start(now)
        child = self._child
        if child is None or child.stdout is None:
            return taken
        amount = 0
        while amount < _MOST_BYTES:
            try:
                block = os.read(child.stdout.fileno(), _BLOCK)
            except BlockingIOError:
                if not self.proven and now - self._started > _PROOF:
                    raise OSError(_BLIND) from None
                return taken
            if not block:
                self._ended(now)
                return taken
            amount += len(block)
            self._feed(block, taken)
            self._pause = _SHORTEST_PAUSE
        taken.more = True
        return taken

    def position(self) -> Mapping[str, Any]:
        """Return the cursor of the last entry."""
        return {} if self._cursor is None else {"cursor": self._cursor}

    def close(self) -> None:
        """End the program."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
        if self._words is not None:
            self._words.close()
            self._words = None
        self._rest = b""

    def _start(self, now: int) -> None:
        self._started = now
        # No pipe: one that nobody empties would block the program.
        self._words = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the child
        try:
            self._child = subprocess.Popen(  # noqa: S603  # a fixed program of the system
                self._command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._words,
            )
        except OSError:
            self.close()
            raise
        assert self._child.stdout is not None  # noqa: S101  # a pipe was asked for
        os.set_blocking(self._child.stdout.fileno(), False)

    def _command(self) -> Sequence[str]:
        command = [self._program, "--output=json", "--follow", "--quiet", "--no-pager"]
        if self._cursor is None:
            return [*command, "--dmesg", "--lines=all"]
        # Not --dmesg: that is this boot alone, and the lines before a crash are what matters.
        return [*command, "--lines=all", f"--after-cursor={self._cursor}", "_TRANSPORT=kernel"]

    def _ended(self, now: int) -> None:
        words = self._said()
        self.close()
        if not self.proven:
            raise OSError(words or _BLIND)
        self._next_start = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _said(self) -> str:
        if self._words is None:
            return ""
        self._words.seek(0)
        return " ".join(self._words.read(_LONGEST_WORDS).decode("utf-8", "replace").split())

    def _feed(self, block: bytes, taken: Taken) -> None:
        *lines, self._rest = (self._rest + block).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            self._rest = b""
        for line in lines:
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict):
                taken.messages += of_journal(entry, str(entry.get("MESSAGE", "")))
                cursor = entry.get("__CURSOR")
                self._cursor = cursor if isinstance(cursor, str) else self._cursor
