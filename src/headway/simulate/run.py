"""Lets a planned run happen: attempts, what ends them, and the time until the next one."""

from headway.events import RankExited, RunEnded
from headway.simulate.attempt import Struck
from headway.simulate.breaking import break_off
from headway.simulate.plan import Plan, Recovery
from headway.simulate.starting import begin_attempt, start_up
from headway.simulate.training import train
from headway.simulate.truth import Simulated, TrueStraggler, Truth
from headway.simulate.world import World

MOST_IN_VAIN = 2000
"""Attempts in a row without a new highest step with which an endless plan is given up."""


def simulate(plan: Plan, seed: int = 0) -> Simulated:
    """Return the events of a planned run and the truth about it; same seed, same run."""
    world = World(plan, seed)
    world.hold(world.machines.gpus)
    begin_attempt(world, "scheduler")
    struck = start_up(world, Recovery()) or train(world)
    while struck is not None:
        break_off(world, struck)
        away = 0 if struck.strike is None else struck.strike.away
        layer = None if away else world.budgets.take(struck.trouble.layer)
        if layer is None:
            layer = _wait_for_a_person(world, away or plan.absence)
        if not _bring_back(world, layer, struck):
            return _close(world, "stopped", trains=False)
        struck = start_up(world, plan.recovery[layer]) or train(world)
    for rank in world.attempt.survivors:
        world.tell.exit(rank, world.now, RankExited(exit_code=0, by="itself"))
    world.finish_attempt()
    done = world.completed == plan.target_step
    return _close(world, "completed" if done else "stopped", trains=True)


def _wait_for_a_person(world: World, length: int) -> str:
    """Let nobody start the run until a person does, who mends what broke it; return the layer."""
    world.needs.end("last_restart", world.now)
    world.needs.end("few_restarts", world.now)
    world.needs.need("down", world.now, world.now + length)
    world.idle(length, "down")
    world.needs.end("loop", world.now)
    world.chances.mend()
    world.budgets.renew()
    return "scheduler"


def _bring_back(world: World, layer: str, struck: Struck) -> bool:
    """Pass the time up to the next attempt and begin it; False if the run's time is over."""
    recovery, draw = world.plan.recovery[layer], world.chances.delay
    own = None if struck.strike is None else struck.strike.queue
    queue, wait = draw(recovery.queue) if own is None else own, draw(recovery.wait)
    rendezvous = draw(recovery.rendezvous)
    if queue:
        world.hold(0)
        world.idle(queue, "down")
    world.machines.take_back(world.now)
    if world.machines.gpus != world.gpus:
        world.hold(world.machines.gpus)
    if layer == "in_process":
        world.idle(wait + rendezvous, "restart")
    else:
        if wait and layer == "launcher":
            world.tell.restarting(layer, "backoff", "began", world.now)
        world.idle(wait, "down")
        if rendezvous:
            world.tell.restarting(layer, "rendezvous", "began", world.now)
        world.idle(rendezvous, "restart")
        if world.plan.duration is not None and world.now >= world.plan.duration:
            return False
    world.in_vain = 0 if world.account.highest > world.reached else world.in_vain + 1
    world.reached = world.account.highest
    if world.in_vain > MOST_IN_VAIN and world.plan.duration is None:
        raise ValueError(
            f"{world.in_vain} attempts in a row did not get beyond step {world.reached}: the "
            "plan makes no progress; lower its rates or give it a duration"
        )
    begin_attempt(world, layer)
    return True


def _close(world: World, reason: str, *, trains: bool) -> Simulated:
    world.tell.agent(world.now, RunEnded(reason=reason))
    surviving = world.account.close()
    truth = Truth(
        elapsed=world.now,
        categories={name: time for name, time in world.account.wall.items() if time},
        gpu_time={name: time for name, time in world.account.gpu.items() if time},
        incidents=world.incidents.close(world.attempt, trains),
        stragglers=tuple(
            TrueStraggler(rank=straggler.rank, node=node, excess=excess)
            for straggler, (node, excess) in world.straggled.items()
        ),
        attempts=world.attempts,
        failed_starts=world.failed_starts,
        needs=world.needs.close(world.now),
        executed_steps=world.account.executed,
        surviving_steps=surviving,
        highest_step=world.account.highest,
    )
    if sum(truth.categories.values()) != truth.elapsed:
        raise AssertionError(f"{truth.categories} do not sum to {truth.elapsed}")
    events = world.journal.envelopes()
    return Simulated(run=world.run, end=events[-1].wall, events=events, truth=truth)
