"""ml-goodput-measurement without Google Cloud: its own recorder, cache and calculator.

Its package imports clients of Google Cloud and of TensorBoard that the calculator never calls once
a logger is given, so those modules are replaced by empty ones.
"""

import datetime
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.goodput.absent import replace

_ABSENT = (
    "google",
    "google.api_core",
    "google.api_core.exceptions",
    "google.cloud",
    "google.cloud.logging",
    "google.cloud.monitoring_v3",
    "google.cloud.storage",
    "tensorboardX",
    "tensorboardX.writer",
)

Entry = dict[str, Any]
Cursor = tuple[datetime.datetime, str]


def _load() -> ModuleType:
    replace(_ABSENT)
    from ml_goodput_measurement.src import goodput

    return goodput


LIBRARY = _load()
_CACHES = tempfile.TemporaryDirectory()


class MemoryLogger:
    """Stands for its Cloud Logging client: keeps entries and returns those after a cursor."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write_cloud_logging_entry(self, entry: Entry) -> None:
        """Take an entry."""
        self.entries.append(entry)

    def read_cloud_logging_entries(
        self, last_entry_info: Cursor | None = None, **_: object
    ) -> tuple[list[Entry], Cursor | tuple[None, None]]:
        """Return the entries after a cursor, all without one, and the next cursor."""
        read = 0 if last_entry_info is None else int(last_entry_info[1])
        new = self.entries[read:]
        return new, (utc(0), str(len(self.entries))) if new else (None, None)


def calculator(logger: MemoryLogger, folder: Path | None = None, job: str = "bench") -> Any:
    """Return its calculator over a logger; without a folder its cache starts empty."""
    cache = tempfile.mkdtemp(dir=_CACHES.name) if folder is None else folder
    return LIBRARY.GoodputCalculator(job, "log", cloud_logger=logger, cache_dir=str(cache))


def recorder(logger: MemoryLogger, job: str = "bench") -> Any:
    """Return its recorder that writes to a logger."""
    return LIBRARY.GoodputRecorder(job, "log", True, cloud_logger=logger)


def utc(seconds: float) -> datetime.datetime:
    """Return a time of a made-up run, in seconds from its origin, as its recorder takes it."""
    return datetime.datetime.fromtimestamp(1_704_067_200 + seconds, tz=datetime.UTC)


def save_entry(job: str, step: int, begin: float, blocking: float) -> Entry:
    """Return what Orbax logs about a save that blocked training; times in seconds since 1970."""
    return {
        "job_name": job,
        "event_type": "save",
        "step": step,
        "directory": "gs://bucket/run",
        "wait_for_prev_duration_secs": 0.0,
        "checkpointer_blocking_duration_secs": blocking,
        "get_old_steps_duration_secs": 0.0,
        "checkpoint_manager_blocking_start_time": begin,
        "checkpoint_manager_blocking_duration_secs": blocking,
    }


def restore_entry(job: str, step: int, begin: float, duration: float) -> Entry:
    """Return what Orbax logs about a restore; times in seconds since 1970."""
    return {
        "job_name": job,
        "event_type": "restore",
        "step": step,
        "directory": "gs://bucket/run",
        "checkpointer_start_time": begin,
        "checkpointer_duration_secs": duration,
        "checkpoint_manager_start_time": begin,
        "checkpoint_manager_duration_secs": duration,
    }
