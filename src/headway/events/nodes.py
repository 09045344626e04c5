"""A node's network adapters, memory and clock."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from headway.events.declaration import NANOSECONDS, Described, Event, Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class NicSample(Event):
    """State of one port of a network adapter, told when anything of it changed."""

    name: ClassVar[str] = "nic.sample"
    device: Annotated[str, Described("Name of the adapter on its node.")]
    port: Annotated[int | None, Described("Port of an InfiniBand adapter.")] = None
    state: Annotated[str | None, Described("State of the link in the kernel's words.")] = None
    up: Annotated[bool | None, Described("Whether the link is up.")] = None
    link_downs: Annotated[
        int | None, Described("Times the link went down since the last sample.", "times")
    ] = None
    counters: Annotated[
        Mapping[str, Scalar] | None,
        Described("Error counters that rose since the last sample, and by how much."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory(Event):
    """Memory of one node."""

    name: ClassVar[str] = "node.memory"
    available: Annotated[int, Described("Memory available.", "bytes")]
    total: Annotated[int | None, Described("Memory installed.", "bytes")] = None
    pressure: Annotated[
        float | None, Described("Share of the last 10 s in which some task waited for memory.")
    ] = None
    oom_kills: Annotated[
        int | None, Described("Processes killed for lack of memory since the boot.", "processes")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock(Event):
    """How far a node's clock is from the collector's; add `offset` to the node's times."""

    name: ClassVar[str] = "clock"
    offset: Annotated[
        int, Described("Collector's clock minus the node's.", NANOSECONDS, signed=True)
    ]
    error: Annotated[int | None, Described("Largest error of the offset.", NANOSECONDS)] = None
