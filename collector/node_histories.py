"""The histories of nodes over all runs, from current ledgers and from what nodes told.

What a run adds is kept until its ledger changes.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from operator import is_
from typing import Any

from headway.collector.ledgers import Fleet, Ledgers
from headway.collector.node_clocks import NodeClocks
from headway.collector.run_ledger import Snapshot
from headway.events import Envelope, GpuSample
from headway.fleet.health import AFTER, BEFORE, changes
from headway.fleet.histories import GpuHistory, NodeHistory, node_history, worst_first
from headway.fleet.rates import NS_PER_DAY, Rate, rate_of
from headway.fleet.stays import Stay, stay_of
from headway.incidents import Loss
from headway.ledger.intake import Stamped, occurred
from headway.storage.store import EventStore

_MINUTE = 60 * 10**9
_RUNS_SHOWN = 10
"""Runs of one node, the newest first, of which its health before and after is told."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A node's history and what it was computed from."""

    num_events: int
    stays: tuple[Stay, ...]
    minute: int
    history: NodeHistory

    def holds(self, num_events: int, stays: Sequence[Stay], now: int) -> bool:
        """Whether it would come out alike: what is said of the last day moves by the minute."""
        return (
            self.num_events == num_events
            and self.minute == now // _MINUTE
            and len(self.stays) == len(stays)
            and all(map(is_, self.stays, stays))
        )


@dataclass(frozen=True, slots=True)
class _Stays:
    """What all runs together say of nodes at one version of the fleet."""

    version: str
    by_node: Mapping[str, Sequence[Stay]]
    opened_by_gpu: Mapping[tuple[str, str], Sequence[int]]


