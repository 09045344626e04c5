"""Headway itself: what arrives, how late, and what is lost on the way."""

from headway.grafana.layout import Board
from headway.grafana.panels import Panel, Row, Target


def _rate(metric: str, label: str, title: str) -> Panel:
    return Panel(
        title=title,
        about=metric,
        unit="ops",
        lowest=0,
        targets=(
            Target(
                query=f"sum by ({label}) (rate({metric}[$__rate_interval]))",
                legend="{{" + label + "}}",
            ),
        ),
    )


def _plain(metric: str, title: str, legend: str = "__auto", red: float | None = None) -> Panel:
    return Panel(
        title=title,
        about=metric,
        lowest=0,
        thresholds=() if red is None else ((red, "red"),),
        targets=(Target(query=metric, legend=legend),),
    )


BOARD = Board(
    uid="headway-pipeline",
    title="Pipeline health",
    description="Whether Headway hears everything, and how late.",
    marked=False,
    rows=(
        Row(
            title="Collector",
            panels=(
                _rate("headway_ingest_records_total", "outcome", "Records by outcome"),
                _rate("headway_ingest_requests_total", "outcome", "Requests by outcome"),
                _rate("headway_refused_requests_total", "reason", "Requests turned away"),
                _plain("headway_ingest_lag_seconds", "Ingest lag", "quantile {{quantile}}"),
                _plain("headway_ingest_open_gaps", "Open gaps", "gaps", 1),
                _plain("headway_ingest_bytes_in_flight", "On its way into the store", "bytes"),
                _plain("headway_storage_failing", "Commits fail", "failing", 1),
                _plain("headway_storage_lost_records_total", "Acknowledged and lost", "lost", 1),
                _plain("headway_clock_offset_seconds", "Clock offsets", "{{node}}"),
            ),
        ),
        Row(
            title="Agents",
            panels=(
                Panel(
                    title="Records shipped",
                    about="headway_agent_shipped_records_total",
                    unit="ops",
                    targets=(
                        Target(
                            query="rate(headway_agent_shipped_records_total[$__rate_interval])",
                            legend="{{instance}}",
                        ),
                    ),
                ),
                _plain("headway_agent_spool_bytes", "Spools", "{{instance}}"),
                Panel(
                    title="Exports that failed",
                    about="headway_agent_export_failures_total",
                    targets=(
                        Target(
                            query="increase(headway_agent_export_failures_total[$__rate_interval])",
                            legend="{{instance}}",
                        ),
                    ),
                ),
                _plain("headway_silence_seconds", "Silence of live runs", "{{run}}", 300),
                _plain("headway_live_dropped_events", "Events dropped", "{{run}}", 1),
                _plain(
                    "headway_agent_watcher_failures_total", "Watchers that failed", "{{instance}}"
                ),
            ),
        ),
    ),
)
