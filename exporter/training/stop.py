"""SIGTERM as a request to save and leave, heard even while the training waits in a collective.

A handler of Python's would run only once the main thread is back from whatever it waits for, so
a thread of its own hears of the signal, announces the stop and ends the process when its grace
is over.
"""

import os
import signal
import threading
import time
from typing import NoReturn

from headway.events import StopAnnounced
from headway.exporter.recording.recorder import Recorder

STATUS = 128 + signal.SIGTERM
"""Exit status of a training that was told to stop."""
_SECOND = 10**9


class StopRequest:
    """Whether this process was told to stop."""

    def __init__(self, recorder: Recorder, grace: float) -> None:
        """Prepare; the process ends `grace` seconds after the signal at the latest."""
        self._recorder = recorder
        self._grace = grace
        self._told = threading.Event()

    def listen(self) -> None:
        """Hear SIGTERM from now on; call it in the main thread."""
        heard, said = os.pipe()
        os.set_blocking(said, False)
        signal.set_wakeup_fd(said, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        threading.Thread(target=self._wait, args=(heard,), daemon=True, name="stop").start()

    @property
    def was_made(self) -> bool:
        """Whether the signal came."""
        return self._told.is_set()

    def wait(self, timeout: float) -> bool:
        """Wait for the signal up to `timeout` seconds; return whether it came."""
        return self._told.wait(timeout)

    def _wait(self, heard: int) -> None:
        while signal.SIGTERM not in os.read(heard, 64):  # a byte for each signal that has a handler
            pass
        self._told.set()
        grace = round(self._grace * _SECOND)
        self._recorder.record(StopAnnounced(reason="sigterm", grace=grace))
        time.sleep(self._grace)
        self._leave()

    def _leave(self) -> NoReturn:
        self._recorder.end_attempt()
        os._exit(STATUS)
