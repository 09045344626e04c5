"""Headway's recorder: a step alone, and a step with its batch; argument: the number of steps."""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.recording.cost import BLOCK, per_step
from headway.exporter import Recorder
from headway.exporter.spooling.layout import AGENT_MARKER
from headway.settings import RecorderSettings


def main() -> None:
    """Measure and print."""
    found = {}
    for name, of_recorder in (("step", _steps), ("step_and_batches", _steps_and_batches)):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / AGENT_MARKER).touch()
            settings = RecorderSettings(spool=Path(folder), run_id="bench")
            recorder = Recorder("bench", rank=0, settings=settings)
            recorder.resumed(completed=0)
            found[name] = per_step(of_recorder(recorder), int(sys.argv[1]))._asdict()
            recorder.close()
    print(json.dumps(found))


def _steps(recorder: Recorder) -> Callable[[int], None]:
    def steps(first: int) -> None:
        for number in range(first, first + BLOCK):
            with recorder.step(number):
                pass

    return steps


def _steps_and_batches(recorder: Recorder) -> Callable[[int], None]:
    def steps_and_batches(first: int) -> None:
        number = first
        for _ in recorder.batches(range(BLOCK)):
            with recorder.step(number):
                pass
            number += 1

    return steps_and_batches


if __name__ == "__main__":
    main()
