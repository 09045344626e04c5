"""Rules about GPUs, nodes and ranks that hold a run back."""

from headway.alerts.rule import Rule

RULES = (
    Rule(
        name="GpuFault",
        metric="headway_live_gpu_faults",
        comparison=">",
        threshold=0,
        form="count",
        labels=("run", "node"),
        severity="ticket",
        area="infrastructure",
        summary="{value} GPU faults on node {node} of run {run} ask for a reset or worse",
        meaning="The GPU needs service before it can be relied on. A run that trains again wakes "
        "nobody; of one that does not PersistentFault, RestartLoop or NotRecovered tell, with the "
        "node beside it.",
        change="Leave it at 0, and say by a policy file which faults your site takes lightly.",
        look=(
            "`headway nodes NODE`: the GPU, its faults with their meaning, and how often before.",
        ),
        act=(
            "Cordon the node; reset, reboot or replace as the table of GPU faults says.",
            "Let the run restart without it.",
        ),
        inhibits=(
            "TrainingGoodputLow",
            "InfrastructureGoodputLow",
            "GoodputBurnSlow",
        ),
    ),
    Rule(
        name="RepeatOffenderNode",
        metric="headway_node_failures_week",
        comparison=">=",
        threshold=2,
        form="count",
        labels=("node",),
        severity="ticket",
        area="infrastructure",
        summary="node {node} failed {value} times in seven days",
        meaning="Few nodes cause most failures; one that failed twice fails again.",
        change="Raise it on a fleet where two failures in a week are what chance gives: "
        "`headway nodes` prints the rate with its interval.",
        look=("`headway nodes NODE`: what failed, whose time it cost.",),
        act=("Take the node out and test it before it serves again.",),
        keep=3600,
    ),
    Rule(
        name="Straggler",
        metric="headway_straggler_excess_ratio",
        comparison=">",
        threshold=0.1,
        form="share",
        labels=("run",),
        severity="ticket",
        area="infrastructure",
        summary="a rank of run {run} is {value} slower than its peers",
        meaning="All ranks wait for the slowest in every step.",
        change="Raise it where parallelism makes some ranks do more by design.",
        look=("`headway report RUN`: the ranks, and whether steps or data are slow.",),
        act=("Look at clocks, temperature and links of that GPU; swap the node if it stays.",),
        hold=1800,
    ),
)
"""In the order in which they matter."""
