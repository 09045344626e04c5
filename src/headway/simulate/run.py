"""Lets a planned run happen: attempts, steps, saves, troubles and recoveries, one after another.

What happens is told twice, independently: as events to the journal and as time to the account
of the truth. Only rank 0 is told in detail, other ranks when they break, straggle or exit.
"""

import hashlib

import numpy as np

from headway.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointLoadFailed,
    CheckpointScheduled,
    PhaseBegan,
    PhaseEnded,
    RankExited,
    Resumed,
    RunEnded,
)
from headway.simulate.attempt import Attempt, Struck
from headway.simulate.chances import Chances
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
from headway.simulate.journal import Journal
from headway.simulate.machines import Machines
from headway.simulate.plan import Plan, Recovery, Straggler, Trouble
from headway.simulate.saves import Saves, Saving, name
from headway.simulate.telling import Teller, Times
from headway.simulate.true_account import Account, Weight
from headway.simulate.true_incidents import IncidentLog, TrueIncident
from headway.simulate.truth import Simulated, TrueStraggler, Truth

LONGEST_BLOCK = 1000
"""Most steps drawn at once."""
MOST_IN_VAIN = 2000
"""Attempts in a row without a new highest step with which an endless plan is given up."""
FAILED_START = "failed start"


def simulate(plan: Plan, seed: int = 0) -> Simulated:
    """Return the events of a planned run and the truth about it; same seed, same run."""
    return Run(plan, seed).simulate()


