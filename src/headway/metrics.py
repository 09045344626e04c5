"""Every ledger category and every published metric, declared once.

Prometheus HELP, axis titles, colours, definitions shown to people and the reference pages derive
from here. Colours come from the Okabe-Ito palette and its tints, which colour-blind people can
tell apart (Okabe and Ito, 2008, "Color Universal Design"). Standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

CUSTOM = "custom:"
"""Prefix of the categories that users name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """One leaf category of the ledger; `None` in a good column means unknown."""

    name: str
    title: str
    description: str
    colour: str
    training_good: bool | None
    infrastructure_good: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One published Prometheus metric."""

    name: str
    kind: Literal["counter", "gauge"]
    description: str
    unit: str | None = None
    labels: tuple[str, ...] = ()


CATEGORIES: Mapping[str, Category] = {
    category.name: category
    for category in (
        Category(
            name="productive",
            title="Productive",
            description="Steps that survive: their result is in the newest state of the run.",
            colour="#009E73",
            training_good=True,
            infrastructure_good=True,
        ),
        Category(
            name="rolled_back",
            title="Rolled back",
            description="Steps that were completed and later discarded, or cut short.",
            colour="#D55E00",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="checkpoint_save",
            title="Checkpoint save",
            description="The part of a checkpoint save for which training waited.",
            colour="#0072B2",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="checkpoint_load",
            title="Checkpoint load",
            description="Reading back the checkpoint from which an attempt then trains.",
            colour="#56B4E9",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="data_wait",
            title="Data wait",
            description="Waiting for the next batch.",
            colour="#F0E442",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="evaluation",
            title="Evaluation",
            description="Validation inside the run.",
            colour="#99C7A8",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="startup",
            title="Start-up",
            description="The run's first attempt, from process start to its first step.",
            colour="#8DA0CB",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="stalled",
            title="Stalled",
            description="No progress and recovery not begun: hang, dead peer, detection delay.",
            colour="#882255",
            training_good=False,
            infrastructure_good=False,
        ),
        Category(
            name="restart",
            title="Restart",
            description="Recovery begun, until the new attempt's first step starts; "
            "failed starts and failed loads whole.",
            colour="#CC79A7",
            training_good=False,
            infrastructure_good=False,
        ),
        Category(
            name="down",
            title="Down",
            description="No training rank alive and nobody restarting it.",
            colour="#4D4D4D",
            training_good=False,
            infrastructure_good=False,
        ),
        Category(
            name="unattributed",
            title="Unattributed",
            description="No evidence either way; it makes each goodput a range.",
            colour="#BBBBBB",
            training_good=None,
            infrastructure_good=None,
        ),
    )
}
"""The leaf categories in the order in which people read them."""

SPARE = Category(
    name="spare",
    title="Spare",
    description="GPUs held that no rank of the attempt uses; exists in GPU time only.",
    colour="#DDDDDD",
    training_good=False,
    infrastructure_good=False,
)


def category(name: str, training_good: bool = False) -> Category:
    """Return the declaration of a category; `custom:` names are declared on the spot.

    Raises:
        ValueError: a name that is neither declared nor custom.
    """
    if name in CATEGORIES:
        return CATEGORIES[name]
    if name == SPARE.name:
        return SPARE
    if name.startswith(CUSTOM):
        return Category(
            name=name,
            title=name.removeprefix(CUSTOM),
            description="Named by the user of the recorder.",
            colour="#B39DDB",
            training_good=training_good,
            infrastructure_good=True,
        )
    raise ValueError(f"unknown category {name!r}; known: {', '.join(CATEGORIES)}, {CUSTOM}NAME")


TRAINING_GOODPUT = "Time that became lasting progress, divided by elapsed time."
INFRASTRUCTURE_GOODPUT = (
    "Time in which the allocated machines were up and serving the loop, divided by elapsed time."
)
TRAINING_FORMULA = "productive / elapsed"
INFRASTRUCTURE_FORMULA = "(elapsed - stalled - restart - down - unattributed) / elapsed"

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
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
            name="headway_notice_wait_seconds",
            kind="gauge",
            description="Age of the oldest notice of an alert that a receiver has not taken; 0 "
            "where none waits.",
            unit="seconds",
            labels=("receiver",),
        ),
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
            description="Recoveries of the last day whose repeated steps disagree with the "
            "first pass.",
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
            "watchdog, twice the longest of an open phase, or 30 min for its first. 0 while it is "
            "known to recover.",
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
            description="Incidents of the last day in which a timeout struck a rank that "
            "was at work.",
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
            "none after its end.",
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
            description="Attempts after the first that the agent saw, by the layer that "
            "started them.",
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
}
"""Every published metric by its Prometheus name."""
