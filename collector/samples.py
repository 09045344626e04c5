"""What the collector publishes of runs, nodes and itself, as `headway.metrics` declares it.

A run's metrics come from its ledger here, since a dead rank's own metrics vanish exactly when
they matter.
"""

from collections.abc import Iterator, Mapping

from headway.collector.alerting import Alerting
from headway.collector.run_ledger import Snapshot
from headway.collector.service import Service
from headway.events import LAYERS
from headway.fleet.histories import NodeHistory
from headway.storage.alert_book import BookError

Sample = tuple[str, tuple[str, ...], float | None]
"""Metric name, values of its declared labels, value; `None` is unknown and left out."""

_SECOND = 1e9
_DAY = 86_400 * 10**9
_WEEK = 7 * _DAY
_SILENCES = ("headway_progress_silence_ratio", "headway_recovery_time_ratio")
"""Conditions that grow while nothing is heard: unknown until agents had time to ship."""
_PEOPLE = ("team", "cluster", "owner")
"""What a run may say of itself that decides whom its alerts reach."""


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
    yield "headway_rolled_back_steps_total", (run,), steps["executed"] - steps["surviving"]
    age = None if checkpoint is None else checkpoint["age_s"]
    yield "headway_checkpoint_age_seconds", (run,), age
    yield "headway_steps_at_risk", (run,), report["steps_at_risk"]
    yield "headway_dropped_events_total", (run,), report["dropped_events"]
    said = report["labels"]
    people = (str(said.get(name, "")) for name in _PEOPLE)
    yield "headway_run_info", (run, report["run_name"], *people), 1
    for name, labels, value in snapshot.conditions:
        if not (snapshot.is_awaited and name in _SILENCES):
            yield name, (run, *labels), value


def aging_samples(snapshot: Snapshot, now: int) -> Iterator[Sample]:
    """Yield the metrics of one run that time alone changes."""
    heard = snapshot.report["last_event"]
    age = max(0, now - (snapshot.newest if heard is None else heard)) / _SECOND
    run = snapshot.report["run"]
    yield "headway_last_event_age_seconds", (run,), age
    if is_of_concern(snapshot, now):
        yield "headway_run_failed", (run,), int(snapshot.report["end"] is not None)
    if snapshot.report["end"] is None and not (snapshot.is_awaited or snapshot.is_waiting):
        yield "headway_silence_seconds", (run,), age


def is_of_concern(snapshot: Snapshot, now: int) -> bool:
    """Return whether a run may still fire alerts: it has not ended, or failed within a day."""
    end = snapshot.report["end"]
    return end is None or (snapshot.report["state"] == "failed" and now - end < _DAY)


def node_samples(history: NodeHistory, now: int) -> Iterator[Sample]:
    """Yield the metrics of one node."""
    lately = sum(time > now - _WEEK for time in history.failure_times)
    yield "headway_node_failures_week", (history.node,), lately
    yield "headway_node_failures_total", (history.node,), history.failures
    lost = history.loss.gpu_time / _SECOND
    yield "headway_node_lost_gpu_seconds", (history.node,), lost


def ingest_samples(service: Service) -> Iterator[Sample]:
    """Yield the metrics of the collector itself."""
    yield "headway_collector_up", (), 1
    if service.settings.gpu_hour_price is not None:
        price = service.settings.gpu_hour_price
        yield "headway_gpu_hour_price", (service.settings.currency,), price
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
    if service.alerting is not None:
        yield from _alerting_samples(service.alerting)
    for clock in service.node_clocks.current(service.clock()):
        yield "headway_clock_offset_seconds", (clock.node,), clock.offset / _SECOND
        error = None if clock.error is None else clock.error / _SECOND
        yield "headway_clock_error_seconds", (clock.node,), error


def _alerting_samples(alerting: Alerting) -> Iterator[Sample]:
    """Yield how alerting does; nothing but that fails with its file."""
    waits: Mapping[str, float] = {}
    failing = alerting.failure() is not None
    try:
        waits = alerting.waits()
    except BookError:
        failing = True
    yield "headway_alerting_failing", (), int(failing)
    for receiver, age in waits.items():
        yield "headway_notice_wait_seconds", (receiver,), age
