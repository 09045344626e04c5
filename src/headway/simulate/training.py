"""How an attempt trains: blocks of steps, and the saves between them."""

import numpy as np

from headway.simulate.attempt import Struck
from headway.simulate.plan import Straggler
from headway.simulate.telling import Times
from headway.simulate.world import World

LONGEST_BLOCK = 1000
"""Most steps drawn at once."""


def train(world: World) -> Struck | None:
    """Complete steps and save until something strikes; None when the run is over."""
    save_due = False
    while True:
        strike = world.after_step.pop(world.completed, None)
        if strike is not None:
            return Struck(
                time=world.now,
                trouble=world.plan.trouble(strike.trouble),
                category="rolled_back",
                rank=strike.rank,
                step=world.completed + 1,
            )
        struck = _save(world) if save_due else None
        if struck is not None or _is_over(world):
            return struck
        struck = _block(world)
        if struck is not None:
            return struck
        save_due = world.completed % world.plan.checkpoint_interval == 0


def _save(world: World) -> Struck | None:
    """Hand a checkpoint to the background writer, once it has finished the one before."""
    length = world.plan.blocking + world.saves.busy(world.now)
    due, notice = world.attempt.due, None
    if due is not None and due.announced:
        # who is told to stop finishes the save
        notice = world.within(world.now + length)
        world.attempt.due = None
    struck = world.phase("checkpoint_save", length, "checkpoint_save")
    if struck is not None:
        return struck
    world.schedule(length, world.plan.background)
    world.attempt.due = due
    return None if notice is None else world.strike(notice, "checkpoint_save")


def _is_over(world: World) -> bool:
    """Whether the target is reached or the time is up."""
    duration = world.plan.duration
    late = duration is not None and world.now >= duration
    return late or world.completed == world.plan.target_step


def _edge(world: World) -> int:
    """Return the step with which the next block of steps must end."""
    plan, done = world.plan, world.completed
    edges = [done - done % plan.checkpoint_interval + plan.checkpoint_interval]
    edges += [] if plan.target_step is None else [plan.target_step]
    edges += [step for step in world.after_step if step > done]
    for straggler in plan.stragglers:
        edges += [e for e in (straggler.first_step - 1, straggler.last_step) if e > done]
    return min(*edges, done + LONGEST_BLOCK)


def _straggler(world: World) -> Straggler | None:
    """Return who holds the next step up."""
    step = world.completed + 1
    for straggler in world.plan.stragglers:
        if straggler.first_step <= step <= straggler.last_step and straggler.rank < world.ranks:
            return straggler
    return None


def _block(world: World) -> Struck | None:
    """Complete the steps up to the next edge, or up to the next trouble."""
    straggler = _straggler(world)
    wait = world.plan.data_wait + (0 if straggler is None else straggler.excess)
    works = world.chances.step_times(_edge(world) - world.completed, world.machines.count)
    ends = world.now + np.cumsum(works + wait)
    if world.plan.duration is not None:
        ends = ends[: int(np.searchsorted(ends, world.plan.duration)) + 1]
    struck, due = None, world.attempt.due
    if due is not None:
        time = due.time
        if due.strike is not None:
            time = max(time, world.now if world.attempt.steps else int(ends[0]))
        before = int(np.searchsorted(ends, time, side="left" if due.announced else "right"))
        if before < len(ends):
            # who is told to stop finishes the step
            ends = ends[: before + due.announced]
            struck = world.strike(time, "rolled_back", step=world.completed + len(ends) + 1)
    if len(ends):
        _complete(world, works[: len(ends)], ends, straggler)
    world.settle(world.now)
    return struck


def _complete(world: World, works: Times, ends: Times, straggler: Straggler | None) -> None:
    """Complete steps whose work and ends are given; arrays of shape (n,), int64, ns."""
    count, first, usual = len(ends), world.completed + 1, world.plan.data_wait
    wait = usual + (0 if straggler is None else straggler.excess)
    begins = ends - works - wait
    for rank in world.tell.reporters:
        late = straggler is not None and straggler.rank == rank
        world.tell.steps(rank, first, begins, ends, wait if late else usual)
    if straggler is not None:
        node, excess = world.straggled.get(straggler, (world.machines.node(straggler.rank), 0))
        world.straggled[straggler] = (node, excess + straggler.excess * count)
        kind = "starved" if straggler.rank == 0 else "straggler"
        world.needs.need(kind, world.now, int(ends[-1]))
    world.tell.opened("step", world.now, int(ends[-1]))
    world.account.add("data_wait", wait * count, world.weight)
    world.account.steps(first + count - 1, count, int(works.sum()), world.weight)
    if not world.attempt.steps:
        world.incidents.trained(int(ends[0]))
    forgotten = world.saves.forgotten
    if forgotten and first + count > forgotten[-1].step:
        world.needs.end("forgotten", int(ends[-1]))
        forgotten.clear()
    world.attempt.steps += count
    world.completed += count
    world.now = int(ends[-1])
