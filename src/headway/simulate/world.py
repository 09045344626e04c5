"""A simulated run at one moment: its clock, its machines, its newest attempt and what is saved.

What happens is told twice, independently: as events to the journal and as time to the account
of the truth.
"""

import hashlib

from headway.events import (
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointScheduled,
    PhaseBegan,
    PhaseEnded,
)
from headway.simulate.attempt import Attempt, Struck
from headway.simulate.budgets import Budgets
from headway.simulate.chances import Chances
from headway.simulate.journal import Journal
from headway.simulate.machines import Machines
from headway.simulate.needs import NeedLog
from headway.simulate.plan import DAY, Plan, Straggler, Strike
from headway.simulate.saves import Saves, Saving, name
from headway.simulate.telling import Teller
from headway.simulate.true_account import Account, Weight
from headway.simulate.true_incidents import IncidentLog

NEAR = 0.7
"""Share of a timeout from which a phase is too near to it."""


class World:
    """Everything about one run; `now` is the end of what is done, in ns since the run began.

    `gpus` are held, `ranks` is the world size, `completed` the steps in the newest state.
    """

    def __init__(self, plan: Plan, seed: int) -> None:
        self.plan = plan
        self.run = f"{plan.run_name}-{hashlib.sha256(str(seed).encode()).hexdigest()[:8]}"
        self.now = 0
        self.chances = Chances(plan, seed)
        self.journal = Journal(self.run)
        self.machines = Machines(plan)
        self.tell = Teller(plan, self.journal, self.machines)
        self.account = Account()
        self.incidents = IncidentLog()
        self.saves = Saves()
        self.budgets = Budgets(plan.limits)
        self.needs = NeedLog()
        self.struck: set[Strike] = set()
        self.after_step = {s.after_step: s for s in plan.strikes if s.after_step is not None}
        self.gpus = 0
        self.ranks = 0
        self.completed = 0
        self.attempts = 0
        self.failed_starts = 0
        self.to_fail = 0
        self.in_vain = 0
        self.reached = 0
        self.rounds = {"scheduler": 0, "launcher": 0, "in_process": 0}
        self.straggled: dict[Straggler, tuple[str, int]] = {}

    @property
    def attempt(self) -> Attempt:
        """The newest attempt."""
        return self.tell.attempt

    @property
    def weight(self) -> Weight:
        """GPUs held and used now."""
        return Weight(self.gpus, self.ranks)

    def idle(self, length: int, category: str) -> None:
        """Pass time in which no attempt runs."""
        self.account.add(category, length, self.weight)
        self.now += length

    def spend(self, until: int, category: str, *, watched: bool = False) -> None:
        """Pass time within the attempt."""
        self.attempt.spend(self.now, until, category, self.weight, watched=watched)
        self.now = until

    def phase(
        self, phase: str, length: int, category: str, error: str | None = None
    ) -> Struck | None:
        """Spend time in a phase; return the trouble that cut it short."""
        if not length:
            return None
        begin, end = self.now, self.now + length
        self.tell.ranks(begin, PhaseBegan(phase=phase))
        time = self.within(end)
        if time is not None:
            return self.strike(time, category, phase=phase)
        self.spend(end, category)
        self.tell.opened(phase, begin, end)
        self.tell.ranks(end, PhaseEnded(phase=phase, duration=length, error=error))
        if phase != "startup" and length > NEAR * min(
            self.plan.timeouts.values(), default=length * 2
        ):
            self.needs.need("near_timeout", end, end + DAY)
        return None

    def within(self, until: int) -> int | None:
        """Return when a random trouble strikes before a time; a planned one waits for steps."""
        due = self.attempt.due
        if due is None or due.time >= until:
            return None
        if due.strike is not None and not due.strike.in_startup:
            return None
        return max(due.time, self.now)

    def strike(
        self, time: int, category: str, *, phase: str | None = None, step: int | None = None
    ) -> Struck:
        """Let what is due strike the phase or step that was of a category until then."""
        due = self.attempt.due
        if due is None:
            raise AssertionError("nothing was due")
        self.chances.happened(due)
        return Struck(
            time=time,
            trouble=due.trouble,
            category=category,
            rank=due.rank,
            phase=phase,
            step=step,
            strike=due.strike,
        )

    def hold(self, gpus: int) -> None:
        """Hold this many GPUs from now on."""
        self.gpus = gpus
        self.tell.agent(self.now, self.machines.allocation(gpus))

    def finish_attempt(self) -> None:
        """Book the time of the attempt that is over."""
        self.attempt.book(self.account)
        self.failed_starts += not self.attempt.steps
        self.tell.heartbeats(self.now)

    def schedule(self, blocking: int, background: int) -> None:
        """Hand the newest state to the background writer."""
        scheduled = CheckpointScheduled(
            checkpoint=name(self.completed),
            step=self.completed,
            blocking=blocking,
            queue_depth=len(self.saves.saving),
        )
        self.tell.rank(self.now, scheduled)
        torn = self.chances.happens(self.plan.torn_chance)
        for writing in self.plan.writings:
            if writing.begin <= self.now < writing.end:
                kind = "saves_fail" if writing.background is None else "writes_slow"
                self.needs.need(kind, self.now, writing.end)
                if writing.background is None:
                    failed = CheckpointFailed(
                        checkpoint=name(self.completed), step=self.completed, reason="no space"
                    )
                    self.tell.rank(self.now + background, failed)
                    return
                background = writing.background
        durable = self.now + background
        self.saves.saving.append(Saving(self.completed, self.now, durable, torn))
        self.settle(self.now)

    def settle(self, until: int) -> None:
        """Make durable what the background writer finished by then; see whether it holds."""
        done = self.saves.settle(until)
        for saving in done:
            finalized = CheckpointFinalized(
                checkpoint=name(saving.step),
                step=saving.step,
                background=saving.durable - saving.scheduled,
            )
            self.tell.rank(saving.durable, finalized)
        self.incidents.progressed(self.attempt, self.completed, saved=bool(done))
