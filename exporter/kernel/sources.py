"""Where a kernel's log can be read: the kernel's buffer, and files that something rotates.

Each source gives its messages in order, a bounded number per call, knows how many it missed, and
can go on after a restart from the position that it had. The journal is in `journal_source`.
"""

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from headway.kernel_log.records import Message, Records, of_kmsg

KMSG = Path("/dev/kmsg")
_RECORD = 8192
"""Bytes of the kernel's longest record."""
_MOST_RECORDS = 2_000
_MOST_BYTES = 1024 * 1024
"""What one call reads at most."""
_READING = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""Not to wait for ever, should the name be a pipe's."""
_HEAD = 128
"""Bytes at the start of a file by which one recognises that it was emptied and filled again."""


@dataclass(slots=True, kw_only=True)
class Taken:
    """What one call has read."""

    messages: list[Message] = field(default_factory=list)
    missed: int = 0
    """Records that were overwritten before they could be read."""
    gap: str | None = None
    """Words for lines that were lost in unknown number."""
    more: bool = False
    """Whether there is more to read at once."""


class Source(Protocol):
    """One kernel log."""

    name: str
    """What people call it."""
    live: bool
    """Whether messages come as the kernel writes them, with its own stamps."""

    @property
    def proven(self) -> bool:
        """Whether it is certain that the log can be read."""

    def read(self, now: int) -> Taken:
        """Return what is new; must not block. `now` is monotonic ns.

        Raises:
            OSError: the log can no longer be read.
        """

    def position(self) -> Mapping[str, Any]:
        """Return from where to go on, as JSON."""

    def close(self) -> None:
        """Let go of it."""


class KmsgSource:
    """`/dev/kmsg`, one record a call of `read`; a reader that is too slow gets EPIPE.

    The records' numbers tell what was overwritten. They start again with each boot.
    """

    live = True
    proven = True

    def __init__(
        self,
        position: Mapping[str, Any],
        path: Path = KMSG,
        read: Callable[[int, int], bytes] = os.read,
    ) -> None:
        """Open it and go on behind `position`, or begin with what the buffer still holds.

        `read` reads a descriptor, at most so many bytes.

        Raises:
            OSError: it cannot be read.
        """
        self.name = str(path)
        self._read = read
        self._last: int | None = position.get("sequence")
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def read(self, now: int) -> Taken:
        """Return new records and the number of overwritten ones."""
        taken = Taken()
        for _ in range(_MOST_RECORDS):
            try:
                record = self._read(self._descriptor, _RECORD)
            except BlockingIOError:
                return taken
            except OSError as error:
                if error.errno == errno.EPIPE:
                    continue  # the next record is the oldest that is left; its number tells more
                if error.errno == errno.EINVAL:
                    continue  # a record longer than any; its number will be missing
                raise
            if not record:
                return taken
            self._take(record.decode("utf-8", "replace"), taken)
        taken.more = True
        return taken

    def position(self) -> Mapping[str, Any]:
        """Return the number of the last record."""
        return {} if self._last is None else {"sequence": self._last}

    def close(self) -> None:
        """Close the device."""
        os.close(self._descriptor)

    def _take(self, record: str, taken: Taken) -> None:
        messages = of_kmsg(record)
        fields = record.split(",", 2)
        if messages is None or len(fields) < 3 or not fields[1].isdigit():
            return
        number = int(fields[1])
        if self._last is not None:
            if number <= self._last:
                return  # read before the restart
            taken.missed += number - self._last - 1
        self._last = number
        taken.messages += messages


def behind(status: os.stat_result) -> Mapping[str, Any]:
    """Return the position of a `FileSource` behind all that a file holds now."""
    return {"inode": status.st_ino, "offset": status.st_size}


