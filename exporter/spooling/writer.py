"""The writing side of a spool: mapped segments that survive the death of the process.

Nothing here blocks on another process. Segments are allocated before they are mapped, because a
store into a hole of a full disk would kill the training with SIGBUS. What finds no room is
counted, and told to the reader in a `dropped` event as soon as there is room again."""

import fcntl
import json
import mmap
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from headway.events import Dropped, Event
from headway.exporter.spooling.access import PRIVATE_FILE, SHARED_FILE, share
from headway.exporter.spooling.layout import (
    BLOCK,
    HEADER,
    HEADER_SIZE,
    MAGIC,
    NO_STEP,
    SEGMENT_SUFFIX,
    SLOTS_AT,
    STEP_BLOCK,
    STEP_BODY,
    STEP_KIND,
    OpenPhase,
    Producer,
    Slot,
    frame,
    identity_area,
    phases_area,
    salt,
    segment_name,
    step_checksum,
)
from headway.redaction import masked_values, secrets_of
from headway.wire import json_fields

LARGEST_SEGMENT = 1024**2
SMALLEST_SEGMENT = 16 * 1024
_RESERVE = 8 * BLOCK
"""Room at the end of each segment in which a full spool can still say what it dropped."""
_RETRY_NS = 1_000_000_000
_MOST_PENDING = 4096


