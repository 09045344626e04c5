"""Spools that are torn, flipped, full, shared and orphaned: a reader loses at most what was hit."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.events import Note, PhaseBegan, Steps
from headway.exporter.spooling.layout import (
    BLOCK,
    HEADER,
    MAGIC,
    OpenPhase,
    Position,
    Producer,
    Slot,
    phases_area,
    read_phases,
    segment_name,
)
from headway.exporter.spooling.reader import START, Batch, SpoolReader, spools
from headway.exporter.spooling.records import MOST_STEPS
from headway.exporter.spooling.writer import SMALLEST_SEGMENT, SpoolWriter
from recording import environment, steps

ATTEMPT = 0xFEDCBA9876543210


def _producer(name: str = "p1") -> Producer:
    return Producer(
        producer=name,
        anchor=1_000_000_000_000,
        run="llama-7",
        rank=0,
        node="n1",
        boot_id="b1",
        process_id=1,
    )


def _writer(folder: Path, limit: int = 1024**2) -> SpoolWriter:
    writer = SpoolWriter(folder, _producer(), limit)
    writer.slots[Slot.ATTEMPT] = ATTEMPT - 2**64
    return writer


def _step(writer: SpoolWriter, number: int) -> None:
    writer.step(number, ATTEMPT, number * 1000, 900, 50, number / 2, number * 8)


def _note(writer: SpoolWriter, text: str, monotonic: int = 5) -> None:
    writer.event(Note(text=text), f"{ATTEMPT:016x}", 0, monotonic, 1_000_000_000_000 + monotonic)


def _reader(folder: Path) -> SpoolReader:
    (path,) = spools(folder)
    return SpoolReader(path)


def _numbers(batch: Batch) -> list[int]:
    return [number for number, _ in steps(batch.envelopes)]


def _sample(folder: Path) -> Path:
    """Write a spool of 8 blocks: steps 1-3, a note of two blocks, steps 4-6; its writer died."""
    writer = _writer(folder)
    for number in (1, 2, 3):
        _step(writer, number)
    _note(writer, "x" * 20)
    for number in (4, 5, 6):
        _step(writer, number)
    writer.abandon()
    return folder / "p1" / segment_name(1)


def _spans() -> list[tuple[int, int, int | str]]:
    """Return begin, end and content of each record of the sample."""
    return [
        (0, 64, 1),
        (64, 128, 2),
        (128, 192, 3),
        (192, 384, "x" * 20),
        (384, 448, 4),
        (448, 512, 5),
        (512, 576, 6),
    ]


def _contents(batch: Batch) -> list[int | str]:
    found: list[int | str] = []
    for envelope in batch.envelopes:
        if isinstance(envelope.event, Note):
            found.append(envelope.event.text)
        else:
            found.extend(number for number, _ in steps([envelope]))
    return found


def test_consecutive_steps_of_an_attempt_are_one_envelope(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    for number in (1, 2, 3, 7, 8):
        _step(writer, number)
    writer.step(9, 5, 9000, 900, 0, 0.5, -1)
    batch = _reader(tmp_path).read()
    assert [
        (envelope.first_sequence, envelope.last_sequence, envelope.attempt, envelope.monotonic)
        for envelope in batch.envelopes
    ] == [
        (0, 2, "fedcba9876543210", 3900),
        (3, 4, "fedcba9876543210", 8900),
        (5, 5, "0000000000000005", 9900),
    ]
    assert steps(batch.envelopes)[2] == (3, (3000, 900, 50, 1.5, 24))
    first = batch.envelopes[0]
    assert first.wall == first.anchor + first.monotonic
    assert (first.run, first.rank, first.node, first.boot_id) == ("llama-7", 0, "n1", "b1")


def test_an_envelope_holds_a_thousand_steps_at_most(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    for number in range(1, 2502):
        _step(writer, number)
    batch = _reader(tmp_path).read()
    counts = [envelope.last_sequence - envelope.first_sequence + 1 for envelope in batch.envelopes]
    assert counts == [MOST_STEPS, MOST_STEPS, 501]
    assert _numbers(batch) == list(range(1, 2502))


def test_reading_goes_on_where_it_stopped_across_segments(tmp_path: Path) -> None:
    writer = _writer(tmp_path, limit=8 * SMALLEST_SEGMENT)
    total = 3 * SMALLEST_SEGMENT // BLOCK
    for number in range(1, total + 1):
        _step(writer, number)
    reader, position, found = _reader(tmp_path), START, []
    for _ in range(total):
        batch = reader.read(position, limit=77)
        found += _numbers(batch)
        position = Position(*json.loads(json.dumps(batch.position)))
        if not batch.envelopes:
            break
    assert found == list(range(1, total + 1))
    assert position.sequence == total


@pytest.mark.parametrize("count", [255, 256, 257, 511, 512, 513, 1000])
def test_a_living_producers_records_are_read_to_the_last_one_whatever_their_number(
    tmp_path: Path, count: int
) -> None:
    writer = _writer(tmp_path, limit=16 * 1024**2)
    for number in range(1, count):
        _step(writer, number)
    _note(writer, "x" * 40_000)  # a frame longer than what is read at a time
    batch = _reader(tmp_path).read(limit=10**6)
    assert _contents(batch)[-1] == "x" * 40_000
    assert _numbers(batch) == list(range(1, count))
    _step(writer, count)
    again = _reader(tmp_path).read(batch.position, limit=10**6)
    assert _numbers(again) == [count]
    writer.close(0.0)


def test_release_deletes_whole_segments_and_at_last_the_folder(tmp_path: Path) -> None:
    writer = _writer(tmp_path, limit=8 * SMALLEST_SEGMENT)
    for number in range(1, 3 * SMALLEST_SEGMENT // BLOCK):
        _step(writer, number)
    reader = _reader(tmp_path)
    batch = reader.read(limit=10**9)
    reader.release(batch.position)
    assert [path.name for path in writer.folder.glob("*.segment")] == [
        segment_name(batch.position.segment)
    ]
    assert not batch.finished
    _step(writer, 10_000)
    writer.close(0.0)
    batch = reader.read(batch.position)
    assert _numbers(batch) == [10_000]
    assert batch.finished
    reader.release(batch.position)
    assert spools(tmp_path) == []
    assert not writer.folder.exists()
    again = reader.read(batch.position)
    assert (again.envelopes, again.finished, again.damaged) == ([], True, 0)


def test_a_live_producer_is_not_released_and_its_torn_end_is_not_damage(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    _step(writer, 1)
    reader = _reader(tmp_path)
    with (writer.folder / segment_name(1)).open("r+b") as file:
        file.seek(BLOCK)
        file.write(b"half a block")
    batch = reader.read()
    assert (_numbers(batch), batch.damaged, batch.finished) == ([1], 0, False)
    assert reader.read(batch.position) == Batch(
        envelopes=[], position=batch.position, damaged=0, finished=False
    )
    reader.release(batch.position)
    assert (writer.folder / HEADER).exists()
    writer.abandon()
    after = reader.read(batch.position)
    assert (after.envelopes, after.damaged, after.finished) == ([], 1, True)


def test_a_spool_cut_off_anywhere_gives_the_blocks_before_the_cut(tmp_path: Path) -> None:
    segment = _sample(tmp_path)
    content = segment.read_bytes()
    filling = content[:384].rstrip(b"\0")  # a frame is whole without the zeros that fill it up
    for size in range(577):
        segment.write_bytes(content[:size])
        batch = _reader(tmp_path).read()
        whole = [
            content for _, end, content in _spans() if (len(filling) if end == 384 else end) <= size
        ]
        assert _contents(batch) == whole
        assert batch.damaged <= 1
        assert batch.finished


@settings(
    max_examples=3 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(at=st.integers(0, 575), bit=st.integers(0, 7))
def test_a_flipped_bit_costs_its_own_block_and_is_counted(
    tmp_path: Path, at: int, bit: int
) -> None:
    with _fresh(tmp_path) as folder:
        segment = _sample(folder)
        content = bytearray(segment.read_bytes())
        content[at] ^= 1 << bit
        segment.write_bytes(content)
        batch = _reader(folder).read()
        hit = [content for begin, end, content in _spans() if begin <= at < end]
        lost = [content for _, _, content in _spans() if content not in _contents(batch)]
        # The zeros that fill up a frame are no part of it.
        assert lost == hit or (lost == [] and hit == ["x" * 20])
        assert batch.damaged == len(lost)
        assert _contents(batch) == [c for _, _, c in _spans() if c not in lost]


@settings(
    max_examples=3 * settings.default.max_examples,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_garbage_of_any_kind_never_raises(tmp_path: Path, data: st.DataObject) -> None:
    with _fresh(tmp_path) as folder:
        segment = _sample(folder)
        for path in (segment, segment.with_name(HEADER)):
            content = bytearray(path.read_bytes())
            for _ in range(data.draw(st.integers(0, 4))):
                at = data.draw(st.integers(0, len(content) - 1 if path.name == HEADER else 600))
                junk = data.draw(st.binary(min_size=1, max_size=200))
                content[at : at + len(junk)] = junk
            path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        for name in data.draw(st.lists(st.sampled_from(["x.segment", "7.segment", "9", "a"]))):
            (segment.parent / name).write_bytes(data.draw(st.binary(max_size=300)))
        reader = _reader(folder)
        batch = reader.read(START, data.draw(st.integers(1, 10)))
        reader.status()
        again = reader.read(batch.position)
        assert again.finished
        assert {_contents(batch).count(content) for content in _contents(batch)} <= {1}
        reader.release(again.position)


class _fresh:  # noqa: N801  # reads as a statement
    """A folder for one example, removed afterwards."""

    def __init__(self, parent: Path) -> None:
        self._folder = parent / "example"

    def __enter__(self) -> Path:
        self._folder.mkdir()
        return self._folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder)


def test_a_block_in_the_wrong_segment_does_not_pass(tmp_path: Path) -> None:
    segment = _sample(tmp_path)
    shutil.copy(segment, segment.with_name(segment_name(2)))
    batch = _reader(tmp_path).read()
    assert _contents(batch) == [content for _, _, content in _spans()]
    assert batch.damaged == 1


def test_a_damaged_header_finishes_a_dead_spool_and_counts(tmp_path: Path) -> None:
    segment = _sample(tmp_path)
    segment.with_name(HEADER).write_bytes(bytes(4096))
    reader = _reader(tmp_path)
    assert reader.producer is None
    batch = reader.read()
    assert (batch.envelopes, batch.damaged, batch.finished) == ([], 1, True)
    assert reader.read(batch.position).damaged == 0
    assert reader.status().last_step is None


def test_an_event_of_a_newer_version_is_counted_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = _writer(tmp_path)
    _step(writer, 1)
    with monkeypatch.context() as patched:
        patched.setattr(Note, "name", "note.of.tomorrow")
        _note(writer, "x")
    _step(writer, 2)
    batch = _reader(tmp_path).read()
    assert (_numbers(batch), batch.damaged) == ([1, 2], 1)


def test_a_second_agent_reads_the_same_numbers_for_the_last_words(tmp_path: Path) -> None:
    writer = _writer(tmp_path)
    _step(writer, 1)
    writer.slots[Slot.STEP_START] = 2000
    writer.slots[Slot.WAIT_START], writer.slots[Slot.WAIT_END] = 1500, 1900
    reader = _reader(tmp_path)
    live = reader.read()
    assert _numbers(live) == [1]
    writer.abandon()
    last = reader.read(live.position)
    (envelope,) = last.envelopes
    assert envelope.event == PhaseBegan(phase="step")
    assert (envelope.monotonic, envelope.first_sequence) == (2000, 1)
    assert envelope.attempt == "fedcba9876543210"
    assert last.finished
    assert _reader(tmp_path).read().envelopes == [*live.envelopes, envelope]
    assert reader.read(last.position).envelopes == []


def test_more_phases_than_the_header_holds_keep_the_innermost() -> None:
    phases = [OpenPhase(f"custom:{index:040d}", index) for index in range(50)]
    begin, area = phases_area(phases)
    header = bytearray(MAGIC + bytes(4096))
    header[begin : begin + len(area)] = area
    kept = read_phases(bytes(header))
    assert 5 < len(kept) < 50
    assert kept == phases[-len(kept) :]


def test_an_event_larger_than_a_segment_is_dropped_and_counted(tmp_path: Path) -> None:
    writer = _writer(tmp_path, limit=8 * SMALLEST_SEGMENT)
    _note(writer, "x" * SMALLEST_SEGMENT)
    _step(writer, 1)
    assert writer.slots[Slot.DROPPED] == 1
    writer.close(0.0)
    numbers = [envelope.event.name for envelope in _reader(tmp_path).read().envelopes]
    assert numbers == ["steps", "dropped"]


def test_no_folder_is_left_where_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        _writer(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_drops_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    writer = _writer(tmp_path, limit=8 * SMALLEST_SEGMENT)
    count = SMALLEST_SEGMENT // BLOCK
    with monkeypatch.context() as patched:
        patched.setattr("os.posix_fallocate", full)
        for number in range(1, count + 1):
            _step(writer, number)
        assert writer.slots[Slot.DROPPED] == 8
    writer.step(count + 1, ATTEMPT, 10**12, 900, 0, 0.5, -1)
    batch = _reader(tmp_path).read()
    assert [envelope.event.name for envelope in batch.envelopes] == ["steps", "dropped", "steps"]
    assert _numbers(batch)[-1] == count + 1


_VICTIM = """
import sys
from pathlib import Path
from headway.events import Note
from recording import record

