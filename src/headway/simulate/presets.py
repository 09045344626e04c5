"""Runs that somebody published figures about, as plans.

Sources: the published NVRx benchmark (schedule and recovery modes), Llama 3 (arXiv 2407.21783,
table of interruptions) and Meta's research clusters (arXiv 2410.21680, rate of failures).
"""

from collections.abc import Callable, Mapping
from random import Random
from typing import NamedTuple

from headway.simulate.plan import DAY, HOUR, MINUTE, SECOND, Plan, Recovery, Strike, Trouble

BENCHMARK_SCHEDULE = ((62, 4), (239, 12), (574, 12), (1320, 2), (1529, 1))
"""Step after which the benchmark's fault strikes, and the rank."""
BENCHMARK_MODES = {"in-process": "in_process", "launcher": "launcher", "baseline": "scheduler"}
"""The benchmark's recovery modes and the layer that brings training back in each."""


def benchmark(mode: str, attempts_per_fault: int, attempt: int, detection: int = 0) -> Plan:
    """Return the benchmark's run of 2000 steps: 0.365 s a step, a save of 275 s every 500 steps.

    Each fault takes `attempts_per_fault` attempts of `attempt` ns, the last of which trains; the
    first start and loads take no time, so that the time is steps, saves and these attempts.
    """
    layer = BENCHMARK_MODES[mode]
    trouble = Trouble(label="fault", cause="exception", symptom="exception", layer=layer)
    # a launcher's attempt is stopping the workers, the rendezvous and the start of processes; a
    # container's is mostly back-off; a wrapper's is the function alone
    shares = {"in_process": (0, 0, 0), "launcher": (2, 0, 5), "scheduler": (5, 200, 0)}[layer]
    teardown, wait, rendezvous = (share * SECOND for share in shares)
    return Plan(
        run_name=f"benchmark-{mode}",
        nodes=2,
        gpus_per_node=8,
        target_step=2000,
        step_time=365 * SECOND // 1000,
        checkpoint_interval=500,
        blocking=275 * SECOND,
        troubles=(trouble,),
        strikes=tuple(
            Strike(trouble="fault", after_step=step, rank=rank) for step, rank in BENCHMARK_SCHEDULE
        ),
        recovery={
            layer: Recovery(
                detection=detection,
                teardown=teardown,
                wait=wait,
                rendezvous=rendezvous,
                start=attempt - teardown - wait - rendezvous,
                failed_starts=attempts_per_fault - 1,
            )
        },
    )


class Row(NamedTuple):
    """One row of the published table: its words, its count, and how the trouble shows itself."""

    label: str
    interruptions: int
    cause: str
    symptom: str
    xid: int | None = None


LLAMA_TABLE = (
    Row("Faulty GPU", 148, "gpu_fault", "health_check", 79),
    Row("GPU HBM3 memory", 72, "gpu_fault", "health_check", 95),
    Row("Software bug", 54, "exception", "exception"),
    Row("Network switch/cable", 35, "network", "network"),
    Row("Host maintenance", 32, "node_lost", "lost_node"),
    Row("GPU SRAM memory", 19, "gpu_fault", "health_check", 48),
    Row("GPU system processor", 17, "gpu_fault", "health_check", 119),
    Row("NIC", 7, "network", "network"),
    Row("NCCL watchdog timeouts", 7, "collective_timeout", "collective_timeout"),
    Row("Silent data corruption", 6, "gpu_fault", "health_check"),
    Row("GPU thermal interface and sensor", 6, "gpu_fault", "health_check"),
    Row("SSD", 3, "storage", "storage"),
    Row("Power supply", 3, "node_lost", "lost_node"),
    Row("Server chassis", 2, "node_lost", "lost_node"),
    Row("IO expansion board", 2, "node_lost", "lost_node"),
    Row("Dependency", 2, "exception", "exception"),
    Row("CPU", 2, "node_lost", "lost_node"),
    Row("System memory", 2, "node_lost", "lost_node"),
)
"""419 unexpected interruptions. The table names parts, Headway classes of evidence: what a health
check finds on a GPU is `gpu_fault`; a host that goes away, for maintenance without notice or with
its power supply, chassis, board, CPU or memory, is `node_lost`; links are `network`."""
PLANNED = 47
"""Interruptions that people had announced."""
_PLANNED_LABEL = "Planned"


