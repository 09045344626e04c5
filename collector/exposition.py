"""The collector's metrics for Prometheus, as `headway.metrics` declares them.

A run's metrics come from its ledger here, since a dead rank's own metrics vanish exactly when
they matter.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from headway.collector.run_ledger import Snapshot
from headway.collector.service import Service
from headway.events import LAYERS
from headway.fleet.histories import NodeHistory
from headway.metrics import METRICS

Sample = tuple[str, tuple[str, ...], float | None]
"""Metric name, values of its declared labels, value; `None` is unknown and left out."""

_SECOND = 1e9
_KEPT = 2 * 86_400 * 10**9
"""Time in ns after its end for which a run is shown: an abandoned one is known for such a day
after. Prometheus keeps what it scraped; a run that is over would add its series for ever."""
_FORMATS = 4
"""Formats of which the text of runs is kept."""
_END = b"# EOF\n"
"""Last line of OpenMetrics."""

Encode = Callable[[CollectorRegistry], bytes]
_Text = Mapping[bytes, bytes]
"""The lines of samples after the lines that describe their metric."""


class Exposition:
    """The metrics as text; that of a run is written again only when its ledger was."""

    def __init__(self, service: Service, refused: Mapping[str, int]) -> None:
        """Show a service, and how many requests were refused by reason."""
        self._service = service
        self._refused = refused
        self._lock = threading.Lock()
        self._kept: dict[str, dict[str, tuple[str, _Text]]] = {}

    def answer(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics in the format that a scraper accepts, and its content type."""
        encode, content_type = choose_encoder(accept)
        now, fleet = self._service.clock(), self._service.ledgers.fleet()
        shown = [one for one in fleet.snapshots if _is_shown(one, now)]
        samples = list(ingest_samples(self._service))
        for reason, count in self._refused.items():
            samples.append(("headway_refused_requests_total", (reason,), count))
        for history in self._service.node_histories.known():
            samples += node_samples(history)
        for snapshot in shown:
            samples += aging_samples(snapshot, now)
        texts = [*self._texts(shown, encode, content_type), _text(samples, encode)]
        return _joined(texts) + (_END if _ends(encode) else b""), content_type

    def _texts(
        self, shown: Iterable[Snapshot], encode: Encode, content_type: str
    ) -> Iterable[_Text]:
        """Return the text of each run that is shown."""
        with self._lock:
            known = self._kept.pop(content_type, {})
            found = {}
            for snapshot in shown:
                run = snapshot.ledger.run
                version, text = known.get(run, (None, {}))
                if version != snapshot.version:
                    text = _text(run_samples(snapshot), encode)
                found[run] = snapshot.version, text
            self._kept[content_type] = found
            while len(self._kept) > _FORMATS:
                del self._kept[next(iter(self._kept))]
        return [text for _, text in found.values()]


def _is_shown(snapshot: Snapshot, now: int) -> bool:
    end = snapshot.report["end"]
    return end is None or now - end < _KEPT


def _ends(encode: Encode) -> bool:
    return encode(CollectorRegistry()).endswith(_END)


