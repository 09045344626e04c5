"""Draws small plans for the simulator in which everything that can happen does happen somewhere."""

from random import Random

from headway.simulate import Plan, Recovery, Straggler, Strike, Trouble
from headway.simulate.plan import SECOND, SYMPTOMS

CAUSES = {
    "kill": "killed",
    "health_check": "gpu_fault",
    "lost_node": "node_lost",
    "stop": "preemption",
}
"""Causes whose name is not that of the symptom."""
LAYERS = ("in_process", "launcher", "scheduler")


def seconds(random: Random, low: float, high: float) -> int:
    return round(random.uniform(low, high) * SECOND)


def trouble(symptom: str, layer: str, rate: float = 0.0) -> Trouble:
    return Trouble(
        label=f"{symptom} {layer}",
        cause=CAUSES.get(symptom, symptom),
        symptom=symptom,
        layer=layer,
        rate=rate,
        reason="preemption" if symptom == "stop" else None,
    )


def recovery(random: Random) -> Recovery:
    return Recovery(
        detection=random.choice([0, seconds(random, 0.1, 200)]),
        teardown=random.choice([0, seconds(random, 0.1, 9)]),
        queue=random.choice([0, 0, seconds(random, 1, 900)]),
        wait=random.choice([0, seconds(random, 0.1, 60)]),
        rendezvous=random.choice([0, seconds(random, 0.1, 30)]),
        start=random.choice([SECOND, seconds(random, 0.1, 60)]),
        load=random.choice([0, seconds(random, 0.1, 60)]),
        failed_starts=random.choice([0, 0, 1, 2]),
        failed_start_chance=random.choice([0, 0, 0.3]),
    )


def made_up_plan(seed: int) -> Plan:
    """Return a plan of a few hundred steps with a handful of troubles."""
    random = Random(seed)  # noqa: S311
    nodes = random.choice([1, 2, 3])
    steps = random.randint(20, 400)
    recoveries = {layer: recovery(random) for layer in LAYERS}
    # there is no queue within a job
    for layer in LAYERS[:2]:
        kept = recoveries[layer]
        recoveries[layer] = Recovery(
            detection=kept.detection,
            teardown=kept.teardown,
            wait=kept.wait,
            rendezvous=kept.rendezvous,
            start=kept.start,
            load=kept.load,
            failed_starts=kept.failed_starts,
            failed_start_chance=kept.failed_start_chance,
        )
    rate = random.choice([0, 0, 2000])
    troubles = tuple(
        trouble(symptom, layer, rate if random.random() < 0.3 else 0)
        for symptom in SYMPTOMS
        for layer in LAYERS
        if layer != "in_process" or symptom not in ("lost_node", "stop")
    )
    strikes = tuple(
        Strike(
            trouble=random.choice(troubles).label,
            **random.choice(
                [
                    {"at": seconds(random, 0, steps * 3)},
                    {"after_step": random.randint(1, steps)},
                ]
            ),
        )
        for _ in range(random.randint(0, 5))
    )
    first = random.randint(1, steps)
    return Plan(
        nodes=nodes,
        gpus_per_node=random.choice([2, 4]),
        spare_nodes=random.choice([0, 0, 1]),
        target_step=steps,
        duration=random.choice([None, None, seconds(random, 1, steps * 4)]),
        startup=random.choice([0, seconds(random, 0.1, 90)]),
        step_time=seconds(random, 0.3, 4),
        jitter=random.choice([0, 0.1]),
        delay_jitter=random.choice([0, 0.5]),
        data_wait=random.choice([0, 0, seconds(random, 0.01, 0.9)]),
        checkpoint_interval=random.choice([7, 20, 50, 1000]),
        blocking=random.choice([0, seconds(random, 0.1, 20)]),
        background=random.choice([0, seconds(random, 0.1, 60)]),
        torn_chance=random.choice([0, 0, 0.3]),
        exit_save=random.choice([True, False]),
        elastic=random.choice([True, False]),
        repair=seconds(random, 1, 2000),
        steps_per_record=random.choice([None, 1, 10, 100]),
        heartbeat=random.choice([None, None, 10 * SECOND]),
        troubles=troubles,
        strikes=strikes,
        stragglers=random.choice(
            [
                (),
                (
                    Straggler(
                        rank=1,
                        first_step=first,
                        last_step=first + random.randint(0, 60),
                        excess=seconds(random, 0.1, 2),
                    ),
                ),
            ]
        ),
        recovery=recoveries,
    )
