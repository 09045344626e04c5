"""What forks, threads, signals and deaths of a recording program leave behind."""

import copy
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from headway.events import (
    Fault,
    Misuse,
    Note,
)
from headway.exporter import Recorder
from headway.exporter.spooling.layout import AGENT_MARKER, OpenPhase
from headway.settings import RecorderSettings
from headway.wire import to_fields
from recording import environment, of, read, readers, record, step_numbers, steps


def test_it_says_once_that_nobody_ships_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = RecorderSettings(spool=tmp_path, run_id="7")
    Recorder("llama", settings=settings).close()
    (message,) = [entry.getMessage() for entry in caplog.records]
    assert message == (
        f"headway: recording to '{tmp_path}', and no agent ships it: start `headway agent` on "
        f"this node, or later run `headway import spool {tmp_path}`"
    )
    assert caplog.records[0].levelno == logging.WARNING
    caplog.clear()
    marker = tmp_path / AGENT_MARKER
    marker.touch()
    Recorder("llama", settings=settings).close()
    assert caplog.records == []
    os.utime(marker, (time.time() - 3600, time.time() - 3600))
    Recorder("llama", settings=settings).close()
    assert len(caplog.records) == 1


# A30: open-telemetry/opentelemetry-python#3309
def test_a_forked_worker_records_nothing_and_the_parent_goes_on(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    with recorder.step(1):
        child = os.fork()
        if not child:
            try:
                recorder.record(Note(text="from the worker"))
                with recorder.phase("evaluation"), recorder.step(2):
                    pass
                recorder.close()
            finally:
                os._exit(recorder.suppressed_failures)
        _, status = os.waitpid(child, 0)
    assert status == 0
    with recorder.step(2):
        pass
    assert step_numbers(tmp_path) == [1, 2]
    assert of(tmp_path, Note) == []
    (reader,) = readers(tmp_path)
    assert reader.status().alive


def test_a_forked_worker_does_not_keep_its_dead_parent_alive(tmp_path: Path) -> None:
    program = (
        "import os, sys, time\n"
        "from pathlib import Path\n"
        "from recording import record\n"
        "recorder = record(Path(sys.argv[1]))\n"
        "child = os.fork()\n"
        "if child:\n"
        "    print(child, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert parent.wait() == -signal.SIGKILL
        os.kill(child, 0)  # it lives, and holds what it inherited
        deadline = time.monotonic() + 20
        while readers(tmp_path)[0].status().alive and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not readers(tmp_path)[0].status().alive
        assert read(tmp_path).finished


class _Shards:
    """A data set that records what it should not, as code shared with the training may."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        self.recorder.record(Note(text=f"shard {index} in {os.getpid()}"))
        return index


@pytest.mark.slow
def test_real_loader_workers_are_silent(tmp_path: Path) -> None:
    data = pytest.importorskip("torch.utils.data")
    recorder = record(tmp_path)
    loader = data.DataLoader(
        _Shards(recorder), batch_size=2, num_workers=2, multiprocessing_context="fork"
    )
    for number, _ in enumerate(recorder.batches(loader), start=1):
        with recorder.step(number):
            pass
    assert step_numbers(tmp_path) == [1, 2, 3, 4]
    assert of(tmp_path, Note) == []
    assert min(step.data_wait for _, step in steps(read(tmp_path).envelopes)) > 0


def test_recorders_come_and_go_without_leaving_descriptors_threads_or_files(
    tmp_path: Path,
) -> None:
    def used() -> tuple[int, int, int]:
        descriptors = len(os.listdir("/proc/self/fd"))
        return descriptors, threading.active_count(), len(list(tmp_path.iterdir()))

    before = None
    for _ in range(50):
        recorder = record(tmp_path)
        with recorder.step(1):
            pass
        recorder.close()
        (reader,) = readers(tmp_path)
        reader.release(reader.read().position)
        before = before or used()
    assert used() == before


def test_a_copy_is_itself_and_a_pickle_records_nothing(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    assert copy.deepcopy(recorder) is recorder
    travelled = pickle.loads(pickle.dumps(recorder))  # noqa: S301  # our own bytes
    with travelled.step(1):
        pass
    assert step_numbers(tmp_path) == []


def test_a_signal_handler_may_record_while_a_record_is_written(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    writer = recorder._writer
    assert writer is not None
    writer.busy = True  # as when the handler interrupts the writer
    recorder.record(Note(text="from the handler"))
    with recorder.step(1):
        pass
    assert of(tmp_path, Note) == []
    writer.busy = False
    with recorder.step(2):
        pass
    assert step_numbers(tmp_path) == [2, 1] or step_numbers(tmp_path) == [1, 2]
    assert of(tmp_path, Note) == [Note(text="from the handler")]
    assert read(tmp_path).damaged == 0


def test_threads_record_together_and_nothing_is_lost(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        texts = [[f"{thread}/{index}" for index in range(100)] for thread in range(3)]
        threads = [
            threading.Thread(target=lambda own=own: [recorder.record(Note(text=t)) for t in own])
            for own in texts
        ]
        for thread in threads:
            thread.start()
        for number in range(1, 3001):
            with recorder.step(number):
                pass
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    recorder.close()
    batch = read(tmp_path)
    assert batch.damaged == 0
    assert sorted(number for number, _ in steps(batch.envelopes)) == list(range(1, 3001))
    notes = {event.text for event in of(tmp_path, Note)}
    assert notes == {text for own in texts for text in own}
    expected = 0
    for envelope in batch.envelopes:
        assert envelope.first_sequence == expected
        expected = envelope.last_sequence + 1


_DISTURBED = """
import ctypes, sys, threading
from pathlib import Path
from headway.events import Note
from recording import record

class Interrupted(BaseException):
    pass

recorder = record(Path(sys.argv[1]))
sys.setswitchinterval(1e-4)
target, stop = threading.get_ident(), threading.Event()
raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
number = hits = 0

def disturb():
    # One at a time and never in the handler below, which would not survive it.
    seen, reached = -1, 0
    while not stop.wait(0.0001):
        if hits == seen or number < reached + 3:
            continue
        seen, reached = hits, number
        raise_in(ctypes.c_ulong(target), ctypes.py_object(Interrupted))

thread = threading.Thread(target=disturb, daemon=True)
thread.start()
while True:
    try:
        while number < 20_000 or hits < 500:
            number += 1
            with recorder.step(number):
                pass
            if number % 10 == 0:
                recorder.record(Note(text=str(number)))
        stop.set()
        thread.join()
        break
    except Interrupted:
        hits += 1
with recorder.step(number + 1):
    pass
recorder.record(Note(text="the last"))
recorder.close()
print(number)
"""


@pytest.mark.slow
def test_exceptions_from_another_thread_leave_the_spool_whole(tmp_path: Path) -> None:
    """NVRx interrupts the training by raising in its thread, wherever that happens to be."""
    done = subprocess.run(
        [sys.executable, "-c", _DISTURBED, str(tmp_path)],
        env=environment(),
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    number = int(done.stdout)
    batch = read(tmp_path)
    assert batch.finished
    assert batch.damaged == 0
    recorded = [step for step, _ in steps(batch.envelopes)]
    assert recorded[-1] == number + 1
    assert recorded == sorted(set(recorded))
    assert number - len(recorded) < 1000  # at most the steps that were struck
    assert of(tmp_path, Note)[-1] == Note(text="the last")
    expected = 0
    for envelope in batch.envelopes:
        assert envelope.first_sequence == expected
        expected = envelope.last_sequence + 1


def test_a_program_that_dies_of_an_exception_leaves_it_behind(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from recording import record\n"
        "recorder = record(Path(sys.argv[1]))\n"
        "with recorder.step(1):\n"
        "    pass\n"
        "with recorder.step(2):\n"
        "    raise ValueError('the end')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    batch = read(tmp_path)
    assert batch.finished
    assert [envelope.event.name for envelope in batch.envelopes][-4:] == [
        "phase.began",
        "phase.ended",
        "fault",
        "attempt.ended",
    ]
    (fault,) = of(tmp_path, Fault)
    assert (fault.message, fault.step) == ("the end", 2)


def test_closing_waits_no_longer_than_it_may(tmp_path: Path) -> None:
    recorder = record(tmp_path, exit_delay=0.0)
    writer = recorder._writer
    assert writer is not None
    writer.busy = True  # as when a thread is stuck in the writer for good
    recorder.close()
    recorder.close()
    assert to_fields(Note(text="x")) == {"text": "x"}
    writer.busy = False
    writer.drain()
    assert read(tmp_path).finished


def test_a_new_attempt_forgets_phases_that_were_never_left(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    recorder.phase("evaluation").__enter__()
    recorder.attempt(layer="in_process", iteration=1)
    (reader,) = readers(tmp_path)
    assert reader.status().open_phases == ()
    with recorder.phase("evaluation"):
        assert isinstance(reader.status().open_phases[0], OpenPhase)
    assert of(tmp_path, Misuse) == []
    assert reader.status().attempt == read(tmp_path).envelopes[-1].attempt
