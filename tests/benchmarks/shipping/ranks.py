"""Ranks of one node that train at a fixed pace, each a recorder in a thread of its own.

Arguments: folder of the spools, ranks, steps per second, seconds. Half of a step's time is the
step, the rest a wait for its batch, both with jitter; the loss is a 32-bit float, as torch's is.
"""

import random
import struct
import sys
import threading
import time
from pathlib import Path

from headway.exporter import Recorder
from headway.settings import RecorderSettings


def train(recorder: Recorder, chance: random.Random, pace: float, seconds: float) -> None:
    """Take steps until the time is over."""
    recorder.resumed(completed=0)
    begin = time.monotonic()
    number = 0
    while time.monotonic() - begin < seconds:
        recorder.batch_awaited()
        time.sleep(chance.uniform(0.05, 0.15) / pace)
        recorder.batch_arrived()
        number += 1
        with recorder.step(number) as step:
            due = begin + number / pace + chance.gauss(0, 0.005 / pace)
            time.sleep(max(due - time.monotonic(), 0))
            loss = 2 + 8 / number + chance.gauss(0, 0.1)
            (step.loss,) = struct.unpack("<f", struct.pack("<f", loss))
            step.samples = 512 * number


def main() -> None:
    """Train on all ranks at once."""
    folder, ranks, pace, seconds = sys.argv[1:]
    settings = RecorderSettings(spool=Path(folder), run_id="bench")
    recorders = [Recorder("bench", rank=rank, settings=settings) for rank in range(int(ranks))]
    threads = [
        threading.Thread(
            target=train,
            args=(recorder, random.Random(rank), float(pace), float(seconds)),  # noqa: S311  # made-up times
        )
        for rank, recorder in enumerate(recorders)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for recorder in recorders:
        recorder.close()


if __name__ == "__main__":
    main()