class NodeHistories:
    """Reads the histories of nodes."""

    def __init__(
        self, ledgers: Ledgers, clocks: NodeClocks, store: EventStore, clock: Callable[[], int]
    ) -> None:
        """Read runs from `ledgers`, and from the store only the samples around a run.

        `clock` gives the time in UTC nanoseconds.
        """
        self._ledgers = ledgers
        self._clocks = clocks
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._of_runs: dict[str, tuple[str, Stay]] = {}
        self._stays: _Stays | None = None
        self._kept: dict[str, _Kept] = {}

    def prepare(self, snapshot: Snapshot) -> None:
        """Read where a run was while its ledger is held; later it may have been let go."""
        if snapshot.held is not None:
            self._known(snapshot)

    @property
    def version(self) -> str:
        """Return what changes whenever a history may: with ledgers, nodes' events, the minute."""
        fleet, minute = self._ledgers.fleet(), self._clock() // _MINUTE
        return f"{fleet.version}-{self._ledgers.num_of_nodes()}-{minute}"

    def all(self) -> dict[str, Any]:
        """Return every node, the one that surely fails most first, and the whole fleet's rate."""
        found = self.known()
        failures = sum(one.rate.faults for one in found)
        exposure = sum(one.rate.node_days for one in found)
        return {
            "nodes": [_node(one) for one in worst_first(found)],
            "of": len(found),
            "repeats": sum(one.repeats for one in found),
            "fleet": _rate(rate_of(failures, round(exposure * NS_PER_DAY))),
        }

    def one(self, node: str) -> dict[str, Any] | None:
        """Return one node, its runs and its health around them; None if nobody knows it."""
        stays = self._by_node().get(node)
        if stays is None:
            return None
        found = _node(self._history(node, stays))
        newest = sorted(stays, key=lambda stay: -stay.nodes[node][0].start)[:_RUNS_SHOWN]
        return {**found, "stays": self._around(node, newest)}

    def known(self) -> list[NodeHistory]:
        """Return the histories of all nodes."""
        return [self._history(node, stays) for node, stays in self._by_node().items()]

    def scheduler(self, run: str) -> str | None:
        """Return who gave a run its machines, as far as its events tell."""
        return self._known(self._ledgers.snapshot(run)).scheduler

    def incidents_of_gpus(self) -> Mapping[tuple[str, str], Sequence[int]]:
        """Return when incidents of any run opened that a GPU is to blame for, by node and GPU.

        The times are UTC ns, in ascending order.
        """
        return self._current().opened_by_gpu

    def _by_node(self) -> Mapping[str, Sequence[Stay]]:
        """Return the stays of all runs by node; a node without any is there, too."""
        stays = self._current()
        return {**dict.fromkeys(self._ledgers.nodes(), ()), **stays.by_node}

    def _current(self) -> _Stays:
        fleet = self._ledgers.fleet()
        with self._lock:
            kept = self._stays
        if kept is None or kept.version != fleet.version:
            kept = self._read(fleet)
            with self._lock:
                self._stays = kept
        return kept

    def _read(self, fleet: Fleet) -> _Stays:
        by_node: dict[str, list[Stay]] = defaultdict(list)
        opened: dict[tuple[str, str], list[int]] = defaultdict(list)
        for stay in map(self._known, fleet.snapshots):
            for node in stay.nodes:
                by_node[node].append(stay)
            for charge in stay.charges:
                if charge.gpu is not None:
                    opened[charge.node, charge.gpu].append(charge.opened)
        return _Stays(
            version=fleet.version,
            by_node=by_node,
            opened_by_gpu={gpu: sorted(times) for gpu, times in opened.items()},
        )

    def _known(self, snapshot: Snapshot) -> Stay:
        run = snapshot.run
        with self._lock:
            version, stay = self._of_runs.get(run, (None, None))
        if stay is None or version != snapshot.version:
            stay = stay_of(snapshot.ledger, snapshot.report)
            with self._lock:
                self._of_runs[run] = (snapshot.version, stay)
        return stay

    def _history(self, node: str, stays: Sequence[Stay]) -> NodeHistory:
        """Return a node's history; while nothing is new one that was computed this minute."""
        num_events, now = self._ledgers.num_of_node(node), self._clock()
        with self._lock:
            kept = self._kept.get(node)
        if kept is None or not kept.holds(num_events, stays, now):
            events = self._ledgers.of_node(node)
            told = self._stamped(events)
            history = node_history(node, told, stays, now)
            kept = _Kept(len(events), tuple(stays), now // _MINUTE, history)
            with self._lock:
                self._kept[node] = kept
        return kept.history

    def _stamped(self, envelopes: Iterable[Envelope]) -> list[Stamped]:
        """Put events on the collector's clock."""
        found = []
        for envelope in envelopes:
            offset = self._clocks.offset(envelope.node, envelope.boot_id)
            shift = envelope.anchor + offset
            found.append(Stamped(occurred(envelope) + offset, shift, envelope, None))
        return sorted(found, key=lambda fact: fact.time)

    def _around(self, node: str, stays: Sequence[Stay]) -> list[dict[str, Any]]:
        """Return runs on a node, and how the node's health changed over each."""
        spans = [(stay.nodes[node][0].start, stay.nodes[node][-1].end) for stay in stays]
        told_at = [
            ((start - BEFORE, start), (max(start, end - BEFORE), end + AFTER))
            for start, end in spans
        ]
        found = self._store.of_node(node, (GpuSample.name,), [*chain.from_iterable(told_at)])
        samples, checks = self._stamped(found), self._stamped(self._ledgers.of_node(node))
        around = [
            [one for one in samples if _within(occurred(one.envelope), both)] for both in told_at
        ]
        return [
            {
                "run": stay.run,
                "run_name": stay.run_name,
                "live": stay.live,
                "start": start,
                "end": end,
                "health": [asdict(one) for one in changes(checks, sampled, start, end)],
            }
            for stay, (start, end), sampled in zip(stays, spans, around, strict=True)
        ]


def _within(time: int, spans: Iterable[tuple[int, int]]) -> bool:
    return any(first <= time <= last for first, last in spans)


def _node(one: NodeHistory) -> dict[str, Any]:
    return {
        "node": one.node,
        "runs": list(one.runs),
        "scheduler": one.scheduler,
        "failures": one.failures,
        "repeats": one.repeats,
        "per_1000_node_days": _rate(one.rate),
        "causes": dict(one.causes),
        "incidents": list(one.incidents),
        **_loss(one.loss),
        "last_failure": one.last_failure,
        "gpus": [_gpu(gpu) for gpu in one.gpus],
        "cordon": list(one.cordon),
    }


def _gpu(one: GpuHistory) -> dict[str, Any]:
    return {
        "device": one.device,
        "pci_address": one.address,
        "product": one.product,
        "faults": one.faults,
        "classes": dict(one.classes),
        "names": list(one.names),
        "incidents": list(one.incidents),
        **_loss(one.loss),
        "last_fault": one.last_fault,
        "advice": list(one.advice),
    }


def _loss(loss: Loss) -> dict[str, int]:
    return {"steps": loss.steps, "lost_ns": loss.time, "gpu_ns": loss.gpu_time}


def _rate(rate: Rate) -> dict[str, Any]:
    return {
        "failures": rate.faults,
        "node_days": rate.node_days,
        "rate": rate.rate,
        "low": rate.low,
        "high": rate.high,
    }
