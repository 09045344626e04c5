"""What the node agent publishes of itself."""

from headway.metrics.metric import Metric

OF_AGENT = (
    Metric(
        name="headway_agent_shipped_records_total",
        kind="counter",
        description="Spool records that the collector acknowledged.",
    ),
    Metric(
        name="headway_agent_refused_records_total",
        kind="counter",
        description="Spool records that the collector cannot read, kept in a folder.",
    ),
    Metric(
        name="headway_agent_spool_bytes",
        kind="gauge",
        description="Size of the spools that the agent watches.",
        unit="bytes",
    ),
    Metric(
        name="headway_agent_damaged_blocks_total",
        kind="counter",
        description="Spool blocks whose checksum was wrong.",
    ),
    Metric(
        name="headway_agent_export_failures_total",
        kind="counter",
        description="Batches that the collector did not take.",
    ),
    Metric(
        name="headway_agent_watcher_failures_total",
        kind="counter",
        description="Looks at the node's memory, kernel log or GPUs that failed.",
    ),
    Metric(
        name="headway_agent_closed_spools",
        kind="gauge",
        description="Spools that the agent may not read or may not delete.",
    ),
)
