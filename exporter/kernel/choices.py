"""Which kernel log a setting means, and how each is opened."""

import stat
from collections.abc import Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from headway.exporter.kernel.journal import JOURNAL, JournalSource
from headway.exporter.kernel.sources import KMSG, FileSource, KmsgSource, Source, behind

_AUTO = "auto"
_NAMED = {"kmsg": str(KMSG), JOURNAL: JOURNAL}
_FILES = ("/var/log/kern.log", "/var/log/messages", "/var/log/syslog")
"""Where syslog daemons write what the kernel says."""
_LOCAL_ZONE = Path("/etc/localtime")


def choices(setting: str) -> list[str]:
    """Return the names of the logs that a setting allows, the best one first."""
    if setting == _AUTO:
        return [*_NAMED.values(), *(name for name in _FILES if Path(name).exists())]
    return [_NAMED.get(setting, setting)]


def open_source(name: str, position: Mapping[str, Any]) -> Source:
    """Open a log and go on from a position that it gave before.

    Raises:
        OSError: it cannot be read.
    """
    if name == str(KMSG):
        return KmsgSource(position)
    if name == JOURNAL:
        return JournalSource(position)
    return FileSource(Path(name), position)


def end_of(name: str) -> Mapping[str, Any]:
    """Return the position behind what a file holds; of another log its start, for it is short."""
    try:
        status = Path(name).stat()
    except OSError:
        return {}
    return behind(status) if stat.S_ISREG(status.st_mode) else {}


def local_zone() -> tzinfo:
    """Return the time zone in which this node's syslog writes, UTC where nothing says otherwise."""
    try:
        with _LOCAL_ZONE.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (OSError, ValueError):
        return UTC
