"""Makes up a month of a whole fleet: runs of several teams side by side on shared nodes.

Names, models and figures are made up; the runs come from the simulator, so their ledgers are those
of runs that could have been. Everything follows from a seed and the time at which it is now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from headway.events import Envelope
from headway.simulate.furnishing import Furniture, furnished
from headway.simulate.hardware import hardware
from headway.simulate.placement import Cluster, Placement, place
from headway.simulate.plan import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    Plan,
    Recovery,
    Straggler,
    Strike,
    Trouble,
)
from headway.simulate.run import simulate

CLUSTERS = (
    Cluster(name="frankfurt-1", gpu_type="H200", prefix="fra", share=28),
    Cluster(name="iowa-2", gpu_type="H100", prefix="iow", share=24),
    Cluster(name="\u014dsaka-3", gpu_type="A100", prefix="osa", share=12),
)
MONTH = 28 * DAY
AHEAD = 12 * HOUR
"""How far beyond now the events of a live run are made up, for whoever sends them as time passes"""
_GPUS = 8
_NEVER = 10**9
_PROJECTS = (
    ("pretraining", "llama-70b-pretrain"),
    ("pretraining", "llama-8b-pretrain"),
    ("alignment", "reward-model-13b"),
    ("alignment", "dpo-70b"),
    ("vision", "vit-22b"),
    ("vision", "f\u00f6rderband-gr\u00f6\u00dfenmodell"),
    ("speech", "\u7ffb\u8a33\u30e2\u30c7\u30eb-7b"),
    ("speech", "\u0440\u0435\u0447\u044c-3b"),
    ("research", "moe-16x7b"),
    (
        "research",
        "moe-16x7b-ablation-router-temperature-0.3-warmup-2000-auxiliary-loss-0.01-"
        "tokens-per-expert-capacity-1.25-seed-17",
    ),
    ("research", 'a "quoted" <b>name</b> & more'),
)
_TROUBLES = (
    (6, Trouble(label="CUDA error: an illegal memory access was encountered", cause="exception",
                symptom="exception", layer="in_process")),
    (3, Trouble(label="loss is NaN at a gradient norm of inf", cause="numerical",
                symptom="numerical", layer="in_process")),
    (2, Trouble(label="CUDA out of memory. Tried to allocate 2.50 GiB", cause="gpu_oom",
                symptom="gpu_oom", layer="in_process")),
    (4, Trouble(label="Watchdog caught collective operation timeout: ALLREDUCE",
                cause="collective_timeout", symptom="collective_timeout")),
    (3, Trouble(label="no progress of the rank", cause="hang", symptom="hang")),
    (2, Trouble(label="killed for lack of memory", cause="host_oom", symptom="host_oom")),
    (5, Trouble(label="GPU has fallen off the bus", cause="gpu_fault", symptom="health_check",
                xid=79)),
    (4, Trouble(label="uncorrectable memory error", cause="gpu_fault", symptom="health_check",
                xid=95)),
    (2, Trouble(label="GSP does not answer", cause="gpu_fault", symptom="health_check", xid=119)),
    (2, Trouble(label="the node left the group", cause="node_lost", symptom="lost_node")),
    (2, Trouble(label="link of mlx5_3 is down", cause="network", symptom="network")),
    (1, Trouble(label="read of /data timed out", cause="storage", symptom="storage")),
    (2, Trouble(label="preempted", cause="preemption", symptom="stop", layer="scheduler",
                reason="preemption")),
    (1, Trouble(label="stopped by a person", cause="operator", symptom="stop", layer="scheduler",
                reason="operator")),
)  # fmt: skip
_RECOVERY = {
    "in_process": Recovery(detection=20 * SECOND, teardown=4 * SECOND, start=12 * SECOND),
    "launcher": Recovery(
        detection=90 * SECOND,
        teardown=15 * SECOND,
        wait=20 * SECOND,
        rendezvous=40 * SECOND,
        start=90 * SECOND,
        load=70 * SECOND,
        failed_start_chance=0.12,
    ),
    "scheduler": Recovery(
        teardown=20 * SECOND,
        queue=25 * MINUTE,
        wait=40 * SECOND,
        start=3 * MINUTE,
        load=2 * MINUTE,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRun:
    """One run of the fleet; the events of a live one go on beyond now."""

    run: str
    run_name: str
    live: bool
    events: Sequence[Envelope]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All runs, the oldest first, and what the nodes recorded by themselves."""

    now: int
    runs: Sequence[FleetRun]
    machines: Sequence[Envelope]


