"""What the collector publishes of nodes, and of runs beside their ledgers."""

from headway.metrics.metric import Metric

OF_FLEET = (
    Metric(
        name="headway_node_failures_total",
        kind="counter",
        description="Failures of the node: GPU faults that ask for a reset, a reboot or a "
        "replacement, and incidents that are blamed on it.",
        labels=("node",),
    ),
    Metric(
        name="headway_node_lost_gpu_seconds",
        kind="gauge",
        description="GPU time that the incidents blamed on the node have cost all runs.",
        unit="seconds",
        labels=("node",),
    ),
    Metric(
        name="headway_clock_offset_seconds",
        kind="gauge",
        description="Collector's clock minus the clock that stamps the node's events.",
        unit="seconds",
        labels=("node",),
    ),
    Metric(
        name="headway_clock_error_seconds",
        kind="gauge",
        description="Largest error of the node's clock offset: half the shortest round trip.",
        unit="seconds",
        labels=("node",),
    ),
    Metric(
        name="headway_run_info",
        kind="gauge",
        description="1 for every run, with what people said about it.",
        labels=("run", "run_name", "team", "cluster", "owner"),
    ),
    Metric(
        name="headway_open_incident_gpu_seconds",
        kind="gauge",
        description="GPU time that the open incident of a run has cost so far.",
        unit="seconds",
        labels=("run", "incident", "cause", "suspect_node", "suspect_rank"),
    ),
    Metric(
        name="headway_gpu_hour_price",
        kind="gauge",
        description="What an hour of one GPU costs, where a price is set.",
        labels=("currency",),
    ),
)