def _text(samples: Iterable[Sample], encode: Encode) -> _Text:
    """Return samples as text, by the lines that describe their metric."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(samples))
    found: dict[bytes, list[bytes]] = {}
    described, lines = b"", list[bytes]()
    for line in encode(registry).removesuffix(_END).split(b"\n")[:-1]:
        if line.startswith(b"#"):
            if lines:
                described, lines = b"", []
            described += line + b"\n"
        else:
            lines.append(line + b"\n")
            found[described] = lines
    return {described: b"".join(lines) for described, lines in found.items()}


def _joined(texts: Iterable[_Text]) -> bytes:
    """Return texts as one, in which each metric is described once."""
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for text in texts:
        for described, lines in text.items():
            found[described].append(lines)
    return b"".join(described + b"".join(lines) for described, lines in found.items())


def run_samples(snapshot: Snapshot) -> Iterator[Sample]:
    """Yield the metrics of one run that its ledger alone decides."""
    report = snapshot.report
    run = report["run"]
    for ratio in ("training_goodput", "infrastructure_goodput"):
        for bound, value in report[ratio].items():
            yield f"headway_{ratio}_ratio", (run, bound), value
    for category, time in report["categories"].items():
        yield "headway_category_seconds", (run, category), time / _SECOND
    steps, checkpoint = report["steps"], report["checkpoint"]
    yield "headway_elapsed_seconds", (run,), report["elapsed_ns"] / _SECOND
    yield "headway_highest_step", (run,), steps["highest"]
    yield "headway_steps_executed_total", (run,), steps["executed"]
    yield "headway_attempts_total", (run,), report["attempts"]
    # A counter that starts at 0 before the first restart shows the first one as an increase.
    restarts = dict.fromkeys(LAYERS, 0)
    restarts |= {layer: sum(causes.values()) for layer, causes in report["restarts"].items()}
    for layer, count in restarts.items():
        yield "headway_restarts_total", (run, layer), count
    without = report["attempts_without_durable_step"]
    yield "headway_attempts_without_durable_step", (run,), without
    yield "headway_rolled_back_steps_total", (run,), steps["executed"] - steps["surviving"]
    age = None if checkpoint is None else checkpoint["age_s"]
    yield "headway_checkpoint_age_seconds", (run,), age
    yield "headway_steps_at_risk", (run,), report["steps_at_risk"]
    yield "headway_dropped_events_total", (run,), report["dropped_events"]


def aging_samples(snapshot: Snapshot, now: int) -> Iterator[Sample]:
    """Yield the metrics of one run that time alone changes."""
    age = max(0, now - snapshot.newest) / _SECOND
    yield "headway_last_event_age_seconds", (snapshot.ledger.run,), age


def node_samples(history: NodeHistory) -> Iterator[Sample]:
    """Yield the metrics of one node."""
    yield "headway_node_failures_total", (history.node,), history.failures
    lost = history.loss.gpu_time / _SECOND
    yield "headway_node_lost_gpu_seconds", (history.node,), lost


def ingest_samples(service: Service) -> Iterator[Sample]:
    """Yield the metrics of the collector itself."""
    for outcome, count in service.committer.counts().items():
        yield "headway_ingest_records_total", (outcome,), count
    for outcome, count in service.intake.requests.items():
        yield "headway_ingest_requests_total", (outcome,), count
    yield "headway_ingest_bytes_in_flight", (), service.intake.size
    for quantile, lag in service.committer.lags.quantiles().items():
        yield "headway_ingest_lag_seconds", (f"{quantile:g}",), lag / _SECOND
    yield "headway_ingest_open_gaps", (), service.store.num_gaps
    recoveries, lost = service.recoveries.counts()
    yield "headway_storage_recoveries_total", (), recoveries
    yield "headway_storage_lost_records_total", (), lost
    yield "headway_storage_failing", (), int(service.committer.failure is not None)
    for clock in service.node_clocks.current(service.clock()):
        yield "headway_clock_offset_seconds", (clock.node,), clock.offset / _SECOND
        error = None if clock.error is None else clock.error / _SECOND
        yield "headway_clock_error_seconds", (clock.node,), error


class _Families(Collector):
    """Samples grouped by metric, with the declared description of each."""

    def __init__(self, samples: Iterable[Sample]) -> None:
        self._samples = samples

    def collect(self) -> Iterable[GaugeMetricFamily | CounterMetricFamily]:
        by_name = defaultdict(list)
        for name, labels, value in self._samples:
            if value is not None:
                by_name[name].append((labels, value))
        for name, metric in METRICS.items():
            if name not in by_name:
                continue
            family_of = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = family_of(name, metric.description, labels=metric.labels)
            for labels, value in by_name[name]:
                family.add_metric(labels, value)
            yield family
