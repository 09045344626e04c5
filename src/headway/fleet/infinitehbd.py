"""The fault trace of StepFun's InfiniteHBD: a year of node faults, each a start and an end.

A list of records with a node, a time in fractional days since the trace began, `fault_start` or
`fault_end`, and a type of level, class and description. A node may have several faults at once.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from headway.fleet.rates import NS_PER_DAY

EVENT_TYPES = ("fault_start", "fault_end")
_LONGEST = 100_000
"""Days that no trace is longer than."""
_FIELDS = ("node_id", "event_time", "event_type", "fault_type")


class TraceError(ValueError):
    """A file that is no such trace: which record, which value, what was expected."""


class FaultType(NamedTuple):
    """What broke, from coarse to fine, in the trace's own words."""

    level: str
    group: str
    description: str


class Record(NamedTuple):
    """One line of the trace; its place in the file counts from 1, its time is ns from its begin."""

    place: int
    node: str
    time: int
    event: str
    fault: FaultType


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFault:
    """A fault of a node from its start to its end, in ns since the trace began."""

    node: str
    fault: FaultType
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The faults of a trace, the records without a counterpart, and its length in ns."""

    faults: Sequence[NodeFault]
    unpaired: Sequence[Record]
    length: int

    @property
    def nodes(self) -> list[str]:
        """Every node with a fault, or with a part of one."""
        whole, parts = {one.node for one in self.faults}, {one.node for one in self.unpaired}
        return sorted(whole | parts)

    @property
    def repairs(self) -> list[int]:
        """Time from start to end of each fault, the shortest first."""
        return sorted(fault.end - fault.start for fault in self.faults)

    def down(self) -> dict[str, int]:
        """Return how long each node was down; faults at the same time count once."""
        found: dict[str, int] = {}
        reached: dict[str, int] = {}
        for fault in sorted(self.faults, key=lambda fault: (fault.start, fault.end)):
            begin = max(fault.start, reached.get(fault.node, 0))
            found[fault.node] = found.get(fault.node, 0) + max(fault.end - begin, 0)
            reached[fault.node] = max(fault.end, reached.get(fault.node, 0))
        return found

    @property
    def overlapping(self) -> int:
        """Faults that began while an earlier one of their node lasted."""
        count = 0
        reached: dict[str, int] = {}
        for fault in sorted(self.faults, key=lambda fault: (fault.start, fault.end)):
            count += fault.start < reached.get(fault.node, 0)
            reached[fault.node] = max(fault.end, reached.get(fault.node, 0))
        return count

    def counts(self) -> dict[str, dict[str, Any]]:
        """Return the faults by level, class and description, as the trace's statistics do."""
        found: dict[str, dict[str, Any]] = {}
        for one in self.faults:
            level = found.setdefault(one.fault.level, {"LevelTotal": 0})
            group = level.setdefault(one.fault.group, {"ClassTotal": 0})
            level["LevelTotal"] += 1
            group["ClassTotal"] += 1
            group[one.fault.description] = group.get(one.fault.description, 0) + 1
        return found


def read(text: str) -> Trace:
    """Return the trace that a file holds.

    Raises:
        TraceError: no whole JSON, or a record that is none of a trace.
    """
    try:
        values = json.loads(text, parse_float=Decimal, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise TraceError(
            f"no whole JSON: {error.msg} at line {error.lineno}, column {error.colno} of "
            f"{text.count(chr(10)) + 1} lines"
        ) from None
    except RecursionError:
        raise TraceError("no JSON of a trace: it is nested too deeply") from None
    if not isinstance(values, list):
        raise TraceError(f"a trace is a list of records, this is {_kind(values)}")
    return paired([_record(place, value) for place, value in enumerate(values, start=1)])


def paired(records: Sequence[Record]) -> Trace:
    """Join starts and ends by node and type, in order of time and, at one time, of the file.

    An end belongs to the newest start that is still open, so that a start whose end was lost is
    left over itself. An end that stands before the start of its own time is that of a fault of
    no length.
    """
    ordered = sorted(records, key=lambda one: one.time)
    opened: dict[tuple[str, FaultType], list[Record]] = defaultdict(list)
    alone: dict[tuple[str, FaultType], list[Record]] = defaultdict(list)
    faults = []
    for record in ordered:
        starts, ends = opened[record.node, record.fault], alone[record.node, record.fault]
        if record.event == "fault_start":
            if ends and ends[-1].time == record.time:
                ends.pop()
                faults.append(_fault_between(record, record))
            else:
                starts.append(record)
        elif starts:
            faults.append(_fault_between(starts.pop(), record))
        else:
            ends.append(record)
    left = [record for group in (*opened.values(), *alone.values()) for record in group]
    return Trace(
        faults=faults,
        unpaired=sorted(left, key=lambda one: one.place),
        length=ordered[-1].time if ordered else 0,
    )


def _fault_between(start: Record, end: Record) -> NodeFault:
    return NodeFault(node=start.node, fault=start.fault, start=start.time, end=end.time)


def _record(place: int, value: object) -> Record:
    if not isinstance(value, Mapping):
        raise TraceError(f"record {place} is {_kind(value)}, not an object")
    missing = [name for name in _FIELDS if name not in value]
    if missing:
        raise TraceError(f"record {place} has no {', '.join(missing)}")
    event = value["event_type"]
    if event not in EVENT_TYPES:
        raise TraceError(
            f"record {place} has the unknown event_type {event!r}; known: {', '.join(EVENT_TYPES)}"
        )
    return Record(
        place,
        _text(place, "node_id", value["node_id"]),
        _time(place, value["event_time"]),
        event,
        _fault(place, value["fault_type"]),
    )


def _time(place: int, value: object) -> int:
    """Return a time in days as ns; as a decimal number, because a float would lose some."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | Decimal)
        or not 0 <= value <= _LONGEST
    ):
        raise TraceError(
            f"record {place} has the event_time {_shown(value)}; "
            f"expected days since the trace began, 0 to {_LONGEST}"
        )
    return round(Decimal(value) * NS_PER_DAY)


def _fault(place: int, value: object) -> FaultType:
    if not isinstance(value, Mapping):
        raise TraceError(
            f"record {place} has {_kind(value)} as fault_type; "
            "expected an object with Level, Class and Desc"
        )
    return FaultType(
        *(
            _text(place, f"{name} of fault_type", value.get(name))
            for name in ("Level", "Class", "Desc")
        )
    )


def _text(place: int, name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TraceError(f"record {place} has {_shown(value)} as {name}; expected a text")
    return value


def _shown(value: object) -> str:
    return str(value) if isinstance(value, Decimal) else f"{value!r:.80}"


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return names.get(type(value), "null" if value is None else "a number")


def _refuse_constant(name: str) -> object:
    raise TraceError(f"{name} is no number of JSON")


def quantile(values: Sequence[int], percent: int) -> int | None:
    """Return the smallest of ascending values that at least `percent` of all do not exceed."""
    if not values:
        return None
    return values[max(-(-len(values) * percent // 100), 1) - 1]
