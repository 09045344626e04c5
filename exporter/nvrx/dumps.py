"""What a process that broke leaves behind: its stacks, and its flight recorder's dumps."""

import os
import time
from pathlib import Path

from headway.exporter import identity
from headway.exporter.nvrx.artifacts import (
    FLIGHT_RECORDER,
    FlightRecorderDumps,
    artifact,
    dump_stacks,
)
from headway.exporter.recording.recorder import Recorder


class Dumps:
    """Writes or finds dumps of this process and records where they lie."""

    def __init__(self, recorder: Recorder, stacks: Path | None) -> None:
        """Write stacks to the folder `stacks`; without one they are not written."""
        self._recorder = recorder
        self._stacks = stacks
        self._flight_recorder = FlightRecorderDumps(os.environ, _launched())

    def write_stacks(self, iteration: int) -> None:
        """Write the stacks of all threads as they are in an iteration."""
        if self._stacks is None:
            return
        rank = os.environ.get("RANK", "0")
        name = f"stacks-rank{rank}-process{os.getpid()}-iteration{iteration}.txt"
        try:
            self._recorder.record(dump_stacks(self._stacks / name))
        except OSError as error:
            self._recorder.misuse("stacks", f"the stacks cannot be written: {error}")

    def find(self) -> None:
        """Record the flight recorder's dumps that appeared since the last call."""
        for path in self._flight_recorder.new():
            try:
                self._recorder.record(artifact(path, FLIGHT_RECORDER))
            except OSError as error:
                self._recorder.misuse("flight_recorder", f"a dump cannot be read: {error}")


def _launched() -> int:
    """Return when whoever started this process began, in UTC ns: what is older is another run's."""
    now = time.time_ns()
    started = identity.process_started(os.getppid())
    return now if started is None else now - (time.monotonic_ns() - started)
