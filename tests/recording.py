"""Recorders on a folder of the test, and what a reader finds of them."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from headway import step_blocks
from headway.events import Envelope, Event, Misuse, Steps
from headway.exporter import Recorder
from headway.exporter.recording import data_waits as data_waits_module
from headway.exporter.recording import phases as phases_module
from headway.exporter.recording import recorder as recorder_module
from headway.exporter.recording import step_timer as step_timer_module
from headway.exporter.spooling.layout import AGENT_MARKER
from headway.exporter.spooling.reader import START, Batch, SpoolReader, spools
from headway.settings import RecorderSettings

E = TypeVar("E", bound=Event)


def record(folder: Path, rank: int | None = None, **options: Any) -> Recorder:
    """Open a recorder whose spool lies in `folder`, where an agent is said to be at work."""
    folder.mkdir(exist_ok=True)
    (folder / AGENT_MARKER).touch()
    settings = RecorderSettings(spool=folder, run_id="7", **options)
    return Recorder("llama", rank=rank, settings=settings)


def readers(folder: Path) -> list[SpoolReader]:
    """Return a reader of each spool."""
    return [SpoolReader(path) for path in spools(folder)]


def read(folder: Path) -> Batch:
    """Read the only spool of a folder whole."""
    (reader,) = readers(folder)
    return reader.read(START, 10**9)


def events(folder: Path) -> list[Event]:
    """Return the events of the only spool."""
    return [envelope.event for envelope in read(folder).envelopes]


def of(folder: Path, kind: type[E]) -> list[E]:
    """Return the events of one kind."""
    return [event for event in events(folder) if isinstance(event, kind)]


def misuses(folder: Path) -> list[str]:
    """Return the kinds of misuse that were told."""
    return [event.kind for event in of(folder, Misuse)]


def steps(envelopes: Iterable[Envelope]) -> list[tuple[int, step_blocks.Step]]:
    """Return number and record of each step."""
    return [
        (envelope.event.first_step + index, step)
        for envelope in envelopes
        if isinstance(envelope.event, Steps)
        for index, step in enumerate(
            step_blocks.unpack(envelope.event.version, envelope.event.packed)
        )
    ]


def step_numbers(folder: Path) -> list[int]:
    """Return the numbers of all recorded steps."""
    return [number for number, _ in steps(read(folder).envelopes)]


def environment() -> dict[str, str]:
    """Return an environment in which another process finds what this one imports."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


class Clock:
    """A monotonic clock that moves when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, now: int) -> None:
        self.now = now
        for module in (recorder_module, step_timer_module, phases_module, data_waits_module):
            monkeypatch.setattr(module, "_now", self)

    def __call__(self) -> int:
        return self.now
