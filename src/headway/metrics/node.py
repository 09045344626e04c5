"""What the node agent publishes of the ranks, the memory and the GPUs of its node."""

from headway.metrics.metric import Metric

OF_NODE = (
    Metric(
        name="headway_node_ranks",
        kind="gauge",
        description="Ranks of the run that are alive on the node.",
        labels=("run",),
    ),
    Metric(
        name="headway_node_newest_step",
        kind="gauge",
        description="Newest step that a living rank of the node completed.",
        labels=("run",),
    ),
    Metric(
        name="headway_node_checkpoint_age_seconds",
        kind="gauge",
        description="Time since a rank of the node told of a completed checkpoint, "
        "while ranks are alive.",
        unit="seconds",
        labels=("run",),
    ),
    Metric(
        name="headway_node_rank_step_seconds",
        kind="gauge",
        description="Mean duration of the last 100 steps, of the node's slowest living ranks.",
        unit="seconds",
        labels=("run", "rank"),
    ),
    Metric(
        name="headway_node_rank_data_wait_seconds",
        kind="gauge",
        description="Mean wait for data of the last 100 steps, of the living ranks "
        "that wait longest.",
        unit="seconds",
        labels=("run", "rank"),
    ),
    Metric(
        name="headway_node_rank_open_phase_seconds",
        kind="gauge",
        description="Time for which the innermost phase is open, of the living ranks "
        "that are longest in one.",
        unit="seconds",
        labels=("run", "rank", "phase"),
    ),
    Metric(
        name="headway_node_rank_silence_seconds",
        kind="gauge",
        description="Time since the last sign of activity, of the living ranks that "
        "are silent longest.",
        unit="seconds",
        labels=("run", "rank"),
    ),
    Metric(
        name="headway_node_steps_total",
        kind="counter",
        description="Steps completed by the rank of the node that did most in each attempt.",
        labels=("run",),
    ),
    Metric(
        name="headway_node_step_seconds_total",
        kind="counter",
        description="Time that the node's ranks spent in completed steps.",
        unit="seconds",
        labels=("run",),
    ),
    Metric(
        name="headway_node_data_wait_seconds_total",
        kind="counter",
        description="Time that the node's ranks waited for data before completed steps.",
        unit="seconds",
        labels=("run",),
    ),
    Metric(
        name="headway_node_attempts_total",
        kind="counter",
        description="Attempts that the node's ranks began, by the layer that started them.",
        labels=("run", "layer"),
    ),
    Metric(
        name="headway_node_restarts_total",
        kind="counter",
        description="Attempts after the first that the agent saw, by the layer that started them.",
        labels=("run", "layer"),
    ),
    Metric(
        name="headway_node_faults_total",
        kind="counter",
        description="Faults that the node's ranks or its agent recorded, by kind.",
        labels=("run", "kind"),
    ),
    Metric(
        name="headway_node_rank_exits_total",
        kind="counter",
        description="Ends of ranks that did not say so themselves, by who ended them.",
        labels=("run", "by"),
    ),
    Metric(
        name="headway_node_rollbacks_total",
        kind="counter",
        description="Attempts that resumed below the highest step completed on the node.",
        labels=("run",),
    ),
    Metric(
        name="headway_node_checkpoints_total",
        kind="counter",
        description="Checkpoints that the node's ranks finalized or failed to, by outcome.",
        labels=("run", "outcome"),
    ),
    Metric(
        name="headway_node_dropped_records_total",
        kind="counter",
        description="Records that were lost before they could be shipped.",
        labels=("run",),
    ),
    Metric(
        name="headway_node_gpu_faults_total",
        kind="counter",
        description="GPU faults of the node: xid, sxid or the kind of another fault, "
        "by what they ask for.",
        labels=("kind", "classification"),
    ),
    Metric(
        name="headway_node_memory_available_bytes",
        kind="gauge",
        description="Memory available on the node.",
        unit="bytes",
    ),
    Metric(
        name="headway_node_memory_total_bytes",
        kind="gauge",
        description="Memory installed in the node.",
        unit="bytes",
    ),
    Metric(
        name="headway_node_memory_pressure_ratio",
        kind="gauge",
        description="Share of the last 10 s in which some task waited for memory.",
    ),
    Metric(
        name="headway_node_oom_kills_total",
        kind="counter",
        description="Processes killed for lack of memory since the node's boot.",
    ),
    Metric(
        name="headway_node_gpu_temperature_celsius",
        kind="gauge",
        description="Temperature of the GPU.",
        unit="celsius",
        labels=("gpu",),
    ),
    Metric(
        name="headway_node_gpu_power_watts",
        kind="gauge",
        description="Power that the GPU draws.",
        unit="watts",
        labels=("gpu",),
    ),
    Metric(
        name="headway_node_gpu_memory_used_bytes",
        kind="gauge",
        description="GPU memory in use.",
        unit="bytes",
        labels=("gpu",),
    ),
    Metric(
        name="headway_node_gpu_utilization_ratio",
        kind="gauge",
        description="Share of time with a kernel running on the GPU.",
        labels=("gpu",),
    ),
)
