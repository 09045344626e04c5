"""Collects what the processes of a simulated run record, and numbers it per producer."""

import hashlib
from typing import NamedTuple

from headway.events import Envelope, Event

ORIGIN = 1_767_225_600 * 10**9
"""Wall-clock time of the run's time 0: 2026-01-01 00:00 UTC."""


class _Record(NamedTuple):
    time: int
    producer: str
    attempt: str | None
    rank: int | None
    node: str
    num_records: int
    event: Event


class Journal:
    """Records in any order of time; each rank of an attempt and the agent is a producer."""

    def __init__(self, run: str) -> None:
        self.run = run
        self._records: list[_Record] = []

    def tell(
        self,
        time: int,
        event: Event,
        node: str,
        *,
        attempt: str | None = None,
        rank: int | None = None,
        by_agent: bool = False,
        count: int = 1,
    ) -> None:
        """Record an event at a time of the run in ns."""
        producer = "agent" if by_agent or rank is None else f"{attempt} {rank}"
        self._records.append(_Record(time, producer, attempt, rank, node, count, event))

    def envelopes(self) -> list[Envelope]:
        """Return everything in order of time."""
        sequences: dict[str, int] = {}
        identities: dict[str, str] = {}
        found = []
        for record in sorted(self._records, key=lambda item: item.time):
            if record.producer not in identities:
                words = f"{self.run}\n{record.producer}"
                identities[record.producer] = hashlib.sha256(words.encode()).hexdigest()[:32]
            first = sequences.get(record.producer, 0)
            sequences[record.producer] = first + record.num_records
            found.append(
                Envelope(
                    producer=identities[record.producer],
                    anchor=ORIGIN,
                    first_sequence=first,
                    last_sequence=first + record.num_records - 1,
                    run=self.run,
                    attempt=record.attempt,
                    rank=record.rank,
                    node=record.node,
                    boot_id=f"boot-{record.node}",
                    wall=ORIGIN + record.time,
                    monotonic=record.time,
                    event=record.event,
                )
            )
        return found