recorder = record(Path(sys.argv[1]), spool_limit=64 * 1024**2)
out = sys.stdout
number = 0
print("ready", flush=True)
while True:
    number += 1
    with recorder.step(number) as step:
        step.loss = 0.5
    out.write(f"{number}\\n")
    if number % 7 == 0:
        recorder.record(Note(text=str(number)))
        out.write(f"note {number}\\n")
    out.flush()
"""


def _kill_at(folder: Path, delay: float) -> tuple[int, set[str]]:
    """Kill a recording process after a while; return its last step and notes, as it said."""
    with subprocess.Popen(
        [sys.executable, "-c", _VICTIM, str(folder)], stdout=subprocess.PIPE, env=environment()
    ) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + delay
        said = []
        while time.monotonic() < deadline:
            said.append(victim.stdout.readline())
        victim.send_signal(signal.SIGKILL)
        said += victim.stdout.read().splitlines(keepends=True)
        assert victim.wait() == -signal.SIGKILL
    whole = [line.decode().split() for line in said if line.endswith(b"\n")]
    numbers = [int(words[0]) for words in whole if len(words) == 1]
    return numbers[-1], {words[1] for words in whole if len(words) == 2}


@pytest.mark.slow
def test_every_record_made_before_a_kill_is_read_back(tmp_path: Path) -> None:
    moments = random.Random(7)  # noqa: S311  # when to kill, not a secret
    for index in range(20):
        folder = tmp_path / str(index)
        last, notes = _kill_at(folder, moments.uniform(0.001, 0.1))
        batch = _reader(folder).read(START, 10**9)
        numbers = _numbers(batch)
        assert batch.finished
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) in (last, last + 1)  # it may have died before it could say so
        found = {e.event.text for e in batch.envelopes if isinstance(e.event, Note)}
        assert notes <= found
        assert batch.damaged <= 1
        expected = 0
        for envelope in batch.envelopes:
            assert envelope.first_sequence == expected
            expected = envelope.last_sequence + 1


@pytest.mark.slow
def test_a_reader_beside_a_busy_writer_sees_each_record_once(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _VICTIM, str(tmp_path)],
        stdout=subprocess.PIPE,
        env=environment(),
    ) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"ready\n"
        reader, position, found, damaged = _reader(tmp_path), START, [], 0
        read: Callable[[Position], Batch] = reader.read
        while len(found) < 20_000:
            batch = read(position)
            found += _numbers(batch)
            damaged += batch.damaged
            position = batch.position
            victim.stdout.read1()
        victim.kill()
        victim.stdout.read()
    assert found == list(range(1, len(found) + 1))
    assert damaged == 0
    assert not any(isinstance(e.event, Steps) for e in read(START).envelopes[:1])
