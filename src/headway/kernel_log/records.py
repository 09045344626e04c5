"""What wraps a kernel message: records of `/dev/kmsg`, the journal's entries, dmesg, syslog.

Takes lines as they come and returns messages with their stamps. What another program than the
kernel wrote, or quotes, is no message of the kernel.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

from headway.events import Described
from headway.kernel_log.gpu_lines import DRIVER_MARKS
from headway.kernel_log.stamps import NO_STAMP, Stamp, read_stamps, uptime

LONGEST_LINE = 8192
"""Characters of a line that are looked at; the kernel's own records hold about a thousand."""
_LONGEST_PREFIX = 512
_MARKS = (*DRIVER_MARKS, "Memory cgroup out of memory", "Out of memory", "oom-kill:", "oom_reaper")
_MICROSECOND = 1_000
_MICROSECOND_DIGITS = 16
"""Of a time up to the year 2286."""
_BOOTING = 60_000_000_000
"""Time in ns after the boot within which the journal starts."""
_MOST_FIELDS = 256
_MOST_REPEATS = 1_000_000

_KMSG = re.compile(r"(\d{1,6}),(\d{1,20}),(\d{1,20}),[^;]{0,100};(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\x([0-9a-f]{2})")
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_FIELD = re.compile(r"([A-Z0-9_]{1,64})=")
_BYTES_FIELD = re.compile(r"[A-Z0-9_]{1,64}")
_SIZE = 8
"""Bytes that give the size of a field's value in the journal's export format."""
_NO_TEXT = "\0\ufeff\x1e"
"""What stands before a line and is no part of it: what a crash left in the file, the mark of the
encoding, and the sign that begins an entry in a sequence of JSON texts."""
_EVENT = "data: "
"""What begins an entry in a stream of server-sent events."""
_REPEATED = re.compile(r"message repeated (\d{1,7}) times: \[\s*$")
_EMPTY = re.compile(r"\[\s{0,64}\]")
_KERNEL_TAG = re.compile(r"(?:\S{1,255}\s{1,8})?kernel:")
_OTHER_TAG = re.compile(r"(?:^|\s)(?!kernel\b)[^\s:\[\]]{1,100}\[\d{1,10}\]:\s*$")
_HOST_AND_TAG = re.compile(r"\S{1,255}\s{1,8}([^\s:\[\]]{1,100}):\s*$")
_DECODED = re.compile(r"(?:\S{1,255}:\s)?kern\s{0,8}:\s{0,8}\w{1,10}\s{0,8}:(?:\s{0,8}:)?")
_PRIORITY = re.compile(r"<\d{1,3}>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the kernel and what its wrapping says of it."""

    text: Annotated[str, Described("Its first line, without any prefix.")]
    stamp: Annotated[Stamp, Described("Its time, as far as it is given.")] = NO_STAMP
    raw: Annotated[str, Described("The whole line as it was read.")]
    repeats: Annotated[int, Described("How often the logger says that it came.", "lines")] = 1
    boot_id: Annotated[str | None, Described("Boot during which it was written.")] = None
    received: Annotated[
        int | None, Described("Monotonic clock of that boot when the journal got it.", "ns")
    ] = None


class Records:
    """Reads lines in their order; an entry in the journal's export format takes several."""

    def __init__(self) -> None:
        self._entry: dict[str, str] | None = None
        """Fields of the journal entry that is being read."""
        self._bytes: str | None = None
        """Its field whose value is the next line, as it is no plain text."""

    def feed(self, line: str) -> list[Message]:
        """Return the messages that a line completes, with or without its end of line."""
        line = line.rstrip("\r\n")
        if self._bytes is not None:
            name, self._bytes = self._bytes, None
            self._keep(name, line[_SIZE:][:LONGEST_LINE])
            return []
        line = line.lstrip(_NO_TEXT)[:LONGEST_LINE]
        if "\x1b" in line:
            line = _COLOUR.sub("", line)
        field = _FIELD.match(line)
        if self._entry is not None:
            if field is not None and field[1] != "__CURSOR":
                self._keep(field[1], line[field.end() :])
                return []
            if _BYTES_FIELD.fullmatch(line):
                self._bytes = line
                return []
            finished = self.finish()
            if field is None and not line:
                return finished
            return finished + self.feed(line)
        if field is not None and field[1].startswith("__"):
            self._entry = {}
            self._keep(field[1], line[field.end() :])
            return []
        return _of_line(line)

    def finish(self) -> list[Message]:
        """Return the message of an entry that the end of the log has completed."""
        entry, self._entry, self._bytes = self._entry, None, None
        return [] if entry is None else of_journal(entry, f"MESSAGE={entry.get('MESSAGE', '')}")

    def _keep(self, name: str, value: str) -> None:
        if self._entry is not None and len(self._entry) < _MOST_FIELDS:
            self._entry[name] = value


def _of_line(line: str) -> list[Message]:
    line = line.removeprefix(_EVENT)
    if line.startswith("{"):
        return _of_json(line)
    if line[:1].isdigit():
        record = of_kmsg(line)
        if record is not None:
            return record
    found = min((place for mark in _MARKS if (place := line.find(mark)) >= 0), default=-1)
    if not 0 <= found <= _LONGEST_PREFIX:
        return []
    prefix, text = line[:found], line[found:]
    repeats = 1
    repeated = _REPEATED.search(prefix)
    if repeated is not None:
        prefix = prefix[: repeated.start()]
        text = text.rstrip().removesuffix("]")
        repeats = min(max(int(repeated[1]), 1), _MOST_REPEATS)
    stamp, rest = read_stamps(prefix) if prefix else (NO_STAMP, "")
    driver = text.startswith(DRIVER_MARKS)
    if not _by_the_kernel(rest, stamp, driver):
        return []
    return [Message(text=text, stamp=stamp, raw=line, repeats=repeats)]


def of_kmsg(line: str) -> list[Message] | None:
    """Return the messages of a record of `/dev/kmsg`, none for a program's; None for no record."""
    found = _KMSG.match(line)
    if found is None:
        return None
    if int(found[1]) >> 3:
        return []  # the facility is not the kernel: a program wrote into its buffer
    stamp = Stamp(monotonic=uptime(int(found[3]) * _MICROSECOND))
    text = found[4].partition("\n")[0]  # what follows are the keys of the device
    return _messages(
        _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text), stamp, line.rstrip("\n")
    )


