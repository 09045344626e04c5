"""Writing of distributed checkpoints by torch alone, while the training waits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_saver import save

from headway.exporter.training.writer import Done, bytes_in, first_failure


class BlockingWriter:
    """Writes a state before it returns; every rank must make the same calls."""

    copies = False
    """The live state is written as it is: training changes nothing meanwhile."""

    def __init__(self) -> None:
        """Prepare."""
        self._complete: list[Callable[[], None]] = []

    def start(self) -> None:
        """Need no process."""

    def write(self, state: Any, path: Path, done: Done) -> None:
        """Write a state; `path` is an empty folder seen by all ranks.

        Raises:
            OSError: it could not be written, on any rank.
        """
        try:
            metadata = save(state, checkpoint_id=path)
        except CheckpointException as error:  # a BaseException, which would end the program
            raise OSError(f"{path}: {first_failure(error)}") from error
        self._complete.append(lambda: done(None, bytes_in(metadata)))

    def poll(self, *, blocking: bool = False) -> None:
        """Tell that what was written is complete."""
        for tell in self._complete:
            tell()
        self._complete.clear()

    def abandon(self) -> None:
        """Drop nothing: what was begun is complete or has failed."""
        self._complete.clear()

    def close(self) -> None:
        """End nothing."""