def fleet(
    now: int, *, runs: int = 40, live: int = 3, nodes: int = 64, incidents: int = 200, seed: int = 1
) -> Fleet:
    """Return a fleet as it is at a time, UTC ns; about so many incidents within 28 days."""
    random = Random(seed)  # noqa: S311  # figures, not secrets
    placements = place(random, CLUSTERS, now, runs=runs, live=live, nodes=nodes, month=MONTH)
    work = sum(placement.length * len(placement.nodes) for placement in placements)
    found = []
    troubled: list[tuple[int, str, int, int]] = []
    for number, placement in enumerate(placements):
        team, name = _PROJECTS[number % len(_PROJECTS)]
        if number >= len(_PROJECTS) and "seed-17" not in name:
            name = f"{name}-{number // len(_PROJECTS) + 1}"
        share = placement.length * len(placement.nodes) / work
        plan = _plan(random, placement, number, name, max(round(incidents * share), int(runs > 1)))
        made = simulate(plan, seed * 1_000 + number)
        furniture = Furniture(
            team=team, cluster=placement.cluster, start=placement.start, nodes=placement.all_nodes
        )
        events, faults = furnished(made.events, furniture, random)
        troubled += faults
        if not placement.live:
            events = [event for event in events if event.wall < now]
        found.append(FleetRun(run=made.run, run_name=name, live=placement.live, events=events))
    used = sorted({node for placement in placements for node in placement.nodes})
    machines = hardware(random, used, troubled, now - MONTH, now)
    return Fleet(now=now, runs=found, machines=machines)


def _plan(random: Random, placement: Placement, number: int, name: str, incidents: int) -> Plan:
    step = random.choice((2, 3, 4, 6)) * SECOND
    length = placement.length + (AHEAD if placement.live else 0)
    size = len(placement.nodes)
    return Plan(
        run_name=name,
        nodes=size,
        gpus_per_node=_GPUS,
        spare_nodes=0,
        duration=length,
        target_step=2 * length // step if placement.live else None,  # so far not reached
        startup=random.randrange(3, 9) * MINUTE,
        step_time=step,
        jitter=0.06,
        delay_jitter=0.5,
        data_wait=step // random.choice((12, 25, 60)),
        checkpoint_interval=max(60, 1_200 * SECOND // step),
        blocking=random.randrange(2, 12) * SECOND,
        background=random.randrange(40, 400) * SECOND,
        torn_chance=0.02,
        elastic=False,
        heartbeat=MINUTE if placement.live else None,
        steps_per_record=25 if placement.live else 500,
        troubles=tuple(trouble for _, trouble in _TROUBLES),
        strikes=_strikes(random, placement, incidents),
        stragglers=_stragglers(
            random, size * _GPUS, every=number % 5 == 0 and size <= 4 and not placement.live
        ),
        recovery=_RECOVERY,
    )


def _strikes(random: Random, placement: Placement, count: int) -> tuple[Strike, ...]:
    weights = [weight for weight, _ in _TROUBLES]
    low, high = 15 * MINUTE, placement.length - 10 * MINUTE
    times = sorted(random.randrange(low, high) for _ in range(count)) if high > low else []
    found: list[Strike] = []
    for time in times:
        if found and found[-1].at is not None and time - found[-1].at < 35 * MINUTE:
            continue  # each shall be an incident of its own
        trouble = random.choices(_TROUBLES, weights)[0][1]
        found.append(
            Strike(trouble=trouble.label, at=time, rank=_victim(random, placement, trouble))
        )
    return tuple(found)


def _stragglers(random: Random, ranks: int, *, every: bool) -> tuple[Straggler, ...]:
    """Return the rank that is slow for a while; with `every`, all others record what they do, too.

    Ranks that straggle are those that record, and a simulated run's other ranks stay silent.
    """
    slow = random.randrange(1, ranks)
    first = random.randrange(200, 2_000)
    found = [Straggler(rank=slow, first_step=first, last_step=first + 400, excess=SECOND // 2)]
    silent = [rank for rank in range(1, ranks) if rank != slow] if every else []
    found += [
        Straggler(rank=rank, first_step=_NEVER, last_step=_NEVER, excess=0) for rank in silent
    ]
    return tuple(found)


def _victim(random: Random, placement: Placement, trouble: Trouble) -> int:
    """Return a rank; what is the machines' fault strikes the worn nodes far more often."""
    worn = [index for index, node in enumerate(placement.nodes) if node in placement.worn]
    if worn and trouble.xid is not None and random.random() < 0.8:
        return random.choice(worn) * _GPUS + random.choice((3, 3, 3, 6))
    return random.randrange(1, len(placement.nodes) * _GPUS)