class FileSource:
    """A file that a syslog daemon writes and something rotates, by renaming or by emptying it."""

    live = False

    def __init__(self, path: Path, position: Mapping[str, Any]) -> None:
        """Prepare; the file need not be there yet."""
        self.name = str(path)
        self._path = path
        self._records = Records()
        self._descriptor: int | None = None
        self._inode: int | None = position.get("inode")
        self._offset = int(position.get("offset", 0))
        self._head = bytes.fromhex(position.get("head", ""))

    @property
    def proven(self) -> bool:
        """Whether the file is there."""
        return self._descriptor is not None

    def read(self, now: int) -> Taken:
        """Return the whole lines that are new, of the rotated file first."""
        taken = Taken()
        if self._descriptor is None:
            self._open(taken)
        if self._descriptor is not None:
            self._read_on(taken)
            if not taken.more and self._was_replaced():
                self._read_rest(taken)
                self._leave()
                taken.more = True
        return taken

    def position(self) -> Mapping[str, Any]:
        """Return file, place in it, and its first bytes."""
        if self._inode is None:
            return {}
        return {"inode": self._inode, "offset": self._offset, "head": self._head.hex()}

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self, taken: Taken) -> None:
        """Open the file that was being read, wherever it is now, else the one of the name."""
        found = self._path
        if self._inode is not None:
            ours = self._ours([self._path, *self._siblings()])
            if ours is not None:
                found = ours
            else:
                taken.gap = f"{self.name} was replaced before it was read to its end"
                self._leave()
        try:
            self._descriptor = os.open(found, _READING)
        except FileNotFoundError:
            return  # between two files; the next look finds it
        self._inode = os.fstat(self._descriptor).st_ino

    def _siblings(self) -> list[Path]:
        try:
            return sorted(self._path.parent.glob(f"{self._path.name}[.-]*"))
        except OSError:
            return []

    def _ours(self, paths: Sequence[Path]) -> Path | None:
        """Return the file of the remembered inode, else one with the same beginning: a copy."""
        copies = []
        for path in paths:
            try:
                with path.open("rb") as file:
                    status = os.fstat(file.fileno())
                    known = file.read(len(self._head)) == self._head
            except OSError:
                continue
            if known and status.st_size >= self._offset:
                if status.st_ino == self._inode:
                    return path
                if self._head:
                    copies.append(path)
        return copies[0] if copies else None

    def _read_on(self, taken: Taken) -> None:
        assert self._descriptor is not None  # noqa: S101  # only called with an open file
        if self._was_emptied():
            self._find_copy(taken)
            return
        block = os.pread(self._descriptor, _MOST_BYTES, self._offset)
        end = block.rfind(b"\n") + 1
        if end == 0 and len(block) == _MOST_BYTES:
            end = len(block)  # a line of a megabyte is no line
        self._feed(block[:end], taken)
        self._take_head()
        taken.more = len(block) == _MOST_BYTES

    def _feed(self, block: bytes, taken: Taken) -> None:
        if not block:
            return
        self._offset += len(block)
        for line in block.decode("utf-8", "replace").removesuffix("\n").split("\n"):
            taken.messages += self._records.feed(line)

    def _take_head(self) -> None:
        assert self._descriptor is not None  # noqa: S101  # only called with an open file
        if len(self._head) < _HEAD:
            self._head = os.pread(self._descriptor, min(_HEAD, self._offset), 0)

    def _was_emptied(self) -> bool:
        assert self._descriptor is not None  # noqa: S101  # only called with an open file
        if os.fstat(self._descriptor).st_size < self._offset:
            return True
        return os.pread(self._descriptor, len(self._head), 0) != self._head

    def _find_copy(self, taken: Taken) -> None:
        """Go on in the copy that was made before the file was emptied."""
        self.close()
        copy = self._ours(self._siblings())
        if copy is not None:
            self._descriptor = os.open(copy, _READING)
            self._inode = os.fstat(self._descriptor).st_ino
            taken.more = True
            return
        taken.gap = f"{self.name} was emptied before it was read to its end"
        self._leave()
        taken.more = True

    def _was_replaced(self) -> bool:
        try:
            return self._path.stat().st_ino != self._inode
        except FileNotFoundError:
            return False  # renamed, and the new one is not there yet: its end may still grow

    def _read_rest(self, taken: Taken) -> None:
        """Take the last line of a file that ends without an end of line."""
        assert self._descriptor is not None  # noqa: S101  # only called with an open file
        block = os.pread(self._descriptor, _MOST_BYTES, self._offset)
        self._feed(block, taken)
        taken.messages += self._records.finish()

    def _leave(self) -> None:
        self.close()
        self._inode, self._offset, self._head = None, 0, b""
