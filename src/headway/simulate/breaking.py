"""How an attempt ends before the run does: it breaks, or it is told to stop."""

from headway.events import AttemptEnded, PhaseBegan, PhaseEnded, RankExited
from headway.simulate.attempt import Struck
from headway.simulate.evidence import (
    DIES_AT_ONCE,
    KILLED,
    OWN_TIME,
    WATCHDOGS,
    Blow,
    announcement,
    death,
    teardown,
)
from headway.simulate.plan import HOUR, Recovery, Trouble
from headway.simulate.starting import FAILED_START
from headway.simulate.true_incidents import TrueIncident
from headway.simulate.world import World

RESETTING = (48, 79, 95, 119)
"""Xids after which a GPU asks for a reset or more."""


def break_off(world: World, struck: Struck) -> None:
    """End the attempt that something struck."""
    trouble = struck.trouble
    recovery = world.plan.recovery[trouble.layer]
    world.settle(world.now if trouble.symptom == "stop" else struck.time)
    world.saves.saving.clear()
    rank = world.chances.rank(world.ranks) if struck.rank is None else struck.rank
    node = world.machines.node(rank)
    if trouble.symptom == "stop":
        _stop(world, struck, recovery)
    else:
        _break(world, struck, recovery, rank)
    if trouble.label != FAILED_START:
        world.to_fail = recovery.failed_starts
    world.finish_attempt()
    if trouble.symptom == "lost_node":
        world.machines.lose(node, world.now)
    if struck.strike is not None:
        world.saves.forget(struck.strike.forgets)
        if struck.strike.nodes is not None:
            world.machines.resize(struck.strike.nodes)


def _stop(world: World, struck: Struck, recovery: Recovery) -> None:
    """End an attempt that was told to stop: the step, an exit save, the exit."""
    world.tell.rank(struck.time, announcement(struck.trouble))
    newest = world.saves.newest
    unsaved = newest is None or newest.step < world.completed
    if not world.attempt.steps:
        world.spend(struck.time, "restart")
    elif world.plan.exit_save and unsaved:
        length = world.plan.blocking + world.plan.background
        world.tell.ranks(world.now, PhaseBegan(phase="checkpoint_save"))
        world.spend(world.now + length, "checkpoint_save")
        ended = PhaseEnded(phase="checkpoint_save", duration=length)
        world.tell.ranks(world.now, ended)
        world.schedule(length, 0)
    _open_incident(world, struck, struck.time, None)
    world.spend(world.now + world.chances.delay(recovery.teardown), "restart")
    for rank in world.attempt.survivors:
        world.tell.exit(rank, world.now, RankExited(exit_code=0, by="itself"))


def _break(world: World, struck: Struck, recovery: Recovery, rank: int) -> None:
    """End an attempt that broke: silence until it is noticed, then the teardown."""
    trouble, symptom, layer = struck.trouble, struck.trouble.symptom, struck.trouble.layer
    instant = trouble.label == FAILED_START
    blow = Blow(
        trouble=trouble,
        time=struck.time,
        seen=struck.time + (0 if instant else _detection(world, trouble, recovery)),
        rank=rank,
        node=world.machines.node(rank),
        phase=struck.phase,
        step=struck.step,
    )
    world.tell.blow(blow)
    _need(world, struck, blow)
    begun = world.now
    own = symptom in OWN_TIME
    _open_incident(world, struck, struck.time if own else world.now, blow)
    if own:
        world.spend(struck.time, struck.category)
    world.spend(blow.seen, "stalled", watched=symptom in WATCHDOGS)
    wrapped = layer == "in_process"
    if symptom in KILLED or (symptom in DIES_AT_ONCE and not wrapped):
        world.tell.exit(rank, struck.time, death(blow))
    phase = "abort" if wrapped else "stop_workers"
    world.tell.restarting(layer, phase, "began", world.now)
    world.spend(world.now + world.chances.delay(recovery.teardown), "restart")
    world.tell.opened(struck.phase or "step", begun, world.now)
    for other in world.attempt.survivors:
        ending = AttemptEnded(learned_from="function") if wrapped else teardown(layer)
        world.tell.exit(other, world.now, ending)
    world.tell.restarting(layer, phase, "ended", world.now)


def _detection(world: World, trouble: Trouble, recovery: Recovery) -> int:
    own = trouble.detection
    return world.chances.delay(recovery.detection) if own is None else own


def _need(world: World, struck: Struck, blow: Blow) -> None:
    """Note whom what struck needs."""
    trouble, strike = struck.trouble, struck.strike
    if trouble.by_person:
        world.needs.need("hang", struck.time, blow.seen)
    if trouble.xid in RESETTING:
        world.needs.need("broken_gpu", struck.time, struck.time + HOUR)
    if strike is not None and strike.until is not None:
        if strike in world.struck:
            world.needs.need("loop", struck.time, strike.until)
        world.struck.add(strike)


def _open_incident(world: World, struck: Struck, opened: int, blow: Blow | None) -> None:
    cause = struck.trouble.cause
    if not world.attempt.steps and cause in ("exception", "killed"):
        cause = "startup_failure"
    world.incidents.strike(
        TrueIncident(
            labels=[struck.trouble.label],
            cause=cause,
            suspect_rank=None if blow is None else blow.rank,
            suspect_node=None if blow is None else blow.node,
            opened=opened,
            highest=world.account.highest,
        )
    )
