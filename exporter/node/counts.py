"""What the ranks of a node did, counted as their records appear in the spools.

The counts live in the agent: they outlive every rank, and do not wait for the collector. Each
counter of a run exists, at 0, from the first record of the run on. Bounded: the newest runs, and
of each the newest attempts, are kept.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from headway import step_blocks
from headway.events import (
    EXIT_BY,
    FAULT_KINDS,
    GPU_FAULT_CLASSES,
    GPU_FAULT_KINDS,
    LAYERS,
    AttemptStarted,
    CheckpointFailed,
    CheckpointFinalized,
    Dropped,
    Envelope,
    Fault,
    GpuFault,
    GpuSample,
    GpuSxid,
    GpuXid,
    NodeMemory,
    RankExited,
    Resumed,
    Steps,
)

Sample = tuple[str, tuple[str, ...], float | None]
"""Metric name, values of its declared labels, value; `None` is unknown and left out."""
MOST_RUNS = 20
"""Runs whose counters are kept; the one that was silent longest goes first."""
MOST_ATTEMPTS = 50
"""Attempts of a run that are told apart; a late record of an older one counts as a new one's."""
RECENT_STEPS = 100
_SAMPLE_AGE = 120_000_000_000
"""Age in ns at which the state of a GPU is no longer published."""
_UNCLASSIFIED = "unclassified"
_SECOND = 1e9


@dataclass(slots=True)
class _Attempt:
    """Steps of one attempt by producer, and the most that one of them did."""

    steps: Counter[str] = field(default_factory=Counter)
    most: int = 0
    started: bool = False
    resumed: bool = False


class _Run:
    """Counters of one run."""

    def __init__(self) -> None:
        self.steps = 0
        self.step_time = 0
        self.data_wait = 0
        self.highest = 0
        self.rollbacks = 0
        self.dropped = 0
        self.attempts = dict.fromkeys(LAYERS, 0)
        self.restarts = dict.fromkeys(LAYERS, 0)
        self.faults = dict.fromkeys(FAULT_KINDS, 0)
        self.exits = dict.fromkeys(EXIT_BY, 0)
        self.checkpoints = {"finalized": 0, "failed": 0}
        self.checkpoint_at: int | None = None
        self._newest_save: dict[str, str] = {}
        self._known: OrderedDict[str | None, _Attempt] = OrderedDict()

    def saved(self, outcome: str, checkpoint: str) -> None:
        """Count a checkpoint once, however many ranks tell of it."""
        if self._newest_save.get(outcome) != checkpoint:
            self._newest_save[outcome] = checkpoint
            self.checkpoints[outcome] += 1

    def attempt(self, name: str | None) -> _Attempt:
        """Return what is known of an attempt."""
        found = self._known.setdefault(name, _Attempt())
        while len(self._known) > MOST_ATTEMPTS:
            self._known.popitem(last=False)
        return found

    def begin(self, name: str | None, layer: str) -> None:
        """Count an attempt once, however many ranks begin it."""
        attempt = self.attempt(name)
        if attempt.started:
            return
        attempt.started = True
        if any(other not in (name, None) for other in self._known):
            self.restarts[layer] += 1
        self.attempts[layer] += 1

    def resume(self, name: str | None, completed: int) -> None:
        """Count a rollback once per attempt."""
        attempt = self.attempt(name)
        if attempt.resumed:
            return
        attempt.resumed = True
        if completed < self.highest:
            self.rollbacks += 1
        self.highest = completed

    def add_steps(self, name: str | None, producer: str, number: int, last: int) -> None:
        """Count steps, the newest being `last`, of the rank that leads its attempt."""
        attempt = self.attempt(name)
        attempt.steps[producer] += number
        if attempt is next(reversed(self._known.values())):  # not a late record of an older one
            self.highest = max(self.highest, last)
        ahead = attempt.steps[producer] - attempt.most
        if ahead > 0:
            attempt.most += ahead
            self.steps += ahead


