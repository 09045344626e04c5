"""Checkpoints of one run in one folder: names, what is durable, saving, loading, and the events.

A checkpoint is a folder `step-000120` that all ranks see; it is durable once its metadata is
there, which is written last. An unreadable one is passed over for the next older one.
"""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.tensor import DTensor

from headway.events import (
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointLoadFailed,
    CheckpointScheduled,
    CheckpointStaged,
)
from headway.exporter.recording.recorder import Recorder
from headway.exporter.training.injector import FaultInjector, InjectedFaultError
from headway.exporter.training.writer import Done, first_failure, stage

_NAME = re.compile(r"step-(\d+)")
_METADATA = ".metadata"


class Loaded(NamedTuple):
    """A state that was read back, and the newest checkpoint, which was asked for first.

    Nothing was read where there is no checkpoint, or none that can be read.
    """

    checkpoint: str | None
    step: int
    requested: str | None
    state: Any


class Writer(Protocol):
    """How states are written; every rank must make the same calls."""

    copies: bool
    """Whether it needs a copy of the state, because training goes on while it writes."""

    def start(self) -> None:
        """Start what it needs, unless it runs; do not wait for it."""

    def write(self, state: Any, path: Path, done: Done) -> None:
        """Write a state, or begin to."""

    def poll(self, *, blocking: bool = False) -> None:
        """Tell which writes are complete."""

    def abandon(self) -> None:
        """Drop unfinished writes after a fault; not a collective."""

    def close(self) -> None:
        """End what was started; not a collective."""


def name(step: int) -> str:
    """Return the name of the checkpoint that holds `step` steps."""
    return f"step-{step:06d}"


def durable(folder: Path) -> list[Path]:
    """Return the complete checkpoints in a folder, the newest first."""
    found = {
        int(match[1]): path
        for path in folder.glob("step-*")
        if (match := _NAME.fullmatch(path.name)) and (path / _METADATA).exists()
    }
    return [found[step] for step in sorted(found, reverse=True)]