class Run:
    """One run while it happens; `now` is the end of what is done, in ns since the run began."""

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan = plan
        self.run = f"{plan.run_name}-{hashlib.sha256(str(seed).encode()).hexdigest()[:8]}"
        self.now = 0
        self._chances = Chances(plan, seed)
        self._journal = Journal(self.run)
        self._machines = Machines(plan)
        self._tell = Teller(plan, self._journal, self._machines)
        self._account = Account()
        self._incidents = IncidentLog()
        self._saves = Saves()
        self._after_step = {s.after_step: s for s in plan.strikes if s.after_step is not None}
        self._held = 0
        self._world = 0
        self._completed = 0
        self._attempts = 0
        self._failed_starts = 0
        self._to_fail = 0
        self._in_vain = 0
        self._reached = 0
        self._rounds = {"scheduler": 0, "launcher": 0, "in_process": 0}
        self._straggled: dict[Straggler, tuple[str, int]] = {}

    def simulate(self) -> Simulated:
        """Let the run happen from its first to its last moment."""
        self._hold(self._machines.gpus)
        self._begin_attempt("scheduler")
        struck = self._start_up(Recovery()) or self._train()
        while struck is not None:
            self._break_off(struck)
            if not self._bring_back(struck.trouble.layer):
                return self._close("stopped")
            struck = self._start_up(self.plan.recovery[struck.trouble.layer]) or self._train()
        for rank in self._attempt.survivors:
            self._tell.exit(rank, self.now, RankExited(exit_code=0, by="itself"))
        self._finish_attempt()
        return self._close("completed" if self._completed == self.plan.target_step else "stopped")

    def _close(self, reason: str) -> Simulated:
        self._tell.agent(self.now, RunEnded(reason=reason))
        surviving = self._account.close()
        truth = Truth(
            elapsed=self.now,
            categories={name: time for name, time in self._account.wall.items() if time},
            gpu_time={name: time for name, time in self._account.gpu.items() if time},
            incidents=self._incidents.close(self._attempt),
            stragglers=tuple(
                TrueStraggler(rank=straggler.rank, node=node, excess=excess)
                for straggler, (node, excess) in self._straggled.items()
            ),
            attempts=self._attempts,
            failed_starts=self._failed_starts,
            executed_steps=self._account.executed,
            surviving_steps=surviving,
            highest_step=self._account.highest,
        )
        if sum(truth.categories.values()) != truth.elapsed:
            raise AssertionError(f"{truth.categories} do not sum to {truth.elapsed}")
        events = self._journal.envelopes()
        return Simulated(run=self.run, end=events[-1].wall, events=events, truth=truth)

    # Time.

    @property
    def _attempt(self) -> Attempt:
        return self._tell.attempt

    @property
    def _weight(self) -> Weight:
        return Weight(self._held, self._world)

    def _between(self, length: int, category: str) -> None:
        """Pass time in which no attempt runs."""
        self._account.add(category, length, self._weight)
        self.now += length

    def _pass(self, until: int, category: str, *, watched: bool = False) -> None:
        """Pass time within the attempt."""
        self._attempt.spend(self.now, until, category, self._weight, watched=watched)
        self.now = until

    def _phase(
        self, phase: str, length: int, category: str, error: str | None = None
    ) -> Struck | None:
        """Spend time in a phase; return the trouble that cut it short."""
        if not length:
            return None
        begin, end = self.now, self.now + length
        self._tell.ranks(begin, PhaseBegan(phase=phase))
        time = self._within(end)
        if time is not None:
            return self._strike(time, category, phase=phase)
        self._pass(end, category)
        self._tell.opened(phase, begin, end)
        self._tell.ranks(end, PhaseEnded(phase=phase, duration=length, error=error))
        return None

    def _within(self, until: int) -> int | None:
        """Return when a random trouble strikes before a time; a planned one waits for steps."""
        due = self._attempt.due
        if due is None or due.strike is not None or due.time >= until:
            return None
        return max(due.time, self.now)

    def _strike(
        self, time: int, category: str, *, phase: str | None = None, step: int | None = None
    ) -> Struck:
        due = self._attempt.due
        if due is None:
            raise AssertionError("nothing was due")
        self._chances.happened(due)
        return Struck(
            time=time,
            trouble=due.trouble,
            category=category,
            rank=due.rank,
            phase=phase,
            step=step,
        )

    # Attempts.

    def _hold(self, gpus: int) -> None:
        self._held = gpus
        self._tell.agent(self.now, self._machines.allocation(gpus))

    def _begin_attempt(self, layer: str) -> None:
        self._attempts += 1
        self._rounds[layer] += 1
        self._world = self._machines.world
        identity = hashlib.sha256(f"{self.run}\n{self._attempts}".encode()).hexdigest()[:16]
        self._tell.attempt = Attempt(identity, layer, self.now)
        self._incidents.began()
        started = AttemptStarted(
            layer=layer,
            world_size=self._world,
            launcher_round=self._rounds["launcher"],
            iteration=self._rounds["in_process"],
        )
        self._tell.began(started, first=self._attempts == 1)
        self._attempt.due = self._chances.next_trouble(self.now, self._machines.count)

    def _finish_attempt(self) -> None:
        self._attempt.book(self._account)
        self._failed_starts += not self._attempt.steps
        self._tell.heartbeats(self.now)

    def _start_up(self, recovery: Recovery) -> Struck | None:
        """Bring an attempt to the start of its first step; return what stopped it."""
        first = self._attempts == 1
        length = self.plan.startup if first else self._chances.delay(recovery.start)
        struck = self._phase("startup", length, "startup" if first else "restart")
        if struck is not None or first:
            return struck
        fails = self._chances.happens(recovery.failed_start_chance)
        if self._to_fail or fails:
            self._to_fail = max(self._to_fail - 1, 0)
            trouble = Trouble(
                label=FAILED_START,
                cause="startup_failure",
                symptom="exception",
                layer=self._attempt.layer,
            )
            return Struck(
                time=self.now, trouble=trouble, category="restart", rank=0, phase="startup"
            )
        return self._restore(recovery)

    def _restore(self, recovery: Recovery) -> Struck | None:
        """Load the newest checkpoint that can be read, or begin at step 0."""
        while (saved := self._saves.newest) is not None:
            length = self._chances.delay(recovery.load)
            category = "restart" if saved.torn else "checkpoint_load"
            error = "torn" if saved.torn else None
            struck = self._phase("checkpoint_load", length, category, error)
            if struck is not None:
                return struck
            identity, step = name(saved.step), saved.step
            if not saved.torn:
                loaded = CheckpointLoaded(checkpoint=identity, step=step, duration=length)
                self._tell.rank(self.now, loaded)
                break
            failed = CheckpointLoadFailed(checkpoint=identity, step=step, reason=error)
            self._tell.rank(self.now, failed)
            self._saves.discard_newest()
        base = 0 if saved is None else saved.step
        resumed = Resumed(completed=base, checkpoint=None if saved is None else name(base))
        self._tell.rank(self.now, resumed)
        self._account.go_back(base)
        self._completed = self._attempt.base = base
        return None

    # Training.

    def _train(self) -> Struck | None:
        """Complete steps and save until something strikes; None when the run is over."""
        save_due = False
        while True:
            strike = self._after_step.pop(self._completed, None)
            if strike is not None:
                return Struck(
                    time=self.now,
                    trouble=self.plan.trouble(strike.trouble),
                    category="rolled_back",
                    rank=strike.rank,
                    step=self._completed + 1,
                )
            struck = self._save() if save_due else None
            if struck is not None or self._is_over():
                return struck
            struck = self._block()
            if struck is not None:
                return struck
            save_due = self._completed % self.plan.checkpoint_interval == 0

    def _is_over(self) -> bool:
        duration = self.plan.duration
        late = duration is not None and self.now >= duration
        return late or self._completed == self.plan.target_step

    def _edge(self) -> int:
        """Return the step with which the next block of steps must end."""
        plan, done = self.plan, self._completed
        edges = [done - done % plan.checkpoint_interval + plan.checkpoint_interval]
        edges += [] if plan.target_step is None else [plan.target_step]
        edges += [step for step in self._after_step if step > done]
        for straggler in plan.stragglers:
            edges += [e for e in (straggler.first_step - 1, straggler.last_step) if e > done]
        return min(*edges, done + LONGEST_BLOCK)

    def _straggler(self) -> Straggler | None:
        """Return who holds the next step up."""
        step = self._completed + 1
        for straggler in self.plan.stragglers:
            if straggler.first_step <= step <= straggler.last_step and straggler.rank < self._world:
                return straggler
        return None

    def _block(self) -> Struck | None:
        """Complete the steps up to the next edge, or up to the next trouble."""
        straggler = self._straggler()
        wait = self.plan.data_wait + (0 if straggler is None else straggler.excess)
        works = self._chances.step_times(self._edge() - self._completed, self._machines.count)
        ends = self.now + np.cumsum(works + wait)
        if self.plan.duration is not None:
            ends = ends[: int(np.searchsorted(ends, self.plan.duration)) + 1]
        struck, due = None, self._attempt.due
        if due is not None:
            time = due.time
            if due.strike is not None:
                time = max(time, self.now if self._attempt.steps else int(ends[0]))
            before = int(np.searchsorted(ends, time, side="left" if due.announced else "right"))
            if before < len(ends):
                # who is told to stop finishes the step
                ends = ends[: before + due.announced]
                struck = self._strike(time, "rolled_back", step=self._completed + len(ends) + 1)
        if len(ends):
            self._complete(works[: len(ends)], ends, straggler)
        self._settle(self.now)
        return struck

    def _complete(self, works: Times, ends: Times, straggler: Straggler | None) -> None:
        """Complete steps whose work and ends are given; arrays of shape (n,), int64, ns."""
        count, first, usual = len(ends), self._completed + 1, self.plan.data_wait
        wait = usual + (0 if straggler is None else straggler.excess)
        begins = ends - works - wait
        for rank in self._tell.reporters:
            late = straggler is not None and straggler.rank == rank
            self._tell.steps(rank, first, begins, ends, wait if late else usual)
        if straggler is not None:
            node, excess = self._straggled.get(straggler, (self._machines.node(straggler.rank), 0))
            self._straggled[straggler] = (node, excess + straggler.excess * count)
        self._tell.opened("step", self.now, int(ends[-1]))
        self._account.add("data_wait", wait * count, self._weight)
        self._account.steps(first + count - 1, count, int(works.sum()), self._weight)
        if not self._attempt.steps:
            self._incidents.trained(int(ends[0]))
        self._attempt.steps += count
        self._completed += count
        self.now = int(ends[-1])

    # Saving.

    def _save(self) -> Struck | None:
        """Hand a checkpoint to the background writer, once it has finished the one before."""
        length = self.plan.blocking + self._saves.busy(self.now)
        due, notice = self._attempt.due, None
        if due is not None and due.announced:
            # who is told to stop finishes the save
            notice = self._within(self.now + length)
            self._attempt.due = None
        struck = self._phase("checkpoint_save", length, "checkpoint_save")
        if struck is not None:
            return struck
        self._schedule(length, self.plan.background)
        self._attempt.due = due
        return None if notice is None else self._strike(notice, "checkpoint_save")

    def _schedule(self, blocking: int, background: int) -> None:
        scheduled = CheckpointScheduled(
            checkpoint=name(self._completed),
            step=self._completed,
            blocking=blocking,
            queue_depth=len(self._saves.saving),
        )
        self._tell.rank(self.now, scheduled)
        torn = self._chances.happens(self.plan.torn_chance)
        durable = self.now + background
        self._saves.saving.append(Saving(self._completed, self.now, durable, torn))
        self._settle(self.now)

    def _settle(self, until: int) -> None:
        """Make durable what the background writer finished by then; see whether it holds."""
        done = self._saves.settle(until)
        for saving in done:
            finalized = CheckpointFinalized(
                checkpoint=name(saving.step),
                step=saving.step,
                background=saving.durable - saving.scheduled,
            )
            self._tell.rank(saving.durable, finalized)
        self._incidents.progressed(self._attempt, self._completed, saved=bool(done))

    # Breaking off and coming back.

    def _break_off(self, struck: Struck) -> None:
        """End the attempt that something struck."""
        trouble = struck.trouble
        recovery = self.plan.recovery[trouble.layer]
        self._settle(self.now if trouble.symptom == "stop" else struck.time)
        self._saves.saving.clear()
        rank = self._chances.rank(self._world) if struck.rank is None else struck.rank
        node = self._machines.node(rank)
        if trouble.symptom == "stop":
            self._stop(struck, recovery)
        else:
            self._break(struck, recovery, rank)
        if trouble.label != FAILED_START:
            self._to_fail = recovery.failed_starts
        self._finish_attempt()
        if trouble.symptom == "lost_node":
            self._machines.lose(node, self.now)

    def _stop(self, struck: Struck, recovery: Recovery) -> None:
        """End an attempt that was told to stop: the step, an exit save, the exit."""
        self._tell.rank(struck.time, announcement(struck.trouble))
        newest = self._saves.newest
        unsaved = newest is None or newest.step < self._completed
        if not self._attempt.steps:
            self._pass(struck.time, "restart")
        elif self.plan.exit_save and unsaved:
            length = self.plan.blocking + self.plan.background
            self._tell.ranks(self.now, PhaseBegan(phase="checkpoint_save"))
            self._pass(self.now + length, "checkpoint_save")
            ended = PhaseEnded(phase="checkpoint_save", duration=length)
            self._tell.ranks(self.now, ended)
            self._schedule(length, 0)
        self._open_incident(struck, struck.time, None)
        self._pass(self.now + self._chances.delay(recovery.teardown), "restart")
        for rank in self._attempt.survivors:
            self._tell.exit(rank, self.now, RankExited(exit_code=0, by="itself"))

    def _break(self, struck: Struck, recovery: Recovery, rank: int) -> None:
        """End an attempt that broke: silence until it is noticed, then the teardown."""
        trouble, symptom, layer = struck.trouble, struck.trouble.symptom, struck.trouble.layer
        instant = trouble.label == FAILED_START
        blow = Blow(
            trouble=trouble,
            time=struck.time,
            seen=struck.time + (0 if instant else self._chances.delay(recovery.detection)),
            rank=rank,
            node=self._machines.node(rank),
            phase=struck.phase,
            step=struck.step,
        )
        self._tell.blow(blow)
        begun = self.now
        own = symptom in OWN_TIME
        self._open_incident(struck, struck.time if own else self.now, blow)
        if own:
            self._pass(struck.time, struck.category)
        self._pass(blow.seen, "stalled", watched=symptom in WATCHDOGS)
        wrapped = layer == "in_process"
        if symptom in KILLED or (symptom in DIES_AT_ONCE and not wrapped):
            self._tell.exit(rank, struck.time, death(blow))
        phase = "abort" if wrapped else "stop_workers"
        self._tell.restarting(layer, phase, "began", self.now)
        self._pass(self.now + self._chances.delay(recovery.teardown), "restart")
        self._tell.opened(struck.phase or "step", begun, self.now)
        for other in self._attempt.survivors:
            ending = AttemptEnded(learned_from="function") if wrapped else teardown(layer)
            self._tell.exit(other, self.now, ending)
        self._tell.restarting(layer, phase, "ended", self.now)

    def _open_incident(self, struck: Struck, opened: int, blow: Blow | None) -> None:
        cause = struck.trouble.cause
        if not self._attempt.steps and cause in ("exception", "killed"):
            cause = "startup_failure"
        self._incidents.strike(
            TrueIncident(
                labels=[struck.trouble.label],
                cause=cause,
                suspect_rank=None if blow is None else blow.rank,
                suspect_node=None if blow is None else blow.node,
                opened=opened,
                highest=self._account.highest,
            )
        )

    def _bring_back(self, layer: str) -> bool:
        """Pass the time up to the next attempt and begin it; False if the run's time is over."""
        recovery, draw = self.plan.recovery[layer], self._chances.delay
        queue, wait = draw(recovery.queue), draw(recovery.wait)
        rendezvous = draw(recovery.rendezvous)
        if queue:
            self._hold(0)
            self._between(queue, "down")
        self._machines.take_back(self.now)
        if self._machines.gpus != self._held:
            self._hold(self._machines.gpus)
        if layer == "in_process":
            self._between(wait + rendezvous, "restart")
        else:
            if wait and layer == "launcher":
                self._tell.restarting(layer, "backoff", "began", self.now)
            self._between(wait, "down")
            if rendezvous:
                self._tell.restarting(layer, "rendezvous", "began", self.now)
            self._between(rendezvous, "restart")
            if self.plan.duration is not None and self.now >= self.plan.duration:
                return False
        self._in_vain = 0 if self._account.highest > self._reached else self._in_vain + 1
        self._reached = self._account.highest
        if self._in_vain > MOST_IN_VAIN and self.plan.duration is None:
            raise ValueError(
                f"{self._in_vain} attempts in a row did not get beyond step {self._reached}: the "
                "plan makes no progress; lower its rates or give it a duration"
            )
        self._begin_attempt(layer)
        return True