def of_journal(entry: Mapping[str, Any], raw: str) -> list[Message]:
    """Return the messages of one entry of the journal, none where the kernel did not write it."""
    transport = entry.get("_TRANSPORT", "kernel")
    if transport != "kernel" or entry.get("SYSLOG_IDENTIFIER", "kernel") != "kernel":
        return []
    text = entry.get("MESSAGE")
    if isinstance(text, list):  # the journal's form of a message that is not plain text
        text = bytes(sign for sign in text if isinstance(sign, int) and 0 <= sign < 256).decode(
            "utf-8", "replace"
        )
    if not isinstance(text, str):
        return []
    boot_id = entry.get("_BOOT_ID")
    received = _microseconds(entry.get("__MONOTONIC_TIMESTAMP"))
    return [
        replace(
            message,
            boot_id=boot_id if isinstance(boot_id, str) else None,
            received=None if received is None else uptime(received),
        )
        for message in _messages(text, _journal_stamp(entry), raw)
    ]


def _journal_stamp(entry: Mapping[str, Any]) -> Stamp:
    """Return the time of an entry: when the journal got it, and the kernel's own since the boot.

    The journal starts after the kernel, and gets its first lines late. Later the two differ by
    what the clocks have drifted apart.
    """
    wall = _microseconds(entry.get("__REALTIME_TIMESTAMP"))
    received = _microseconds(entry.get("__MONOTONIC_TIMESTAMP"))
    written = _microseconds(entry.get("_SOURCE_MONOTONIC_TIMESTAMP"))
    if wall is not None and received is not None and written is not None and written < _BOOTING:
        wall -= max(received - written, 0)
    return Stamp(wall=wall, monotonic=None if written is None else uptime(written))


def _microseconds(value: Any) -> int | None:
    text = str(value)
    fits = text.isascii() and text.isdigit() and len(text) <= _MICROSECOND_DIGITS
    return int(text) * _MICROSECOND if fits else None


def _of_json(line: str) -> list[Message]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return of_journal(entry, line) if isinstance(entry, dict) else []


def _messages(text: str, stamp: Stamp, raw: str) -> list[Message]:
    """Return each line of a message, which the driver may write as one."""
    lines: Iterable[str] = text[:LONGEST_LINE].split("\n")
    return [Message(text=line.strip(), stamp=stamp, raw=raw) for line in lines if line.strip()]


def _by_the_kernel(rest: str, stamp: Stamp, driver: bool) -> bool:
    """Return whether what is left of a prefix without its stamps speaks for the kernel."""
    rest = _EMPTY.sub(" ", rest).strip()
    if not rest or rest == "MESSAGE=" or _PRIORITY.fullmatch(rest):
        return True
    if _KERNEL_TAG.fullmatch(rest) or _DECODED.fullmatch(rest):
        return True
    if "kernel:" in rest or _OTHER_TAG.search(rest) or rest.endswith(('"', "'", "`")):
        return False
    if not driver:
        return False  # words about memory are common; words of the driver are not
    tagged = stamp.local is not None or stamp.wall is not None
    return not (tagged and _HOST_AND_TAG.fullmatch(rest))
