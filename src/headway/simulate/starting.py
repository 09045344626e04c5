"""How an attempt begins: its processes, its start-up and the checkpoint from which it trains."""

import hashlib

from headway.events import AttemptStarted, CheckpointLoaded, CheckpointLoadFailed, Resumed
from headway.simulate.attempt import Attempt, Struck
from headway.simulate.plan import DAY, HOUR, MONTH, Recovery, Trouble
from headway.simulate.saves import name
from headway.simulate.world import World

FAILED_START = "failed start"
"""Label of the trouble that is a start which failed by itself."""


def begin_attempt(world: World, layer: str) -> None:
    """Start the processes of a group, or its function in the processes that live on."""
    world.attempts += 1
    world.rounds[layer] += 1
    world.ranks = world.machines.world
    identity = hashlib.sha256(f"{world.run}\n{world.attempts}".encode()).hexdigest()[:16]
    world.tell.attempt = Attempt(identity, layer, world.now)
    world.incidents.began()
    started = AttemptStarted(
        layer=layer,
        world_size=world.ranks,
        launcher_round=world.rounds["launcher"],
        iteration=world.rounds["in_process"],
    )
    world.tell.began(started, first=world.attempts == 1)
    for budget in world.budgets.told():
        world.tell.agent(world.now, budget)
    if world.budgets.last == 0:
        world.needs.need("last_restart", world.now, world.now + MONTH)
    if world.budgets.last in (0, 1):
        world.needs.need("few_restarts", world.now, world.now + MONTH)
    world.attempt.due = world.chances.next_trouble(world.now, world.machines.count)


def start_up(world: World, recovery: Recovery) -> Struck | None:
    """Bring an attempt to the start of its first step; return what stopped it."""
    first = world.attempts == 1
    length = world.plan.startup if first else world.chances.delay(recovery.start)
    struck = world.phase("startup", length, "startup" if first else "restart")
    if struck is not None or first:
        return struck
    fails = world.chances.happens(recovery.failed_start_chance)
    if world.to_fail or fails:
        world.to_fail = max(world.to_fail - 1, 0)
        trouble = Trouble(
            label=FAILED_START,
            cause="startup_failure",
            symptom="exception",
            layer=world.attempt.layer,
        )
        return Struck(time=world.now, trouble=trouble, category="restart", rank=0, phase="startup")
    return _restore(world, recovery)


def _restore(world: World, recovery: Recovery) -> Struck | None:
    """Load the newest checkpoint that can be read, or begin at step 0."""
    while (saved := world.saves.newest) is not None:
        length = world.chances.delay(recovery.load)
        category = "restart" if saved.torn else "checkpoint_load"
        error = "torn" if saved.torn else None
        struck = world.phase("checkpoint_load", length, category, error)
        if struck is not None:
            return struck
        identity, step = name(saved.step), saved.step
        if not saved.torn:
            loaded = CheckpointLoaded(checkpoint=identity, step=step, duration=length)
            world.tell.rank(world.now, loaded)
            break
        failed = CheckpointLoadFailed(checkpoint=identity, step=step, reason=error)
        world.tell.rank(world.now, failed)
        world.saves.discard_newest()
        world.needs.need("unreadable", world.now, world.now + HOUR)
    base = 0 if saved is None else saved.step
    resumed = Resumed(completed=base, checkpoint=None if saved is None else name(base))
    world.tell.rank(world.now, resumed)
    world.account.go_back(base)
    world.completed = world.attempt.base = base
    if world.saves.forgotten:
        world.needs.need("forgotten", world.now, world.now + DAY)
    return None
