"""What the collector publishes of itself: what it took in, stores and could not store."""

from headway.metrics.metric import Metric

OF_COLLECTOR = (
    Metric(
        name="headway_ingest_records_total",
        kind="counter",
        description="Records received, by what became of them: stored, duplicate, quarantined, "
        "refused.",
        labels=("outcome",),
    ),
    Metric(
        name="headway_ingest_requests_total",
        kind="counter",
        description="OTLP requests, by what became of them: taken, malformed, unknown_form, "
        "too_large, busy, gone.",
        labels=("outcome",),
    ),
    Metric(
        name="headway_refused_requests_total",
        kind="counter",
        description="Requests that were turned away at the door: 401 for no_token and "
        "wrong_token, 403 for scope and web_page.",
        labels=("reason",),
    ),
    Metric(
        name="headway_ingest_bytes_in_flight",
        kind="gauge",
        description="Bytes of requests on their way into the store, inflated.",
        unit="bytes",
    ),
    Metric(
        name="headway_ingest_lag_seconds",
        kind="gauge",
        description="From the event until it was durable, of what was committed in the last "
        "minute; quantile 1 is the longest.",
        unit="s",
        labels=("quantile",),
    ),
    Metric(
        name="headway_ingest_open_gaps",
        kind="gauge",
        description="Ranges of sequence numbers that are missing between stored ones.",
    ),
    Metric(
        name="headway_storage_recoveries_total",
        kind="counter",
        description="Times the database could be opened only after its log was repaired, or "
        "lacked what had been acknowledged, in its life.",
    ),
    Metric(
        name="headway_storage_lost_records_total",
        kind="counter",
        description="Records that had been acknowledged and were not in the database when it "
        "was opened, in its life.",
    ),
    Metric(
        name="headway_storage_failing",
        kind="gauge",
        description="1 while commits fail, for want of room for example; nothing is "
        "acknowledged then, and agents keep what they have.",
    ),
    Metric(
        name="headway_alerting_failing",
        kind="gauge",
        description="1 while the file that alerting keeps cannot be read or written; rules are "
        "looked at and notices are sent without it.",
    ),
    Metric(
        name="headway_notice_wait_seconds",
        kind="gauge",
        description="Age of the oldest notice of an alert that a receiver has not taken; 0 "
        "where none waits.",
        unit="seconds",
        labels=("receiver",),
    ),
)
