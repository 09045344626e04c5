"""The node's own Prometheus port: counters that live in the agent and so survive every rank.

What a rank is doing is read from its spool's header at the scrape, so that a dead rank is gone at
once; of the ranks only the worst are shown, so that a node has few series however many ranks it
has. The families are declared in `headway.metrics`; nothing here has a `_created` series, which
old Prometheus servers store as one more series per counter.
"""

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from pathlib import Path
from typing import TypeVar

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headway.exporter.node.clock_news import Offset
from headway.exporter.node.counts import NodeCounts, Sample
from headway.exporter.spooling.layout import SEGMENT_SUFFIX, Producer
from headway.exporter.spooling.reader import SpoolReader, Status, spools
from headway.metrics import METRICS

SHIPPED = "headway_agent_shipped_records_total"
REFUSED = "headway_agent_refused_records_total"
SPOOL_BYTES = "headway_agent_spool_bytes"
CLOSED_SPOOLS = "headway_agent_closed_spools"
DAMAGED = "headway_agent_damaged_blocks_total"
FAILURES = "headway_agent_export_failures_total"
WATCHER_FAILURES = "headway_agent_watcher_failures_total"
CLOCK_OFFSET = "headway_clock_offset_seconds"
CLOCK_ERROR = "headway_clock_error_seconds"
WORST = 3
"""Ranks shown in each of the gauges that have a label for the rank."""
_SECOND = 1e9
_Labels = TypeVar("_Labels", tuple[str, str], tuple[str, str, str])


@dataclass(frozen=True, slots=True)
class _Living:
    """A rank that is alive."""

    producer: Producer
    run: str
    status: Status

    @property
    def labels(self) -> tuple[str, str]:
        """Run and rank."""
        return self.run, str(self.producer.rank)


class NodeMetrics(Collector):
    """The agent's counters, each of which exists from the start, and what the node's ranks do."""

    def __init__(self, folder: Path, monotonic: Callable[[], int] = time.monotonic_ns) -> None:
        """Publish what lies in the folder of the spools; `monotonic` is their clock in ns."""
        self.counters = dict.fromkeys((SHIPPED, REFUSED, DAMAGED, FAILURES, WATCHER_FAILURES), 0)
        self.counts = NodeCounts()
        self.clocks: Mapping[str | None, Offset] = {}
        """The offset of each name of this node, once it was measured."""
        self.closed_spools = 0
        """Spools that the agent may not read or may not delete."""
        self._folder = folder
        self._monotonic = monotonic

    def add(self, name: str, amount: int) -> None:
        """Raise a counter."""
        self.counters[name] += amount

    def collect(self) -> Iterator[Metric]:
        """Yield the families for one scrape."""
        by_name: dict[str, list[tuple[tuple[str, ...], float]]] = defaultdict(list)
        for name, labels, value in self.samples():
            if value is not None:
                by_name[name].append((labels, value))
        for name, samples in by_name.items():
            declared = METRICS[name]
            family_of = CounterMetricFamily if declared.kind == "counter" else GaugeMetricFamily
            family = family_of(name, declared.description, labels=declared.labels)
            for labels, value in samples:
                family.add_metric(labels, value)
            yield family

    def samples(self) -> Iterator[Sample]:
        """Yield everything that is known now."""
        for name, value in self.counters.items():
            yield name, (), value
        yield SPOOL_BYTES, (), spool_bytes(self._folder)
        yield CLOSED_SPOOLS, (), self.closed_spools
        for node, clock in dict(self.clocks).items():
            yield CLOCK_OFFSET, (node or "",), clock.offset / _SECOND
            yield CLOCK_ERROR, (node or "",), clock.error / _SECOND
        now = self._monotonic()
        yield from self.counts.samples(now)
        yield from self._living_samples(list(_living(self._folder)), now)

    def _living_samples(self, ranks: list[_Living], now: int) -> Iterator[Sample]:
        saved = self.counts.checkpoints()
        for run, number in Counter(rank.run for rank in ranks).items():
            yield "headway_node_ranks", (run,), number
            steps = [rank.status.last_step for rank in ranks if rank.run == run]
            newest = max((step for step in steps if step is not None), default=None)
            yield "headway_node_newest_step", (run,), newest
            if run in saved:
                age = max(now - saved[run], 0) / _SECOND
                yield "headway_node_checkpoint_age_seconds", (run,), age
        paces = {rank.labels: self.counts.pace(rank.producer.producer) for rank in ranks}
        known = {labels: pace for labels, pace in paces.items() if pace is not None}
        steps_of = {labels: pace[0] for labels, pace in known.items()}
        waits_of = {labels: pace[1] for labels, pace in known.items()}
        yield from _worst("headway_node_rank_step_seconds", steps_of)
        yield from _worst("headway_node_rank_data_wait_seconds", waits_of)
        silent = {
            rank.labels: (now - rank.status.last_activity) / _SECOND
            for rank in ranks
            if rank.status.last_activity
        }
        yield from _worst("headway_node_rank_silence_seconds", silent)
        opened = {
            (*rank.labels, phases[-1].phase): (now - phases[-1].began) / _SECOND
            for rank in ranks
            if (phases := rank.status.open_phases)
        }
        yield from _worst("headway_node_rank_open_phase_seconds", opened)


def _worst(name: str, values: Mapping[_Labels, float]) -> Iterable[Sample]:
    return [
        (name, labels, value)
        for labels, value in nlargest(WORST, values.items(), key=lambda item: item[1])
    ]


def _living(folder: Path) -> Iterator[_Living]:
    for spool in spools(folder):
        reader = SpoolReader(spool)
        producer = reader.producer
        if producer is None or producer.rank is None or producer.run is None:
            continue
        status = reader.status()
        if status.alive:
            yield _Living(producer, producer.run, status)


def spool_bytes(folder: Path) -> int:
    """Return the bytes that the segments of all spools take on the disk."""
    total = 0
    for spool in spools(folder):
        for segment in spool.glob("*" + SEGMENT_SUFFIX):
            with contextlib.suppress(OSError):  # released meanwhile
                total += segment.stat().st_size
    return total
