"""Records of one producer and one kind side by side: each field as a column.

An agent's records differ in little but numbers. As columns they go from a request into the database
without an object each, and what waits for its ledger takes a tenth of the memory.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from headway.events import Envelope, Event
from headway.sequences import Source


class Numbers(Protocol):
    """Whole numbers of 64 bits in an array, as numpy has them."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: Any, /) -> Any: ...

    def min(self) -> Any:
        """Return the lowest."""

    def max(self) -> Any:
        """Return the highest."""

    def tolist(self) -> list[int]:
        """Return them as plain numbers."""


class Column(NamedTuple):
    """One field of many records: `values`, or where that is None, `constant` in all of them."""

    constant: Any
    values: list[Any] | Numbers | None

    def of(self, count: int) -> list[Any]:
        """Return one plain value for each of so many records."""
        if self.values is None:
            return [self.constant] * count
        return self.values if isinstance(self.values, list) else self.values.tolist()

    def part(self, begin: int, end: int) -> "Column":
        """Return the column of the records from `begin` to before `end`."""
        return self if self.values is None else Column(None, self.values[begin:end])


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Records as their declarations want them, each with one sequence number.

    `producer` are the envelope's fields that all share, `record` the others but the last sequence
    number, which is the first, `fields` those of the event.
    """

    producer: Mapping[str, Any]
    kind: type[Event]
    count: int
    record: Mapping[str, Column]
    fields: Mapping[str, Column]

    @property
    def latest(self) -> int:
        """Return the latest of their times in ns, by the clock of their node."""
        column = self.record["monotonic"]
        if column.values is None:
            return int(self.producer["anchor"] + column.constant)
        return int(self.producer["anchor"]) + int(_highest(column.values))

    @property
    def earliest(self) -> int:
        """Return the earliest of their times in ns, by the clock of their node."""
        column = self.record["monotonic"]
        if column.values is None:
            return int(self.producer["anchor"] + column.constant)
        return int(self.producer["anchor"]) + int(_lowest(column.values))

    @property
    def rank(self) -> int | None:
        """Return the rank of them all, or of one of them where they differ."""
        column = self.record["rank"]
        return column.constant if column.values is None else int(column.values[0])

    def part(self, begin: int, end: int) -> "Block":
        """Return the records from `begin` to before `end`."""
        if (begin, end) == (0, self.count):
            return self
        return Block(
            producer=self.producer,
            kind=self.kind,
            count=end - begin,
            record={name: column.part(begin, end) for name, column in self.record.items()},
            fields={name: column.part(begin, end) for name, column in self.fields.items()},
        )

    def first(self) -> Envelope:
        """Return the first of the envelopes."""
        (found,) = self.part(0, 1).envelopes()
        return found

    def envelopes(self) -> list[Envelope]:
        """Return the records one by one."""
        names = ("first_sequence", "attempt", "rank", "wall", "monotonic")
        columns = (self.record[name].of(self.count) for name in names)
        return [
            Envelope(
                first_sequence=sequence,
                last_sequence=sequence,
                attempt=attempt,
                rank=rank,
                wall=wall,
                monotonic=monotonic,
                event=event,
                **self.producer,
            )
            for sequence, attempt, rank, wall, monotonic, event in zip(
                *columns, self._events(), strict=True
            )
        ]

    def _events(self) -> list[Event]:
        constant = {name: one.constant for name, one in self.fields.items() if one.values is None}
        varying = {
            name: one.of(self.count) for name, one in self.fields.items() if one.values is not None
        }
        if not varying:
            return [self.kind(**constant)] * self.count
        names = tuple(varying)
        rows = zip(*varying.values(), strict=True)
        return [self.kind(**dict(zip(names, row, strict=True)), **constant) for row in rows]


def _lowest(values: list[Any] | Numbers) -> Any:
    return min(values) if isinstance(values, list) else values.min()


def _highest(values: list[Any] | Numbers) -> Any:
    return max(values) if isinstance(values, list) else values.max()


Part = Envelope | Block
"""Records as they go through the collector: one that stands alone, or many of a kind."""


def expanded(parts: Iterable[Part]) -> Iterator[Envelope]:
    """Yield all records one by one."""
    for part in parts:
        if isinstance(part, Block):
            yield from part.envelopes()
        else:
            yield part


def of_kinds(parts: Iterable[Part], *kinds: type[Event]) -> Iterator[Envelope]:
    """Yield the records whose events are of some kinds."""
    for part in parts:
        if isinstance(part, Block):
            if issubclass(part.kind, kinds):
                yield from part.envelopes()
        elif isinstance(part.event, kinds):
            yield part


def num_records(part: Part) -> int:
    """Return how many records a part holds: 100 steps count 100."""
    if isinstance(part, Block):
        return part.count
    return part.last_sequence - part.first_sequence + 1


def source(part: Part) -> Source:
    """Return run and producer of a part."""
    if isinstance(part, Block):
        return part.producer["run"], part.producer["producer"]
    return part.run, part.producer


def earliest(part: Part) -> int:
    """Return the earliest time of a part in ns, by the clock of its node."""
    return part.earliest if isinstance(part, Block) else part.anchor + part.monotonic
