"""The collector's metrics as Prometheus reads them, as `headway.metrics` declares them."""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from headway.collector.run_ledger import Snapshot
from headway.collector.samples import (
    Sample,
    aging_samples,
    ingest_samples,
    node_samples,
    run_samples,
)
from headway.collector.service import Service
from headway.metrics import METRICS

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
            samples += node_samples(history, now)
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
                run = snapshot.run
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
