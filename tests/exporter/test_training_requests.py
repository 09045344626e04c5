"""SIGTERM is heard whatever the training waits for, and no process outlives its grace."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headway.events import AttemptEnded, Event, StopAnnounced
from headway.exporter.spooling.reader import SpoolReader, spools
from training_run import environment

PROGRAM = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run behind &
from headway.exporter.recording.recorder import Recorder
from headway.exporter.training.stop import STATUS, StopRequest

recorder = Recorder(run="llama")
request = StopRequest(recorder, grace=float(sys.argv[1]))
request.listen()
print("ready", flush=True)
if sys.argv[2] == "stuck":
    os.read(os.pipe()[0], 1)  # a call into C that the signal does not end
while not request.wait(60):
    pass
assert request.was_made
recorder.close()
sys.exit(STATUS)
"""


@contextmanager
def program(spool: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        env=environment(spool),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        try:
            yield started
        finally:
            started.kill()


def recorded(spool: Path) -> list[Event]:
    (folder,) = spools(spool)
    events = [envelope.event for envelope in SpoolReader(folder).read().envelopes]
    return [event for event in events if isinstance(event, StopAnnounced | AttemptEnded)]


def test_a_training_that_answers_leaves_by_itself(tmp_path: Path) -> None:
    with program(tmp_path, "60", "answers") as started:
        started.send_signal(signal.SIGTERM)
        assert started.wait(30) == 143
    assert recorded(tmp_path) == [
        StopAnnounced(reason="sigterm", grace=60 * 10**9),
        AttemptEnded(learned_from="the recorder's end"),
    ]


def test_a_training_that_is_stuck_ends_when_its_grace_is_over(tmp_path: Path) -> None:
    with program(tmp_path, "0.2", "stuck") as started:
        started.send_signal(signal.SIGTERM)
        assert started.wait(30) == 143
    assert recorded(tmp_path) == [
        StopAnnounced(reason="sigterm", grace=200_000_000),
        AttemptEnded(learned_from="the rank itself"),
    ]


def test_the_stop_is_on_record_while_the_training_is_still_stuck(tmp_path: Path) -> None:
    with program(tmp_path, "60", "stuck") as started:
        started.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 30
        while not recorded(tmp_path):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert started.poll() is None
        started.kill()


def test_ctrl_c_is_a_person_who_stops_it_and_not_a_request(tmp_path: Path) -> None:
    with program(tmp_path, "60", "answers") as started:
        started.send_signal(signal.SIGINT)
        assert started.wait(30) == -signal.SIGINT
    assert recorded(tmp_path)[0] == StopAnnounced(reason="operator")
