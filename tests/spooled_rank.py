"""A rank that writes a spool without the recorder, and dies or is damaged when told to."""

import time
from pathlib import Path

from headway.events import Note
from headway.exporter.identity import boot_id
from headway.exporter.spooling.layout import Producer, Slot
from headway.exporter.spooling.writer import SpoolWriter


class Rank:
    """One rank of the run `llama-7` on node `n1`, in attempt 7."""

    def __init__(
        self,
        folder: Path,
        rank: int = 0,
        limit: int = 1024**2,
        *,
        behind: int = 0,
        run: str = "llama-7",
        shared: bool = False,
    ) -> None:
        """Create its spool; its wall clock is `behind` by so many ns."""
        producer = Producer(
            producer=f"{rank:032x}",
            anchor=time.time_ns() - time.monotonic_ns() - behind,
            run=run,
            rank=rank,
            node="n1",
            boot_id=boot_id(),
            process_id=4242,
        )
        self.writer = SpoolWriter(folder, producer, limit, shared=shared)
        self.writer.slots[Slot.ATTEMPT] = 7
        self.folder = folder / producer.producer
        self.producer = producer.producer
        self.step = 0

    def steps(self, count: int) -> None:
        """Complete steps."""
        for _ in range(count):
            self.step += 1
            self.writer.step(self.step, 7, time.monotonic_ns(), 1000, 0, 0.5, self.step)
        self.writer.slots[Slot.ACTIVITY] = time.monotonic_ns()

    def note(self, text: str) -> None:
        """Record an event."""
        self.writer.event(Note(text=text), "7", 0, time.monotonic_ns(), time.time_ns())

    def damage(self, offset: int, size: int = 1) -> None:
        """Invert bytes of the first segment, so that each of them is another one."""
        with min(self.folder.glob("*.segment")).open("r+b") as segment:
            segment.seek(offset)
            found = segment.read(size)
            segment.seek(offset)
            segment.write(bytes(255 - byte for byte in found))

    def close(self) -> None:
        """End in order."""
        self.writer.close(0.0)
        del self.writer  # with it goes the lock on the header, as when a process ends

    def die(self) -> None:
        """End as if killed."""
        self.writer.abandon()
        del self.writer
