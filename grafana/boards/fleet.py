"""All runs: which one loses time, and to what."""

from headway.grafana.layout import RUN, Board
from headway.grafana.panels import Panel, Row, Target

_RUN_LINK = (("Run in Headway", "${dashboard}/run?run=${__field.labels.run}"),)
_LOST = (
    'sum(headway_category_seconds{run=~"$run", category!="productive"}) by (category)'
    ' / ignoring (category) group_left sum(headway_elapsed_seconds{run=~"$run"})'
)

BOARD = Board(
    uid="headway-fleet",
    title="Fleet",
    description="Which runs lose time, and whether the software or the machines are at fault.",
    variables=(RUN,),
    rows=(
        Row(
            title="Now",
            panels=(
                Panel(
                    title="Training goodput, all runs",
                    kind="stat",
                    width=4,
                    height=5,
                    about="headway_training_goodput_ratio",
                    lowest=0,
                    highest=1,
                    targets=(
                        Target(
                            query='sum(headway_category_seconds{run=~"$run", '
                            'category="productive"}) / sum(headway_elapsed_seconds{run=~"$run"})'
                        ),
                    ),
                ),
                Panel(
                    title="Infrastructure goodput, all runs",
                    kind="stat",
                    width=4,
                    height=5,
                    about="headway_infrastructure_goodput_ratio",
                    lowest=0,
                    highest=1,
                    targets=(
                        Target(
                            query='1 - sum(headway_category_seconds{run=~"$run", '
                            'category=~"stalled|restart|down|unattributed"})'
                            ' / sum(headway_elapsed_seconds{run=~"$run"})'
                        ),
                    ),
                ),
                Panel(
                    title="Live runs",
                    kind="stat",
                    width=4,
                    height=5,
                    description="Runs that have not ended.",
                    targets=(Target(query='count(headway_silence_seconds{run=~"$run"})'),),
                ),
                Panel(
                    title="Open incidents",
                    kind="stat",
                    width=4,
                    height=5,
                    description="Incidents whose run has not held since.",
                    thresholds=((1, "orange"),),
                    targets=(
                        Target(
                            query='count(headway_open_incident_gpu_seconds{run=~"$run"})'
                            " or vector(0)"
                        ),
                    ),
                ),
                Panel(
                    title="GPU time of open incidents",
                    kind="stat",
                    width=4,
                    height=5,
                    about="headway_open_incident_gpu_seconds",
                    targets=(
                        Target(
                            query='sum(headway_open_incident_gpu_seconds{run=~"$run"}) or vector(0)'
                        ),
                    ),
                ),
                Panel(
                    title="Restarts in the last day",
                    kind="stat",
                    width=4,
                    height=5,
                    about="headway_restarts_total",
                    targets=(
                        Target(query='sum(increase(headway_restarts_total{run=~"$run"}[1d]))'),
                    ),
                ),
            ),
        ),
        Row(
            title="Where time goes",
            panels=(
                Panel(
                    title="Time lost, by what became of it",
                    width=12,
                    about="headway_category_seconds",
                    unit="percentunit",
                    stacked=True,
                    lowest=0,
                    targets=(Target(query=_LOST, legend="{{category}}"),),
                ),
                Panel(
                    title="Training goodput by run",
                    width=12,
                    about="headway_training_goodput_ratio",
                    lowest=0,
                    highest=1,
                    links=_RUN_LINK,
                    targets=(
                        Target(
                            query='headway_training_goodput_ratio{run=~"$run", bound="low"}',
                            legend="{{run}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            title="Runs",
            panels=(
                Panel(
                    title="Runs that lead nowhere",
                    kind="bargauge",
                    about="headway_attempts_without_durable_step",
                    thresholds=((2, "orange"), (3, "red")),
                    lowest=0,
                    links=_RUN_LINK,
                    targets=(
                        Target(
                            query='topk(15, headway_attempts_without_durable_step{run=~"$run"})',
                            legend="{{run}}",
                            instant=True,
                        ),
                    ),
                ),
                Panel(
                    title="Age of the newest durable checkpoint",
                    about="headway_checkpoint_age_seconds",
                    links=_RUN_LINK,
                    targets=(
                        Target(
                            query='headway_checkpoint_age_seconds{run=~"$run"}', legend="{{run}}"
                        ),
                    ),
                ),
                Panel(
                    title="Goodput burn of the last hour",
                    about="headway_goodput_burn_ratio",
                    thresholds=((1, "orange"), (5, "red")),
                    links=_RUN_LINK,
                    targets=(
                        Target(
                            query='headway_goodput_burn_ratio{run=~"$run", window="1h"}',
                            legend="{{run}}",
                        ),
                    ),
                ),
                Panel(
                    title="Incidents, the newest first",
                    kind="table",
                    width=24,
                    height=9,
                    description="From the collector's read API, by the data source Infinity.",
                    targets=(
                        Target(
                            query="/api/v1/incidents?limit=100",
                            root="incidents",
                            columns=(
                                ("run", "Run", "string"),
                                ("headline", "What", "string"),
                                ("cause", "Cause", "string"),
                                ("suspect_node", "Suspect", "string"),
                                ("lost_gpu_ns", "GPU time lost (ns)", "number"),
                                ("state", "State", "string"),
                            ),
                        ),
                    ),
                ),
            ),
        ),
    ),
)
