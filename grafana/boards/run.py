"""One run: its ledger, its restarts, its checkpoints, its ranks."""

from headway.grafana.layout import RUN, Board
from headway.grafana.panels import Panel, Row, Target

_R = '{run=~"$run"}'


def _lines(metric: str, legend: str, **options: object) -> Panel:
    return Panel(
        about=metric,
        targets=(Target(query=f"{metric}{_R}", legend=legend),),
        **options,  # type: ignore[arg-type]  # fields of a panel
    )


BOARD = Board(
    uid="headway-run",
    title="Run",
    description="One run: what its time became, why it restarted, how fresh its checkpoints are.",
    variables=(RUN,),
    rows=(
        Row(
            title="Ledger",
            panels=(
                Panel(
                    title="What the run's time became",
                    width=12,
                    about="headway_category_seconds",
                    stacked=True,
                    lowest=0,
                    targets=(
                        Target(
                            query=f"sum by (category) (headway_category_seconds{_R})",
                            legend="{{category}}",
                        ),
                    ),
                ),
                Panel(
                    title="Both goodputs",
                    width=12,
                    description="Training goodput and infrastructure goodput since the run's "
                    "begin; each is a range while time is unattributed.",
                    unit="percentunit",
                    lowest=0,
                    highest=1,
                    targets=(
                        Target(
                            query=f"headway_training_goodput_ratio{_R}",
                            legend="training {{bound}}",
                        ),
                        Target(
                            query=f"headway_infrastructure_goodput_ratio{_R}",
                            legend="infrastructure {{bound}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            title="Progress",
            panels=(
                _lines("headway_highest_step", "{{run}}", title="Highest step"),
                Panel(
                    title="Steps per second",
                    about="headway_steps_executed_total",
                    unit="ops",
                    targets=(
                        Target(
                            query=f"rate(headway_steps_executed_total{_R}[$__rate_interval])",
                            legend="{{run}}",
                        ),
                    ),
                ),
                Panel(
                    title="Steps rolled back",
                    about="headway_rolled_back_steps_total",
                    targets=(
                        Target(
                            query=f"increase(headway_rolled_back_steps_total{_R}"
                            "[$__rate_interval])",
                            legend="{{run}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            title="Restarts",
            panels=(
                Panel(
                    title="Restarts by layer",
                    about="headway_restarts_total",
                    targets=(
                        Target(query=f"headway_restarts_total{_R}", legend="{{run}} {{layer}}"),
                    ),
                ),
                _lines(
                    "headway_attempts_without_durable_step",
                    "{{run}}",
                    title="Attempts without a durable step",
                    thresholds=((3, "red"),),
                    lowest=0,
                ),
                _lines("headway_restarts_left", "{{run}} {{layer}}", title="Restarts left"),
            ),
        ),
        Row(
            title="Checkpoints",
            panels=(
                _lines("headway_checkpoint_age_seconds", "{{run}}", title="Freshness"),
                _lines("headway_steps_at_risk", "{{run}}", title="Steps at risk"),
                _lines(
                    "headway_checkpoint_write_ratio",
                    "{{run}}",
                    title="Background write over interval",
                    unit="percentunit",
                    thresholds=((0.8, "red"),),
                    lowest=0,
                ),
                _lines("headway_checkpoint_queue_depth", "{{run}}", title="Checkpoint queue"),
                _lines(
                    "headway_memory_pressure_ratio",
                    "{{run}}",
                    title="Memory pressure during saves",
                    unit="percentunit",
                ),
                _lines(
                    "headway_phase_timeout_ratio",
                    "{{phase}} / {{timeout}}",
                    title="Longest phases over their timeouts",
                    unit="percentunit",
                    thresholds=((0.7, "orange"), (1, "red")),
                    lowest=0,
                ),
            ),
        ),
        Row(
            title="Ranks, from the nodes' agents",
            panels=(
                _lines(
                    "headway_node_rank_step_seconds", "rank {{rank}}", title="Slowest ranks' step"
                ),
                _lines(
                    "headway_node_rank_data_wait_seconds",
                    "rank {{rank}}",
                    title="Longest waits for data",
                ),
                _lines(
                    "headway_node_rank_open_phase_seconds",
                    "rank {{rank}} {{phase}}",
                    title="Longest open phases",
                ),
            ),
        ),
    ),
)
