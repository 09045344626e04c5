"""Checkpoints of one run in one folder: names, what is durable, saving, loading, and the events.

A checkpoint is a folder `step-000120` that all ranks see; it is durable once its metadata is
there, which is written last. An unreadable one is passed over for the next older one.
"""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

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
)
from headway.exporter.recorder import Recorder
from headway.exporter.training.writer import BackgroundWriter, stage

_NAME = re.compile(r"step-(\d+)")
_METADATA = ".metadata"


class Loaded(NamedTuple):
    """A state that was read back, and the newest checkpoint, which was asked for first."""

    checkpoint: str
    step: int
    requested: str
    state: Any


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

    def __init__(self, recorder: Recorder, folder: Path, *, rank: int) -> None:
        """Prepare to save to and load from `folder`; `rank` is the process's global rank."""
        self._recorder = recorder
        self._folder = folder
        self._rank = rank
        self._writer = BackgroundWriter(rank)
        self._open: dict[int, int] = {}  # step of a scheduled save: when training went on

    def start(self) -> None:
        """Start the writing process, unless it runs; does not wait for it."""
        self._writer.start()

    def warm_up(self) -> None:
        """Wait for the writing process, so that the first save does not."""
        self._writer.poll(blocking=True)

    def save(self, step: int, state: Callable[[], Any]) -> None:
        """Copy the state and write it in the background."""
        checkpoint, begin = name(step), time.monotonic_ns()
        with self._recorder.phase("checkpoint_save"):
            staged = stage(state())
            try:
                self._prepare(self._folder / checkpoint)
                self._writer.write(
                    staged, self._folder / checkpoint, lambda reason: self._done(step, reason)
                )
            except OSError as error:
                self._recorder.record(
                    CheckpointFailed(checkpoint=checkpoint, step=step, reason=str(error))
                )
                return
        self._open[step] = time.monotonic_ns()
        self._recorder.record(
            CheckpointScheduled(
                checkpoint=checkpoint,
                step=step,
                blocking=self._open[step] - begin,
                bytes_staged=_size(staged),
                queue_depth=len(self._open),
                tier="shared",
            )
        )

    def poll(self) -> None:
        """Record the saves that were completed since the last call."""
        self._writer.poll()

    def finish(self) -> None:
        """Wait for open saves."""
        with self._recorder.phase("checkpoint_save"):
            self._writer.poll(blocking=True)

    def close(self) -> None:
        """Kill the writing process; not a collective, so finish before."""
        self._writer.close()

    def abandon(self) -> None:
        """Give open saves up after a fault; not a collective."""
        self._writer.abandon()
        for step in list(self._open):
            # The fault may have struck between the metadata and the news of it.
            complete = (self._folder / name(step) / _METADATA).exists()
            self._done(step, None if complete else "abandoned: a fault came before it was complete")

    def load(self, template: Callable[[], Any]) -> Loaded | None:
        """Return the newest state that can be read, or None where there is none.

        `template` gives a state of the right shape, made only if there is something to load.
        """
        candidates = _agreed(lambda: [path.name for path in durable(self._folder)])
        for checkpoint in candidates:
            begin = time.monotonic_ns()
            with self._recorder.phase("checkpoint_load"):
                state = stage(template())
                reason = _load(state, self._folder / checkpoint)
            step = int(checkpoint.partition("-")[2])
            if reason is None:
                duration = time.monotonic_ns() - begin
                self._recorder.record(
                    CheckpointLoaded(checkpoint=checkpoint, step=step, duration=duration)
                )
                return Loaded(checkpoint, step, candidates[0], state)
            self._recorder.record(
                CheckpointLoadFailed(checkpoint=checkpoint, step=step, reason=reason)
            )
        return None

    def _prepare(self, path: Path) -> None:
        """Make an empty folder; an older attempt's, unreadable or unfinished, moves aside."""

        def prepare() -> None:
            if path.exists():
                path.rename(path.with_name(f"{path.name}.replaced-{time.time_ns()}"))
            path.mkdir(parents=True)

        _agreed(prepare)

    def _done(self, step: int, reason: str | None) -> None:
        scheduled = self._open.pop(step)
        checkpoint = name(step)
        if reason is not None:
            self._recorder.record(CheckpointFailed(checkpoint=checkpoint, step=step, reason=reason))
        elif self._rank == 0:
            written = (self._folder / checkpoint).glob(f"__{self._rank}_*")
            self._recorder.record(
                CheckpointFinalized(
                    checkpoint=checkpoint,
                    step=step,
                    background=time.monotonic_ns() - scheduled,
                    bytes_written=sum(path.stat().st_size for path in written),
                    tier="shared",
                )
            )


def _load(state: Any, path: Path) -> str | None:
    """Read a checkpoint into `state`; return why it failed on any rank."""
    reason = None
    try:
        load(state, checkpoint_id=path)
    except (Exception, CheckpointException) as error:  # a damaged file can raise anything
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