class Checkpoints:
    """Saves and loads the state of one rank; every rank must make the same calls."""

    def __init__(
        self,
        recorder: Recorder,
        folder: Path,
        *,
        writer: Writer,
        rank: int,
        faults: FaultInjector,
    ) -> None:
        """Prepare to save to and load from `folder`; `rank` is the process's global rank."""
        self._recorder = recorder
        self._folder = folder
        self._writer = writer
        self._rank = rank
        self._faults = faults
        self._open: dict[int, int] = {}  # step of a scheduled save: when training went on

    def start(self) -> None:
        """Start what writes, unless it runs; do not wait for it."""
        self._writer.start()

    def warm_up(self) -> None:
        """Wait until it can write, so that the first save does not."""
        self._writer.poll(blocking=True)

    def save(self, step: int, state: Callable[[], Any]) -> None:
        """Write the state; where training goes on meanwhile, write a copy of it."""
        checkpoint, begin = name(step), time.monotonic_ns()
        path = self._folder / checkpoint
        is_torn = self._faults.threatens("checkpoint_torn", step)
        with self._recorder.phase("checkpoint_save"):
            self._faults.strike("save", step)
            copied, size = state(), None
            if self._writer.copies:
                copied = stage(copied)
                size = _size(copied)
                self._recorder.record(
                    CheckpointStaged(
                        checkpoint=checkpoint,
                        step=step,
                        duration=time.monotonic_ns() - begin,
                        bytes_staged=size,
                    )
                )
            try:
                self._prepare(path)
                if self._faults.breaks("checkpoint_fail", step):
                    self._obstruct(path)
                self._writer.write(
                    copied, path, lambda reason, total: self._done(step, reason, total)
                )
            except OSError as error:
                self._failed(step, str(error))
                return
        self._open[step] = time.monotonic_ns()
        self._recorder.record(
            CheckpointScheduled(
                checkpoint=checkpoint,
                step=step,
                blocking=self._open[step] - begin,
                bytes_staged=size,
                queue_depth=len(self._open),
                tier="shared",
            )
        )
        if not self._writer.copies:
            self.poll()
        if is_torn:
            self.finish()  # only what is complete can be damaged afterwards
            if self._faults.breaks("checkpoint_torn", step):
                self._tear(path)

    def poll(self) -> None:
        """Record the saves that were completed since the last call."""
        self._writer.poll()

    def finish(self) -> None:
        """Wait for open saves."""
        with self._recorder.phase("checkpoint_save"):
            self._writer.poll(blocking=True)

    def close(self) -> None:
        """End what writes; not a collective, so finish before."""
        self._writer.close()

    def abandon(self) -> None:
        """Give open saves up after a fault; not a collective."""
        self._writer.abandon()
        for step in list(self._open):
            # The fault may have struck between the metadata and the news of it.
            complete = (self._folder / name(step) / _METADATA).exists()
            reason = None if complete else "abandoned: a fault came before it was complete"
            self._done(step, reason, None)

    def load(self, template: Callable[[], Any]) -> Loaded:
        """Return the newest state that can be read.

        `template` gives a state of the right shape, made only if there is something to load.
        """
        with self._recorder.phase("checkpoint_load"):
            candidates = _agreed(lambda: [path.name for path in durable(self._folder)])
            if not candidates:
                self._faults.strike("load", 0)
                return Loaded(None, 0, None, None)
        for checkpoint in candidates:
            begin = time.monotonic_ns()
            step = int(checkpoint.partition("-")[2])
            with self._recorder.phase("checkpoint_load"):
                state = stage(template())
                self._faults.strike("load", step)
                reason = _load(state, self._folder / checkpoint)
            if reason is None:
                duration = time.monotonic_ns() - begin
                self._recorder.record(
                    CheckpointLoaded(checkpoint=checkpoint, step=step, duration=duration)
                )
                return Loaded(checkpoint, step, candidates[0], state)
            self._recorder.record(
                CheckpointLoadFailed(checkpoint=checkpoint, step=step, reason=reason)
            )
        return Loaded(None, 0, candidates[0], None)

    def _prepare(self, path: Path) -> None:
        """Make an empty folder; an older attempt's, unreadable or unfinished, moves aside."""

        def prepare() -> None:
            if path.exists():
                path.rename(path.with_name(f"{path.name}.replaced-{time.time_ns()}"))
            path.mkdir(parents=True)

        _agreed(prepare)

    def _obstruct(self, path: Path) -> None:
        """Put a folder where this rank's file will be written, so that the write fails."""
        (path / f"__{self._rank}_0.distcp").mkdir()

    def _tear(self, path: Path) -> NoReturn:
        """Lose the second half of what this rank wrote, and see to it that somebody reads it."""
        for part in path.glob(f"__{self._rank}_*"):
            os.truncate(part, part.stat().st_size // 2)
        raise InjectedFaultError(f"injected exception: {path.name} is damaged and has to be read")

    def _done(self, step: int, reason: str | None, total: int | None) -> None:
        background = time.monotonic_ns() - self._open.pop(step)
        if reason is not None:
            self._failed(step, reason, background)
        elif self._rank == 0:
            path = self._folder / name(step)
            own = sum(part.stat().st_size for part in path.glob(f"__{self._rank}_*"))
            self._recorder.record(
                CheckpointFinalized(
                    checkpoint=path.name,
                    step=step,
                    background=background,
                    bytes_written=own,
                    bytes_total=total,
                    tier="shared",
                )
            )

    def _failed(self, step: int, reason: str, background: int | None = None) -> None:
        self._recorder.record(
            CheckpointFailed(checkpoint=name(step), step=step, reason=reason, background=background)
        )


def _load(state: Any, path: Path) -> str | None:
    """Read a checkpoint into `state`; return why it failed on any rank."""
    reason = None
    try:
        load(state, checkpoint_id=path)
    except CheckpointException as error:  # a BaseException
        reason = first_failure(error)
    except Exception as error:  # a damaged file can raise anything
        reason = f"{type(error).__name__}: {error}"
    reasons: list[str | None] = [None] * dist.get_world_size()
    # Fails where a peer is gone: then the file is not to blame, and nothing is recorded.
    dist.all_gather_object(reasons, reason)
    return next((text for text in reasons if text is not None), None)


def _agreed(action: Callable[[], Any]) -> Any:
    """Return what `action` returns on rank 0 to every rank, and raise its OSError everywhere."""
    answer: list[Any] = [None, None]
    if dist.get_rank() == 0:
        try:
            answer[0] = action()
        except OSError as error:
            answer[1] = str(error)
    dist.broadcast_object_list(answer, src=0)
    if answer[1] is not None:
        raise OSError(answer[1])
    return answer[0]


def _size(state: Any) -> int:
    if isinstance(state, DTensor):
        state = state.to_local()
    if isinstance(state, torch.Tensor):
        return state.numel() * state.itemsize
    if isinstance(state, dict):
        return sum(_size(value) for value in state.values())
    if isinstance(state, list | tuple):
        return sum(_size(value) for value in state)
    return 0
