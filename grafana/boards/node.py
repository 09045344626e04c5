"""Nodes and their GPUs: what fails, and whose time it costs."""

from headway.grafana.layout import NODE, Board
from headway.grafana.panels import Panel, Row, Target

_N = '{node=~"$node"}'
_NODE_LINK = (("Node in Headway", "${dashboard}/hardware?node=${__field.labels.node}"),)


def _of_agents(metric: str, legend: str, **options: object) -> Panel:
    """Return a panel of a metric that agents publish, by the instance that Prometheus scrapes."""
    return Panel(
        about=metric,
        targets=(Target(query=metric, legend="{{instance}} " + legend),),
        **options,  # type: ignore[arg-type]  # fields of a panel
    )


BOARD = Board(
    uid="headway-node",
    title="Node and GPU",
    description="Nodes that fail, GPUs with faults, memory and links.",
    variables=(NODE,),
    marked=False,
    rows=(
        Row(
            title="Failures",
            panels=(
                Panel(
                    title="Failures in seven days",
                    kind="bargauge",
                    about="headway_node_failures_week",
                    thresholds=((1, "orange"), (2, "red")),
                    lowest=0,
                    links=_NODE_LINK,
                    targets=(
                        Target(
                            query=f"topk(15, headway_node_failures_week{_N})",
                            legend="{{node}}",
                            instant=True,
                        ),
                    ),
                ),
                Panel(
                    title="GPU time that nodes have cost",
                    kind="bargauge",
                    about="headway_node_lost_gpu_seconds",
                    lowest=0,
                    links=_NODE_LINK,
                    targets=(
                        Target(
                            query=f"topk(15, headway_node_lost_gpu_seconds{_N})",
                            legend="{{node}}",
                            instant=True,
                        ),
                    ),
                ),
                Panel(
                    title="Faults on GPUs of live runs",
                    about="headway_live_gpu_faults",
                    thresholds=((1, "red"),),
                    lowest=0,
                    links=_NODE_LINK,
                    targets=(
                        Target(query=f"headway_live_gpu_faults{_N}", legend="{{node}} {{run}}"),
                    ),
                ),
                Panel(
                    title="GPU faults by what they ask for",
                    about="headway_node_gpu_faults_total",
                    width=12,
                    targets=(
                        Target(
                            query="sum by (kind, classification) "
                            "(increase(headway_node_gpu_faults_total[$__rate_interval]))",
                            legend="{{kind}}: {{classification}}",
                        ),
                    ),
                ),
                Panel(
                    title="Ends of ranks that did not say so",
                    about="headway_node_rank_exits_total",
                    width=12,
                    targets=(
                        Target(
                            query="sum by (by) "
                            "(increase(headway_node_rank_exits_total[$__rate_interval]))",
                            legend="{{by}}",
                        ),
                    ),
                ),
            ),
        ),
        Row(
            title="GPUs",
            panels=(
                _of_agents("headway_node_gpu_temperature_celsius", "{{gpu}}", title="Temperature"),
                _of_agents("headway_node_gpu_power_watts", "{{gpu}}", title="Power"),
                _of_agents("headway_node_gpu_memory_used_bytes", "{{gpu}}", title="Memory used"),
                _of_agents(
                    "headway_node_gpu_utilization_ratio",
                    "{{gpu}}",
                    title="Utilization",
                    unit="percentunit",
                    lowest=0,
                    highest=1,
                ),
                _of_agents(
                    "headway_node_memory_available_bytes", "", title="Node memory available"
                ),
                _of_agents(
                    "headway_node_memory_pressure_ratio",
                    "",
                    title="Node memory pressure",
                    unit="percentunit",
                    lowest=0,
                ),
            ),
        ),
    ),
)
