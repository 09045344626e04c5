"""Builds the envelopes of a made-up run from plain times; knows nothing of the ledger's rules.

Time 0 is `ORIGIN`; `unit` says what the times count (seconds by default, nanoseconds with 1).
Each rank of each attempt is a producer of its own, as a real process is; events without a rank
come from the node's agent. `behind` sets a node's clock back, which only `clock` events repair.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from headway.events import (
    AttemptStarted,
    Envelope,
    Event,
    PhaseBegan,
    PhaseEnded,
    RankExited,
    RunEnded,
    Steps,
    StepsSummary,
)
from headway.step_blocks import VERSION, Step, pack

SECOND = 10**9
ORIGIN = 1_767_225_600 * SECOND
UPTIME = 5000 * SECOND
"""How long every node had been up at the origin, so that no monotonic time is negative."""


@dataclass(frozen=True, slots=True)
class _Record:
    at: int
    attempt: str | None
    rank: int | None
    node: str
    producer: str
    count: int
    event: Event


class Scenario:
    """Collects events in any order and numbers them per producer at the end."""

    def __init__(self, run: str = "run-1", unit: int = SECOND) -> None:
        self.run = run
        self.unit = unit
        self.behind: dict[str, int] = {}
        self._records: list[_Record] = []

    def ns(self, time: float) -> int:
        """Return a time or duration of this scenario in nanoseconds."""
        return time if self.unit == 1 and isinstance(time, int) else round(time * self.unit)

    def absolute(self, time: float) -> int:
        """Return a time of this scenario in UTC nanoseconds."""
        return ORIGIN + self.ns(time)

    def monotonic(self, time: float) -> int:
        """Return what every node's monotonic clock reads at a time of this scenario."""
        return self.ns(time) + UPTIME

    def event(
        self,
        at: float,
        event: Event,
        attempt: str | None = None,
        rank: int | None = None,
        node: str | None = None,
        count: int = 1,
        producer: str | None = None,
    ) -> None:
        """Add one event; `producer` lets a process record under a later attempt's name."""
        node = node or ("n0" if rank is None else f"n{rank // 2}")
        if producer is None:
            producer = f"agent {node}" if rank is None else f"{attempt} {rank}"
        self._records.append(_Record(self.ns(at), attempt, rank, node, producer, count, event))

    def start(
        self, attempt: str, at: float, ranks: Sequence[int] = (0,), layer: str = "scheduler"
    ) -> None:
        """Every rank's process starts at the same time."""
        for rank in ranks:
            started = AttemptStarted(layer=layer, world_size=len(ranks))
            self.event(at, started, attempt, rank)

    def steps(
        self,
        attempt: str,
        first: int,
        count: int,
        start: float,
        duration: float,
        rank: int = 0,
        data_wait: float = 0,
        node: str | None = None,
    ) -> float:
        """Complete steps one after another, each after its wait; return the end of the last."""
        times = []
        for _ in range(count):
            begin = start + data_wait
            times.append(Step(self.monotonic(begin), self.ns(duration), self.ns(data_wait)))
            start = begin + duration
        self.step_times(attempt, first, times, rank, node)
        return start

    def step_times(
        self, attempt: str, first: int, times: Sequence[Step], rank: int, node: str | None = None
    ) -> None:
        """Complete steps whose packed times are given."""
        end = times[-1].start + times[-1].duration
        self._records.append(
            _Record(
                end - UPTIME,
                attempt,
                rank,
                node or f"n{rank // 2}",
                f"{attempt} {rank}",
                len(times),
                Steps(first_step=first, version=VERSION, packed=pack(times)),
            )
        )

    def summary(
        self, attempt: str, first: int, count: int, start: float, end: float, rank: int = 0
    ) -> None:
        """Complete steps that one line sums up."""
        duration = self.ns(end) - self.ns(start)
        self.event(
            end, StepsSummary(first_step=first, num_steps=count, duration=duration), attempt, rank
        )

    def phase(
        self, attempt: str, name: str, begin: float, end: float | None, rank: int = 0
    ) -> None:
        """Enter a phase and, unless the end is None, leave it again."""
        self.event(begin, PhaseBegan(phase=name), attempt, rank)
        if end is not None:
            duration = self.ns(end) - self.ns(begin)
            self.event(end, PhaseEnded(phase=name, duration=duration), attempt, rank)

    def exit(
        self,
        attempt: str,
        at: float,
        ranks: Sequence[int] = (0,),
        code: int | None = None,
        signal: int | None = None,
        by: str = "unknown",
    ) -> None:
        """Every rank's process ends, as its node saw it."""
        for rank in ranks:
            exited = RankExited(exit_code=code, signal=signal, by=by)
            node = f"n{rank // 2}"
            self.event(at, exited, attempt, rank, node, producer=f"agent {node}")

    def end(self, at: float, reason: str = "completed") -> None:
        """The run is over."""
        self.event(at, RunEnded(reason=reason))

    def envelopes(self) -> list[Envelope]:
        """Return everything in the order of time, numbered per producer."""
        numbers: dict[str, int] = {}
        found = []
        for record in sorted(self._records, key=lambda record: record.at):
            first = numbers.get(record.producer, 1)
            numbers[record.producer] = first + record.count
            anchor = ORIGIN - UPTIME - self.behind.get(record.node, 0)
            monotonic = record.at + UPTIME
            found.append(
                Envelope(
                    producer=hashlib.sha256(record.producer.encode()).hexdigest()[:32],
                    anchor=anchor,
                    first_sequence=first,
                    last_sequence=first + record.count - 1,
                    run=self.run,
                    attempt=record.attempt,
                    rank=record.rank,
                    node=record.node,
                    boot_id=f"boot of {record.node}",
                    wall=anchor + monotonic,
                    monotonic=monotonic,
                    event=record.event,
                )
            )
        return found


def bound_later(envelopes: Sequence[Envelope], producer: str, bound: Event) -> list[Envelope]:
    """Take the attempt's name off a producer's envelopes and let a last record give it."""
    mine = [envelope for envelope in envelopes if envelope.producer == producer]
    last = max(mine, key=lambda envelope: envelope.last_sequence)
    number = last.last_sequence + 1
    name = replace(last, first_sequence=number, last_sequence=number, attempt=None, event=bound)
    nameless = [
        replace(envelope, attempt=None) if envelope.producer == producer else envelope
        for envelope in envelopes
    ]
    return [*nameless, name]