def fleet_54_days(seed: int) -> Plan:
    """Return 54 days of 16,384 GPUs with the published interruptions at random times.

    Step, checkpoint and recovery times are not published; these are plausible. Interruptions keep
    half an hour apart, so that each is an incident of its own, as the table counts them.
    """
    labels = [row.label for row in LLAMA_TABLE for _ in range(row.interruptions)]
    labels += [_PLANNED_LABEL] * PLANNED
    random = Random(seed)  # noqa: S311
    random.shuffle(labels)
    times = _apart(random, len(labels), HOUR, 54 * DAY - 2 * HOUR, 30 * MINUTE)
    troubles = tuple(
        Trouble(label=row.label, cause=row.cause, symptom=row.symptom, xid=row.xid)
        for row in LLAMA_TABLE
    )
    planned = Trouble(label=_PLANNED_LABEL, cause="operator", symptom="stop", reason="operator")
    return Plan(
        run_name="fleet-54-days",
        nodes=2048,
        gpus_per_node=8,
        duration=54 * DAY,
        startup=10 * MINUTE,
        step_time=8 * SECOND,
        jitter=0.02,
        delay_jitter=0.3,
        checkpoint_interval=60,
        blocking=2 * SECOND,
        background=2 * MINUTE,
        troubles=(*troubles, planned),
        strikes=tuple(
            Strike(trouble=label, at=time) for label, time in zip(labels, times, strict=True)
        ),
        recovery={
            "launcher": Recovery(
                detection=60 * SECOND,
                teardown=20 * SECOND,
                wait=30 * SECOND,
                rendezvous=60 * SECOND,
                start=2 * MINUTE,
                load=60 * SECOND,
            )
        },
    )


def _apart(random: Random, count: int, low: int, high: int, distance: int) -> list[int]:
    """Return times between two bounds, uniform but for keeping a distance."""
    free = high - low - distance * (count - 1)
    drawn = sorted(random.randrange(free) for _ in range(count))
    return [low + time + number * distance for number, time in enumerate(drawn)]


RSC1_RATE = 6.50
"""Failures per 1000 node-days of Meta's larger research cluster."""


def research_cluster(nodes: int, duration: int = 100 * DAY) -> Plan:
    """Return a run as Meta's estimate sees it: 5 min to restart, a free checkpoint every hour."""
    trouble = Trouble(label="failure", cause="killed", symptom="kill", rate=RSC1_RATE)
    return Plan(
        run_name=f"research-{nodes * 8}-gpus",
        nodes=nodes,
        duration=duration,
        step_time=5 * MINUTE,
        checkpoint_interval=12,
        troubles=(trouble,),
        recovery={"launcher": Recovery(wait=5 * MINUTE)},
    )


def stormy(seed: int) -> Plan:
    """Return a day on 4 nodes on which nearly everything happens; a small run to look at."""
    del seed
    kinds = (
        Trouble(label="exception", cause="exception", symptom="exception", layer="in_process"),
        Trouble(label="numerical", cause="numerical", symptom="numerical", layer="in_process"),
        Trouble(label="hang", cause="hang", symptom="hang"),
        Trouble(label="GPU fault", cause="gpu_fault", symptom="health_check", xid=79),
        Trouble(label="lost node", cause="node_lost", symptom="lost_node"),
        Trouble(
            label="preemption",
            cause="preemption",
            symptom="stop",
            layer="scheduler",
            reason="preemption",
        ),
    )
    hours = (2, 5, 8, 12, 16, 20)
    return Plan(
        run_name="stormy",
        nodes=4,
        duration=DAY,
        startup=3 * MINUTE,
        step_time=2 * SECOND,
        jitter=0.05,
        delay_jitter=0.3,
        data_wait=SECOND // 20,
        checkpoint_interval=300,
        blocking=3 * SECOND,
        background=90 * SECOND,
        torn_chance=0.1,
        elastic=True,
        repair=6 * HOUR,
        troubles=kinds,
        strikes=tuple(
            Strike(trouble=kind.label, at=hour * HOUR + 1_234_567_890)
            for kind, hour in zip(kinds, hours, strict=True)
        ),
        recovery={
            "in_process": Recovery(detection=10 * SECOND, teardown=2 * SECOND, start=8 * SECOND),
            "launcher": Recovery(
                detection=5 * MINUTE,
                teardown=10 * SECOND,
                wait=10 * SECOND,
                rendezvous=15 * SECOND,
                start=40 * SECOND,
                load=20 * SECOND,
                failed_starts=1,
            ),
            "scheduler": Recovery(
                teardown=10 * SECOND,
                queue=40 * MINUTE,
                wait=20 * SECOND,
                start=90 * SECOND,
                load=20 * SECOND,
            ),
        },
    )


PRESETS: Mapping[str, Callable[[int], Plan]] = {
    "stormy": stormy,
    "benchmark-in-process": lambda seed: benchmark("in-process", 6, 10 * SECOND),
    "benchmark-launcher": lambda seed: benchmark("launcher", 4, 17 * SECOND),
    "benchmark-baseline": lambda seed: benchmark("baseline", 3, 270 * SECOND),
    "fleet-54-days": fleet_54_days,
    "research-2048-gpus": lambda seed: research_cluster(256),
    "research-16384-gpus": lambda seed: research_cluster(2048),
}
"""Every preset by the name it has on the command line."""
