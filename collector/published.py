"""What a scrape would say now of live runs, nodes and the collector itself, without the text."""

from collections.abc import Collection, Mapping

from headway.collector.samples import (
    Sample,
    aging_samples,
    ingest_samples,
    is_of_concern,
    node_samples,
    run_samples,
)
from headway.collector.service import Service
from headway.metrics import METRICS

Published = tuple[str, Mapping[str, str], float]
"""Name of a metric, its labels, its value."""


def published(service: Service, wanted: Collection[str] = METRICS) -> list[Published]:
    """Return every sample of the wanted metrics.

    A run that has ended has none, unless it failed within a day.
    """
    now = service.clock()
    samples: list[Sample] = list(ingest_samples(service))
    for history in service.node_histories.known():
        samples += node_samples(history, now)
    for snapshot in service.ledgers.fleet().snapshots:
        if is_of_concern(snapshot, now):
            samples += run_samples(snapshot)
            samples += aging_samples(snapshot, now)
    return [
        (name, dict(zip(METRICS[name].labels, labels, strict=True)), value)
        for name, labels, value in samples
        if value is not None and name in wanted
    ]
