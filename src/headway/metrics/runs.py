"""What the collector publishes of a run's time, steps and checkpoints."""

from headway.metrics.goodputs import INFRASTRUCTURE_GOODPUT, TRAINING_GOODPUT
from headway.metrics.metric import Metric

OF_RUNS = (
    Metric(
        name="headway_training_goodput_ratio",
        kind="gauge",
        description=TRAINING_GOODPUT + " `bound` is low or high.",
        labels=("run", "bound"),
    ),
    Metric(
        name="headway_infrastructure_goodput_ratio",
        kind="gauge",
        description=INFRASTRUCTURE_GOODPUT + " `bound` is low or high.",
        labels=("run", "bound"),
    ),
    Metric(
        name="headway_category_seconds",
        kind="gauge",
        description="Time of the run in one category of the ledger.",
        unit="seconds",
        labels=("run", "category"),
    ),
    Metric(
        name="headway_elapsed_seconds",
        kind="gauge",
        description="Time since the run's first evidence of allocation.",
        unit="seconds",
        labels=("run",),
    ),
    Metric(
        name="headway_highest_step",
        kind="gauge",
        description="Highest optimizer step ever completed.",
        labels=("run",),
    ),
    Metric(
        name="headway_steps_executed_total",
        kind="counter",
        description="Steps completed, steps done again included.",
        labels=("run",),
    ),
    Metric(
        name="headway_attempts_total",
        kind="counter",
        description="Attempts of the run so far.",
        labels=("run",),
    ),
    Metric(
        name="headway_restarts_total",
        kind="counter",
        description="Restarts by the layer that recovered the run.",
        labels=("run", "layer"),
    ),
    Metric(
        name="headway_attempts_without_durable_step",
        kind="gauge",
        description="Attempts of a live run since a durable checkpoint last moved it forward.",
        labels=("run",),
    ),
    Metric(
        name="headway_rolled_back_steps_total",
        kind="counter",
        description="Steps completed and later discarded.",
        labels=("run",),
    ),
    Metric(
        name="headway_checkpoint_age_seconds",
        kind="gauge",
        description="Time since the newest durable checkpoint was completed.",
        unit="seconds",
        labels=("run",),
    ),
    Metric(
        name="headway_steps_at_risk",
        kind="gauge",
        description="Surviving steps that no durable checkpoint holds.",
        labels=("run",),
    ),
    Metric(
        name="headway_dropped_events_total",
        kind="counter",
        description="Events that producers report as lost.",
        labels=("run",),
    ),
    Metric(
        name="headway_last_event_age_seconds",
        kind="gauge",
        description="Time since the newest event of the run.",
        unit="seconds",
        labels=("run",),
    ),
)
