"""ml-goodput-measurement's write path: its logger, Google's client and background thread.

Only the call that would go over the network is replaced. Argument: the number of steps.
"""

import json
import os
import sys

os.environ["NO_GCE_CHECK"] = "true"  # else Google's client asks a metadata server who it is

import google.cloud.logging
from google.auth.credentials import AnonymousCredentials
from google.cloud.logging_v2.resource import Resource

from benchmarks.goodput.absent import replace
from benchmarks.recording.cost import BLOCK, per_step


class _Nowhere:
    """Takes what would be sent."""

    def write_entries(self, *_: object, **__: object) -> None:
        pass


class _Client(google.cloud.logging.Client):
    """Google's client without a network."""

    def __init__(self) -> None:
        super().__init__(project="bench", credentials=AnonymousCredentials())
        self._logging_api = _Nowhere()


def main() -> None:
    """Measure and print."""
    google.cloud.logging.Client = _Client
    from google.cloud.logging_v2.handlers import handlers

    handlers.detect_resource = lambda *_: Resource(type="global", labels={})
    clients = ("google.cloud.monitoring_v3", "google.cloud.storage")
    replace((*clients, "tensorboardX", "tensorboardX.writer"))
    from ml_goodput_measurement.src import goodput

    recorder = goodput.GoodputRecorder("bench", "log", True)

    def steps(first: int) -> None:
        for number in range(first, first + BLOCK):
            recorder.record_step_start_time(number)
        recorder.flush()  # else its queue grows beyond what any training would fill

    def steps_and_batches(first: int) -> None:
        for number in range(first, first + BLOCK):
            recorder.record_data_loading_start_time()
            recorder.record_data_loading_end_time()
            recorder.record_step_start_time(number)
        recorder.flush()

    found = {
        "step": per_step(steps, int(sys.argv[1]))._asdict(),
        "step_and_batches": per_step(steps_and_batches, int(sys.argv[1]))._asdict(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
