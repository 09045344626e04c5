"""Network adapters by their counters: InfiniBand and RoCE ports, Ethernet interfaces.

Read are the counters whose names speak of an error, whatever the driver calls them; traffic is
left to others. Counters of InfiniBand are asked of the adapter's firmware, which may be dead, so
the reading is an errand. A link that is down from the start is an unused port and no trouble.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headway.events import Event, Health, NicSample
from headway.exporter.node.errands import Errand
from headway.exporter.node.ethtool import statistics
from headway.exporter.node.sink import NodeSink

SYSFS = Path("/sys")
_CLOSING = 0.5
_ERRORS = re.compile(
    r"err|drop|discard|timeout|out_of|nak|retrans|integrity|overrun|duplicate|crc|collisions"
    r"|no_completion|impaired|unresponsive|slow_restart|link_down"
)
"""Parts of the names of counters that speak of an error, in mlx5, hfi1, EFA and the core."""
_QUEUE = re.compile(r"(rx|tx|ch)(_queue_|_)?\d")
"""Beginning of the name of a count of one queue: the driver counts all of them, too."""
_DOWNS = ("link_downed", "carrier_down_count", "link_down_events_phy")
"""Counters of the times that the link went down: of a port, of an interface, of mlx5's cable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One port at one look."""

    state: str | None
    up: bool | None
    counters: Mapping[str, int]


_Key = tuple[str, int | None]
"""Adapter and port, None for an interface."""


def read(
    root: Path = SYSFS, statistics: Callable[[str], Mapping[str, int]] = statistics
) -> dict[_Key, Port]:
    """Return every port of an InfiniBand adapter and every interface of a device.

    `statistics` gives what the interface's driver counts by itself.
    """
    found: dict[_Key, Port] = {}
    for port in sorted((root / "class/infiniband").glob("*/ports/*")):
        if port.name.isdigit():
            state = _text(port / "state")  # such as "4: ACTIVE"
            counters = {**_counters(port / "counters"), **_counters(port / "hw_counters")}
            found[port.parts[-3], int(port.name)] = Port(
                state=state and state.partition(": ")[2].lower(),
                up=state.startswith("4:") if state else None,
                counters=counters,
            )
    for interface in sorted((root / "class/net").glob("*")):
        if (interface / "device").exists():  # neither loopback nor a bridge
            state = _text(interface / "operstate")
            own = statistics(interface.name)
            counters = {name: value for name, value in own.items() if _counts(name)}
            counters |= _counters(interface / "statistics")
            downs = _number(interface / "carrier_down_count")
            if downs is not None:
                counters["carrier_down_count"] = downs
            known = state not in (None, "unknown")
            up = state == "up" if known else None
            found[interface.name, None] = Port(state=state, up=up, counters=counters)
    return found


class NicFindings:
    """What is known of the ports."""

    def __init__(self) -> None:
        self._ports: dict[_Key, Port] = {}
        self._health: dict[_Key, Health] = {}

    def take(self, ports: Mapping[_Key, Port]) -> list[Event]:
        """Return what is new since the last look."""
        gone = Port(state="gone", up=False, counters={})
        before, self._ports = self._ports, dict(ports)
        events: list[Event] = []
        for key in sorted(before.keys() | ports.keys(), key=str):
            port = ports.get(key, gone)
            if key not in ports:
                self._ports[key] = gone
            events += self._changes(key, before.get(key), port)
        return events

    def _changes(self, key: _Key, before: Port | None, port: Port) -> list[Event]:
        device, number = key
        sample = NicSample(device=device, port=number, state=port.state, up=port.up)
        if before is None:
            return [sample]
        rises = {
            name: value - before.counters[name]
            for name, value in port.counters.items()
            if value > before.counters.get(name, value)
        }
        downs = max((rises.get(name, 0) for name in _DOWNS), default=0)
        went_down = before.up is True and port.up is False
        downs = max(downs, int(went_down))
        if (before.state, before.up) == (port.state, port.up) and not rises:
            return self._health_of(key, port, 0)
        told = NicSample(
            device=device,
            port=number,
            state=port.state,
            up=port.up,
            link_downs=downs,
            counters=rises or None,
        )
        return [told, *self._health_of(key, port, downs)]

    def _health_of(self, key: _Key, port: Port, downs: int) -> list[Event]:
        device, number = key
        name = device if number is None else f"{device} port {number}"
        if downs:
            state = "down" if port.up is False else "up again"
            detail = f"link downs: {downs}; now the link is {state}"
            health = Health(check=f"nic {name}", state="unhealthy", detail=detail)
        elif port.up and key in self._health:
            health = Health(check=f"nic {name}", state="healthy")
        else:
            return []
        if health == self._health.get(key):
            return []
        self._health[key] = health
        return [health]


class NicWatcher:
    """Reads the adapters at an interval in seconds and records what changed."""

    def __init__(
        self,
        sink: NodeSink,
        *,
        interval: float,
        root: Path = SYSFS,
        monotonic: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._sink = sink
        self._findings = NicFindings()
        self._errand = Errand(
            lambda: read(root), interval, name="headway-nics", monotonic=monotonic
        )

    def poll(self) -> None:
        """Record what changed since the last look."""
        for at, ports in self._errand.poll():
            for event in self._findings.take(ports):
                self._sink.node_event(event, monotonic=at)

    def close(self) -> None:
        """Stop reading."""
        self._errand.close(_CLOSING)


def _counts(name: str) -> bool:
    return _ERRORS.search(name.lower()) is not None and _QUEUE.match(name) is None


def _counters(folder: Path) -> dict[str, int]:
    found = {}
    try:
        names = [entry for entry in folder.iterdir() if _counts(entry.name)]
    except OSError:
        return {}
    for entry in names:
        value = _number(entry)
        if value is not None:
            found[entry.name] = value
    return found


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:  # not supported by this port, or gone meanwhile
        return None