class NodeCounts:
    """Counters of all runs of the node and of its GPUs; safe to read from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._recent: dict[str, deque[tuple[int, int]]] = {}
        classes = (*GPU_FAULT_CLASSES, _UNCLASSIFIED)
        kinds = ("xid", "sxid", *GPU_FAULT_KINDS)
        self._gpu_faults = {(kind, asked): 0 for kind in kinds for asked in classes}
        self._gpus: dict[str, tuple[int, GpuSample]] = {}
        self._memory: NodeMemory | None = None

    def add(self, envelopes: Iterable[Envelope]) -> None:
        """Count records that were not counted before."""
        with self._lock:
            for envelope in envelopes:
                if envelope.run is None:
                    self._of_node(envelope)
                else:
                    self._of_run(envelope.run, envelope)

    def forget(self, producer: str) -> None:
        """Drop the pace of a producer that left no spool behind."""
        with self._lock:
            self._recent.pop(producer, None)

    def pace(self, producer: str) -> tuple[float, float] | None:
        """Return mean duration and data wait in seconds of a rank's last steps."""
        with self._lock:
            recent = self._recent.get(producer)
            if not recent:
                return None
            durations, waits = zip(*recent, strict=True)
        return fmean(durations) / _SECOND, fmean(waits) / _SECOND

    def checkpoints(self) -> Mapping[str, int]:
        """Return the monotonic time at which each run's newest checkpoint was finalized."""
        with self._lock:
            runs = self._runs.items()
            return {name: run.checkpoint_at for name, run in runs if run.checkpoint_at is not None}

    def samples(self, now: int) -> list[Sample]:
        """Return the counters, and what is known of memory and GPUs; `now` is monotonic ns."""
        with self._lock:
            found = [sample for name, run in self._runs.items() for sample in _of(name, run)]
            found += self._node_samples(now)
        return found

    def _of_run(self, name: str, envelope: Envelope) -> None:
        run = self._runs.setdefault(name, _Run())
        self._runs.move_to_end(name)
        if len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)
        event = envelope.event
        if isinstance(event, Steps):
            self._add_steps(run, envelope, event)
        elif isinstance(event, AttemptStarted):
            run.begin(envelope.attempt, event.layer)
        elif isinstance(event, Resumed):
            run.resume(envelope.attempt, event.completed)
        elif isinstance(event, Fault):
            run.faults[event.kind] += 1
        elif isinstance(event, RankExited):
            run.exits[event.by] += 1
        elif isinstance(event, CheckpointFinalized):
            run.saved("finalized", event.checkpoint)
            run.checkpoint_at = envelope.monotonic
        elif isinstance(event, CheckpointFailed):
            run.saved("failed", event.checkpoint)
        elif isinstance(event, Dropped):
            run.dropped += event.count

    def _add_steps(self, run: _Run, envelope: Envelope, event: Steps) -> None:
        recent = self._recent.setdefault(envelope.producer, deque(maxlen=RECENT_STEPS))
        number = 0
        for step in step_blocks.unpack(event.version, event.packed):
            recent.append((step.duration, step.data_wait))
            run.step_time += step.duration
            run.data_wait += step.data_wait
            number += 1
        newest = event.first_step + number - 1
        run.add_steps(envelope.attempt, envelope.producer, number, newest)

    def _of_node(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, NodeMemory):
            self._memory = event
        elif isinstance(event, GpuSample):
            self._gpus[event.device] = (envelope.monotonic, event)
        elif isinstance(event, GpuXid):
            self._gpu_faults["xid", event.classification or _UNCLASSIFIED] += event.repeats or 1
        elif isinstance(event, GpuSxid):
            self._gpu_faults["sxid", event.classification or _UNCLASSIFIED] += event.repeats or 1
        elif isinstance(event, GpuFault):
            self._gpu_faults[event.kind, event.classification or _UNCLASSIFIED] += 1

    def _node_samples(self, now: int) -> Iterator[Sample]:
        for labels, count in self._gpu_faults.items():
            yield "headway_node_gpu_faults_total", labels, count
        memory = self._memory
        if memory is not None:
            yield "headway_node_memory_available_bytes", (), memory.available
            yield "headway_node_memory_total_bytes", (), memory.total
            yield "headway_node_memory_pressure_ratio", (), memory.pressure
            yield "headway_node_oom_kills_total", (), memory.oom_kills
        for device, (at, gpu) in self._gpus.items():
            if now - at < _SAMPLE_AGE:
                yield "headway_node_gpu_temperature_celsius", (device,), gpu.temperature
                yield "headway_node_gpu_power_watts", (device,), gpu.power
                yield "headway_node_gpu_memory_used_bytes", (device,), gpu.memory_used
                yield "headway_node_gpu_utilization_ratio", (device,), gpu.utilization


def _of(name: str, run: _Run) -> Iterator[Sample]:
    yield "headway_node_steps_total", (name,), run.steps
    yield "headway_node_step_seconds_total", (name,), run.step_time / _SECOND
    yield "headway_node_data_wait_seconds_total", (name,), run.data_wait / _SECOND
    yield "headway_node_rollbacks_total", (name,), run.rollbacks
    yield "headway_node_dropped_records_total", (name,), run.dropped
    for metric, counts in (
        ("headway_node_attempts_total", run.attempts),
        ("headway_node_restarts_total", run.restarts),
        ("headway_node_faults_total", run.faults),
        ("headway_node_rank_exits_total", run.exits),
        ("headway_node_checkpoints_total", run.checkpoints),
    ):
        for label, count in counts.items():
            yield metric, (name, label), count
