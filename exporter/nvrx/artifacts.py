"""Files that help to explain an incident, kept as references: they stay where they lie.

Stack dumps are written by `faulthandler`, which asks no thread for its cooperation. Dumps of
NCCL's flight recorder are found where torch and NVRx were told to write them.
"""

import faulthandler
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from headway.events import Artifact

STACKS = "stacks"
FLIGHT_RECORDER = "flight_recorder"
LARGEST_SUMMED = 256 * 1024**2
"""Bytes up to which a file is read for its checksum; a restart waits meanwhile."""
_PREFIXES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""Where torch writes one dump per rank, of which the rank's number is the end of the name."""
_FOLDER = "NVRX_FR_TRACE_PATH"
"""Where NVRx 0.5 and later write `iter_<iteration>/_dump_<rank>`, with or without `.json`."""


def artifact(path: Path, kind: str) -> Artifact:
    """Return a reference to a file, for `Recorder.record`.

    Raises:
        OSError: the file cannot be read.
    """
    absolute = path.absolute()
    with absolute.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        summed = hashlib.file_digest(file, "sha256") if size <= LARGEST_SUMMED else None
    return Artifact(
        kind=kind,
        path=str(absolute),
        size=size,
        sha256=None if summed is None else summed.hexdigest(),
    )


def dump_stacks(path: Path) -> Artifact:
    """Write the Python stacks of all threads of this process to a new file.

    Raises:
        OSError: the file exists or cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    return artifact(path, STACKS)


class FlightRecorderDumps:
    """Dumps of this process's rank that appeared since its launch and were not returned yet."""

    def __init__(self, environment: Mapping[str, str], launched: int) -> None:
        """Look where `environment` says; what is older than `launched` (UTC ns) is another's."""
        self._environment = environment
        self._launched = launched
        self._known: dict[Path, tuple[int, int]] = {}

    def new(self) -> list[Path]:
        """Return dumps that are new or were written again, in the order of their names."""
        found = []
        for path in self._candidates():
            try:
                status = path.stat()
            except OSError:
                continue
            state = (status.st_mtime_ns, status.st_size)
            if status.st_size and state[0] >= self._launched and self._known.get(path) != state:
                self._known[path] = state
                found.append(path)
        return found

    def _candidates(self) -> list[Path]:
        rank = self._environment.get("RANK", "0")
        found = {Path(self._environment[name] + rank) for name in _PREFIXES if self._has(name)}
        if self._has(_FOLDER):
            folder = Path(self._environment[_FOLDER])
            for name in (f"_dump_{rank}", f"_dump_{rank}.json"):
                found.update(folder.glob(f"iter_*/{name}"))
        return sorted(found)

    def _has(self, name: str) -> bool:
        return bool(self._environment.get(name))
