"""What `entry` tells from inside the launcher: torchelastic's metrics and events.

One JSON object a line, over a pipe of which the launcher holds the other end.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MILLISECOND = 1_000_000
_CHUNK = 64 * 1024
_PHASES = {
    "_rendezvous": "rendezvous",
    "_start_workers": "spawn",
    "_stop_workers": "stop_workers",
}
"""Methods that torchelastic's agents measure, and the restart phases that they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A metric, at a time in monotonic ns: restarts left, or a phase that took `duration` ns."""

    at: int
    remaining: int | None = None
    phase: str | None = None
    duration: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted:
    """The launcher started a rank."""

    process_id: int
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnded:
    """The launcher saw a rank fail at a time in monotonic ns; a negative code is a signal."""

    at: int
    process_id: int
    rank: int
    code: int


class Channel:
    """The reading end; `writing_end` is for the command and closed here afterwards."""

    def __init__(self) -> None:
        self._reading_end, self.writing_end = os.pipe()
        os.set_blocking(self._reading_end, False)
        self._rest = b""
        self.is_alive = False
        """Whether the launcher was entered, so that its metrics come."""

    def started(self) -> None:
        """Let go of the writing end, which the command holds now."""
        os.close(self.writing_end)

    def read(self) -> Iterator[Measured | WorkerStarted | WorkerEnded]:
        """Yield what was told since the last time."""
        with contextlib.suppress(OSError):  # nothing is there
            while chunk := os.read(self._reading_end, _CHUNK):
                *whole, self._rest = (self._rest + chunk).split(b"\n")
                for line in whole:
                    self.is_alive = True
                    message = parse(line)
                    if message is not None:
                        yield message


def parse(line: bytes) -> Measured | WorkerStarted | WorkerEnded | None:
    """Return what one line tells; `None` for all that means nothing to a run."""
    try:
        content = json.loads(line)
        at = int(content["at"])
        if "metric" in content:
            return _metric(at, str(content["metric"]), content["value"])
        return _event(at, json.loads(content["event"]))
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def _metric(at: int, name: str, value: Any) -> Measured | None:
    if name.startswith("workers.") and name.endswith(".remaining_restarts"):
        return Measured(at=at, remaining=max(int(value), 0))
    method = name.removesuffix(".duration.ms").rpartition(".")[2]
    if name.endswith(".duration.ms") and method in _PHASES:
        return Measured(at=at, phase=_PHASES[method], duration=max(int(value), 0) * _MILLISECOND)
    return None


def _event(at: int, event: Any) -> WorkerStarted | WorkerEnded | None:
    about = event["metadata"]
    if event["source"] != "WORKER":
        return None
    if about["state"] == "START":
        return WorkerStarted(process_id=int(about["worker_id"]), rank=int(about["global_rank"]))
    if about["state"] != "FAILED":
        return None
    worker = json.loads(about["metadata"])
    return WorkerEnded(
        at=at,
        process_id=int(worker["worker_pid"][0]),
        rank=int(about["global_rank"]),
        code=int(worker["exit_code"][0]),
    )
