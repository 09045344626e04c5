"""What fires, since when, and how near the other conditions are."""

from headway.grafana.layout import RUN, Board
from headway.grafana.panels import Panel, Row, Target

_R = '{run=~"$run"}'


def _near(metric: str, title: str, legend: str, limit: float, unit: str = "none") -> Panel:
    return Panel(
        title=title,
        about=metric,
        unit=unit,
        lowest=0,
        thresholds=((limit, "red"),),
        targets=(Target(query=f"{metric}{_R}", legend=legend),),
    )


BOARD = Board(
    uid="headway-alerts",
    title="Alerts",
    description="Alerts of Headway's rules in this Prometheus, and the gauges that they compare.",
    variables=(RUN,),
    rows=(
        Row(
            title="Now",
            panels=(
                Panel(
                    title="Firing",
                    kind="table",
                    width=16,
                    height=9,
                    description="Alerts of the exported rules that fire now.",
                    links=(("Alerts in Headway", "${dashboard}/alerts"),),
                    targets=(
                        Target(
                            query='ALERTS{alertstate="firing", subject!=""}',
                            legend="Firing",
                            instant=True,
                        ),
                    ),
                ),
                Panel(
                    title="Alerting works",
                    kind="stat",
                    width=8,
                    height=9,
                    about="headway_collector_up",
                    targets=(Target(query="max(headway_collector_up)"),),
                ),
            ),
        ),
        Row(
            title="How near the conditions are",
            panels=(
                _near("headway_progress_silence_ratio", "Silence over its limit", "{{run}}", 1),
                _near("headway_recovery_time_ratio", "Recovery over its usual", "{{run}}", 2),
                _near("headway_repeated_failures", "Failures that repeat", "{{run}}", 2),
                _near(
                    "headway_checkpoint_interval_ratio", "Checkpoint over interval", "{{run}}", 2
                ),
                _near(
                    "headway_window_goodput_gap_ratio",
                    "Serving without progress",
                    "{{run}} {{window}}",
                    0.3,
                    "percentunit",
                ),
                _near(
                    "headway_window_infrastructure_loss_ratio",
                    "Machines that do not serve",
                    "{{run}} {{window}}",
                    0.2,
                    "percentunit",
                ),
                _near(
                    "headway_straggler_excess_ratio", "Slowest rank", "{{run}}", 0.1, "percentunit"
                ),
                _near("headway_invalid_recoveries", "Recoveries not valid", "{{run}}", 1),
                _near(
                    "headway_steps_below_newest_checkpoint", "Below the checkpoint", "{{run}}", 1
                ),
            ),
        ),
    ),
)