class SpoolWriter:
    """Writes the records of one producer.

    Any thread may write and none ever waits: whoever finds another one at work, or itself when a
    signal handler interrupts it, leaves the record to it. `busy` needs no lock because the
    interpreter switches threads, runs signal handlers and raises exceptions from other threads
    at calls and backward jumps only, and none stands between the test of `busy` and the block
    that resets it, nor between the two assignments that move on to the next record.

    The attributes without an underscore are for `StepTimer`, which holds the same code as `step`
    without its calls.
    """

    def __init__(
        self,
        folder: Path,
        producer: Producer,
        limit: int,
        full: Callable[[str], None] = lambda reason: None,
        *,
        shared: bool = False,
    ) -> None:
        """Create the producer's folder in the folder of the spools.

        `full` is called with the reason when a record finds no room that did not find it before;
        the group may read and delete a `shared` spool.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """
        self._producer = producer
        self._limit = limit
        self._size = max(SMALLEST_SEGMENT, min(limit // 8 // 4096 * 4096, LARGEST_SEGMENT))
        self._segment = 0
        self.sequence = 0
        self.salt = 0
        self.offset = self.end = 0
        self._mode = SHARED_FILE if shared else PRIVATE_FILE
        self._full = False
        self._tell_full = full
        self._secrets = secrets_of(os.environ)
        self._lock: int | None = None
        self._retry_at = 0
        self.busy = False
        self.pending: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        folder.mkdir(parents=True, exist_ok=True)
        # A reader sees the folder with its header or not at all.
        self.folder = folder / f".{producer.producer}"
        self.folder.mkdir()
        try:
            if shared:
                share(self.folder)
            self._create_header()
            self._open_segment()
            self.folder = self.folder.rename(folder / producer.producer)
        except BaseException:
            self.abandon()
            for path in self.folder.iterdir():
                path.unlink()
            self.folder.rmdir()
            raise

    def step(
        self,
        step: int,
        attempt: int,
        start: int,
        duration: int,
        data_wait: int,
        loss: float,
        samples: int,
    ) -> None:
        """Write one completed step."""
        self._later(self._step, step, attempt, start, duration, data_wait, loss, samples)

    def event(
        self, event: Event, attempt: str | None, rank: int | None, monotonic: int, wall: int
    ) -> None:
        """Write one event."""
        self._later(self._event, event, attempt, rank, monotonic, wall)

    def phases(self, phases: list[OpenPhase]) -> None:
        """Show which phases are open."""
        self._later(self._phases, phases)

    def close(self, delay: float) -> None:
        """Tell what was dropped, say that no record will follow, and let go.

        A thread that is at work may finish: that is waited for, `delay` seconds at most.
        """
        self.pending.append((self._close, ()))
        self.drain()
        deadline = time.monotonic() + delay
        while self.pending and time.monotonic() < deadline:
            time.sleep(0.001)
            self.drain()

    def drain(self) -> None:
        """Do what others left to whoever is at work, unless somebody else is."""
        while True:
            if not self.pending or self.busy:
                return
            self.busy = True
            try:
                function, arguments = self.pending.popleft()
                function(*arguments)
            finally:
                self.busy = False

    def abandon(self) -> None:
        """Let go without a word: another process writes, or none will."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _later(self, function: Callable[..., None], *arguments: object) -> None:
        if len(self.pending) >= _MOST_PENDING:
            self.slots[Slot.DROPPED] += 1
            return
        self.pending.append((function, arguments))
        self.drain()

    def _step(
        self,
        step: int,
        attempt: int,
        start: int,
        duration: int,
        data_wait: int,
        loss: float,
        samples: int,
    ) -> None:
        if self.offset >= self.end and not self._make_room(BLOCK, start + duration):
            return
        offset, sequence = self.offset, self.sequence
        body = STEP_BODY.pack(
            STEP_KIND, sequence, step, attempt, start, duration, data_wait, loss, samples
        )
        STEP_BLOCK.pack_into(self.map, offset, body, step_checksum(body, self.salt))
        self.offset = offset + BLOCK
        self.sequence = sequence + 1

    def _event(
        self, event: Event, attempt: str | None, rank: int | None, monotonic: int, wall: int
    ) -> None:
        about = {"attempt": attempt, "rank": rank, "monotonic": monotonic, "wall": wall}
        fields = masked_values(json_fields(event), self._secrets)
        self._frame({**about, "name": event.name, "fields": fields}, monotonic)

    def _phases(self, phases: list[OpenPhase]) -> None:
        begin, area = phases_area(phases)
        self._header[begin : begin + len(area)] = area

    def _close(self) -> None:
        self._tell_dropped(reserve=0)
        self.slots[Slot.CLOSED] = 1
        self.abandon()

    def _create_header(self) -> None:
        path = self.folder / HEADER
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, self._mode)
        try:
            os.fchmod(descriptor, self._mode)  # whatever the umask says
            os.posix_fallocate(descriptor, 0, HEADER_SIZE)
            self._header = mmap.mmap(descriptor, HEADER_SIZE)
        finally:
            os.close(descriptor)
        # Opened on its own: the map keeps a copy of its descriptor, and a forked worker's copy
        # would keep the lock when this process is dead.
        self._lock = os.open(path, os.O_RDONLY)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.slots = memoryview(self._header)[SLOTS_AT : SLOTS_AT + 8 * len(Slot)].cast("q")
        self.slots[Slot.LAST_STEP] = NO_STEP
        begin, area = identity_area(self._producer)
        self._header[begin : begin + len(area)] = area
        self._phases([])
        self._header[: len(MAGIC)] = MAGIC

    def _open_segment(self) -> None:
        segment = self._segment + 1
        seed = salt(self._producer.producer, segment)
        path = self.folder / segment_name(segment)
        # It may exist: an exception from another thread may have struck right here before.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, self._mode)
        try:
            os.fchmod(descriptor, self._mode)
            os.posix_fallocate(descriptor, 0, self._size)
            mapped = mmap.mmap(descriptor, self._size)
        except OSError:
            path.unlink()
            raise
        finally:
            os.close(descriptor)
        # No call from here on: all of these change or none.
        self.salt = seed
        self.map = mapped
        self._segment = segment
        self.offset = 0
        self.end = self._size - _RESERVE

    def _make_room(self, size: int, now: int) -> bool:
        """Return whether `size` bytes fit, in a new segment if need be; count the loss if not."""
        if self._full and now < self._retry_at:
            return self._drop()
        self._retry_at = now + _RETRY_NS
        try:
            used = sum(
                entry.stat().st_size
                for entry in os.scandir(self.folder)
                if entry.name.endswith(SEGMENT_SUFFIX)
            )
            if used + self._size > self._limit and used:
                return self._no_room(f"its limit is {self._limit} bytes")
            self._open_segment()
        except OSError as error:
            return self._no_room(str(error))
        self._full = False
        self._tell_dropped(reserve=_RESERVE)
        return self.offset + size <= self.end or self._drop()

    def _no_room(self, reason: str) -> bool:
        if not self._full:
            self._full = True
            self._tell_full(reason)
        return self._drop()

    def _drop(self) -> bool:
        self.end = min(self.end, self.offset)  # later, smaller records must not overtake it
        self.slots[Slot.DROPPED] += 1
        return False

    def _tell_dropped(self, reserve: int) -> None:
        count = self.slots[Slot.DROPPED] - self.slots[Slot.DROPPED_WRITTEN]
        if not count:
            return
        self.end = self._size - reserve
        monotonic, wall = time.monotonic_ns(), time.time_ns()
        full = f"spool of {self._limit} bytes or its disk full"
        event = Dropped(count=count, reason=f"{full}, event too large, or writer stuck")
        self._event(event, None, self._producer.rank, monotonic, wall)
        self.slots[Slot.DROPPED_WRITTEN] += count

    def _frame(self, values: dict[str, object], now: int) -> None:
        payload = json.dumps({"sequence": self.sequence, **values}).encode()
        start, size = frame(payload, self.salt)
        if size > self._size - _RESERVE:
            self.slots[Slot.DROPPED] += 1
            return
        if self.offset + size > self.end:
            if not self._make_room(size, now):
                return
            # The new segment has a salt and, after a `dropped` event, a sequence of its own.
            payload = json.dumps({"sequence": self.sequence, **values}).encode()
            start, _ = frame(payload, self.salt)
        offset, sequence = self.offset, self.sequence
        begin = offset + len(start)
        self.map[begin : begin + len(payload)] = payload
        self.map[offset:begin] = start
        self.offset = offset + size
        self.sequence = sequence + 1
