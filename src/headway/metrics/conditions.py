"""What alert rules read: a run's conditions, as the collector judges them, and that it serves."""

from headway.metrics.metric import Metric

OF_CONDITIONS = (
    Metric(
        name="headway_repeated_failures",
        kind="gauge",
        description="Breaks in a row, of the open incident alone, on the same rank, node, GPU, "
        "checkpoint or signature; 0 without one.",
        labels=("run",),
    ),
    Metric(
        name="headway_restarts_left",
        kind="gauge",
        description="Restarts that a recovery layer has left before it gives up; absent for "
        "one that never restarts by its settings.",
        labels=("run", "layer"),
    ),
    Metric(
        name="headway_last_restarts_left",
        kind="gauge",
        description="Restarts left to the outermost layer that tells its own: after them no "
        "layer starts the run again.",
        labels=("run", "layer"),
    ),
    Metric(
        name="headway_steps_below_newest_checkpoint",
        kind="gauge",
        description="Steps between what the newest attempt resumed from and the newest "
        "checkpoint that was claimed complete before it, without those in memory and those "
        "that proved unreadable.",
        labels=("run",),
    ),
    Metric(
        name="headway_unreadable_checkpoints",
        kind="gauge",
        description="Checkpoints, saved in the last day and claimed complete, that could not "
        "be loaded.",
        labels=("run",),
    ),
    Metric(
        name="headway_run_failed",
        kind="gauge",
        description="1 for a day after a run ended as failed, 0 while it has not ended.",
        labels=("run",),
    ),
    Metric(
        name="headway_invalid_recoveries",
        kind="gauge",
        description="Recoveries of the last day whose repeated steps disagree with the first pass.",
        labels=("run",),
    ),
    Metric(
        name="headway_recovery_time_ratio",
        kind="gauge",
        description="Time without recovery of the open incident, over what the run usually "
        "takes: the 95th percentile of its recoveries, of fewer than 20 at most thrice their "
        "median; its first start or 10 min at least, an hour at most. 0 without one, and while "
        "a run that was told to stop waits for machines.",
        labels=("run",),
    ),
    Metric(
        name="headway_progress_silence_ratio",
        kind="gauge",
        description="Time since the run last completed a step or a phase, over the longest "
        "of: 15 min, 5 times its 99th percentile of steps, 1.5 times its shortest configured "
        "watchdog but no more than an hour, twice the longest of an open phase, or 30 min for its "
        "first. 0 while it is known to recover.",
        labels=("run",),
    ),
    Metric(
        name="headway_phase_timeout_ratio",
        kind="gauge",
        description="Longest time that a phase begun in the last day took, over the timeout "
        "that guards it; of each attempt only its longest counts.",
        labels=("run", "phase", "timeout"),
    ),
    Metric(
        name="headway_suspected_false_alarms",
        kind="gauge",
        description="Incidents of the last day in which a timeout struck a rank that was at work.",
        labels=("run",),
    ),
    Metric(
        name="headway_checkpoint_interval_ratio",
        kind="gauge",
        description="Time that the newest attempt has trained without a new durable "
        "checkpoint, over the usual time between two; 0 while it does not train.",
        labels=("run",),
    ),
    Metric(
        name="headway_checkpoint_write_ratio",
        kind="gauge",
        description="Longest background write of a checkpoint, over the time to the next save.",
        labels=("run",),
    ),
    Metric(
        name="headway_checkpoint_queue_depth",
        kind="gauge",
        description="Most checkpoints that waited to be written at one time.",
        labels=("run",),
    ),
    Metric(
        name="headway_memory_pressure_ratio",
        kind="gauge",
        description="Highest share of 10 s in which tasks waited for memory, on the run's "
        "nodes during saves.",
        labels=("run",),
    ),
    Metric(
        name="headway_window_goodput_gap_ratio",
        kind="gauge",
        description="Infrastructure goodput minus training goodput of the newest window, or "
        "of its newest quarter if that is less: machines that are up and make no progress. "
        "Waiting for machines after an announced stop is left out.",
        labels=("run", "window"),
    ),
    Metric(
        name="headway_window_infrastructure_loss_ratio",
        kind="gauge",
        description="1 minus the infrastructure goodput of the newest window, or of its "
        "newest quarter if that is less; waiting for machines after an announced stop is left "
        "out.",
        labels=("run", "window"),
    ),
    Metric(
        name="headway_goodput_burn_ratio",
        kind="gauge",
        description="1 minus the training goodput of the newest window, or of its newest "
        "quarter if that is less, over what the run's target allows; waiting for machines "
        "after an announced stop is left out.",
        labels=("run", "window"),
    ),
    Metric(
        name="headway_live_gpu_faults",
        kind="gauge",
        description="GPU faults of the last hour that ask for a reset, a reboot or a "
        "replacement, on GPUs of a live run; 0 once it runs without the node.",
        labels=("run", "node"),
    ),
    Metric(
        name="headway_node_failures_week",
        kind="gauge",
        description="Failures of the node in the last seven days.",
        labels=("node",),
    ),
    Metric(
        name="headway_straggler_excess_ratio",
        kind="gauge",
        description="Time by which the slowest rank is behind its peers in a step, or in a "
        "wait for data, over the usual step.",
        labels=("run",),
    ),
    Metric(
        name="headway_silence_seconds",
        kind="gauge",
        description="Time since the collector heard anything of a run that has not ended; "
        "none after its end, nor while it waits for machines after an announced stop.",
        unit="seconds",
        labels=("run",),
    ),
    Metric(
        name="headway_live_dropped_events",
        kind="gauge",
        description="Events of a live run that its producers report as lost.",
        labels=("run",),
    ),
    Metric(
        name="headway_collector_up",
        kind="gauge",
        description="1 while the collector serves.",
    ),
)
