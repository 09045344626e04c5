"""Who records what in a simulated run: the node's agent, rank 0 and the ranks that straggle."""

import numpy as np
import numpy.typing as npt

from headway.events import (
    AttemptStarted,
    Event,
    Heartbeat,
    RankExited,
    RestartPhase,
    RunConfigured,
    RunStarted,
    Steps,
    StepsSummary,
)
from headway.simulate.attempt import Attempt
from headway.simulate.evidence import SILENT, Blow, signs
from headway.simulate.journal import Journal
from headway.simulate.machines import Machines
from headway.simulate.plan import Plan
from headway.step_blocks import VERSION, Step, pack

LONGEST_RECORD = 1000
"""Most steps in one record."""

Times = npt.NDArray[np.int64]


class Teller:
    """Puts events into the journal under the name of the process that would record them."""

    def __init__(self, plan: Plan, journal: Journal, machines: Machines) -> None:
        self._plan = plan
        self._journal = journal
        self._machines = machines
        self._late = sorted({straggler.rank for straggler in plan.stragglers} - {0})
        self.attempt = Attempt("", "", 0)

    @property
    def reporters(self) -> list[int]:
        """Ranks that record everything."""
        return [0, *(rank for rank in self._late if rank < self._machines.world)]

    def agent(self, time: int, event: Event, rank: int | None = None) -> None:
        """Let the agent tell something, about a rank of the attempt or about none."""
        identity = None
        if rank is not None:
            identity = self.attempt.identity
            self.attempt.present.add(rank)
        node = self._machines.node(rank or 0)
        self._journal.tell(time, event, node, attempt=identity, rank=rank, by_agent=True)

    def rank(self, time: int, event: Event, rank: int = 0, count: int = 1) -> None:
        """Let a rank tell something."""
        self.attempt.present.add(rank)
        node = self._machines.node(rank)
        identity = self.attempt.identity
        self._journal.tell(time, event, node, attempt=identity, rank=rank, count=count)

    def ranks(self, time: int, event: Event) -> None:
        """Let every rank that records everything tell the same."""
        for rank in self.reporters:
            self.rank(time, event, rank)

    def began(self, started: AttemptStarted, first: bool) -> None:
        """Begin an attempt; the first one also names and configures the run."""
        begin, plan = self.attempt.begin, self._plan
        self.ranks(begin, started)
        if first:
            self.rank(begin, RunStarted(run_name=plan.run_name))
            configured = RunConfigured(
                target_step=plan.target_step,
                checkpoint_interval=plan.checkpoint_interval,
                world_size=started.world_size,
                timeouts=dict(plan.timeouts) or None,
            )
            self.rank(begin, configured)

    def exit(self, rank: int, time: int, event: Event) -> None:
        """End a rank; its parent tells of a process, the rank itself of a function."""
        self.attempt.exits[rank] = time
        if isinstance(event, RankExited):
            self.agent(time, event, rank)
        else:
            self.rank(time, event, rank)

    def restarting(self, layer: str, phase: str, state: str, time: int) -> None:
        """Let the layer that restarts say what it does."""
        event = RestartPhase(layer=layer, phase=phase, state=state)
        if layer == "in_process":
            self.rank(time, event)
        else:
            self.agent(time, event)

    def blow(self, blow: Blow) -> None:
        """Tell the signs of a trouble; a lost node's are told by the launcher elsewhere."""
        identity = self.attempt.identity
        for sign in signs(blow):
            if blow.trouble.symptom in SILENT:
                node = self._machines.node(0)
                self._journal.tell(sign.time, sign.event, node, attempt=identity, by_agent=True)
            elif sign.by_agent:
                self.agent(sign.time, sign.event, blow.rank)
            else:
                self.rank(sign.time, sign.event, blow.rank)

    def steps(self, rank: int, first: int, begins: Times, ends: Times, wait: int) -> None:
        """Tell of steps after a wait each; arrays of shape (n,), int64, in ns."""
        length = self._plan.steps_per_record or LONGEST_RECORD
        for low in range(0, len(ends), length):
            begin, end = begins[low : low + length].tolist(), ends[low : low + length].tolist()
            if self._plan.steps_per_record is None:
                pairs = zip(begin, end, strict=True)
                packed = pack(Step(a + wait, b - a - wait, wait) for a, b in pairs)
                event = Steps(first_step=first + low, version=VERSION, packed=packed)
                self.rank(end[-1], event, rank, len(end))
                continue
            waits = wait * len(end)
            duration = end[-1] - begin[0]
            summary = StepsSummary(
                first_step=first + low,
                num_steps=len(end),
                duration=duration,
                step_time=duration - waits,
                data_wait=waits,
            )
            self.rank(end[-1], summary, rank)

    def opened(self, phase: str, begin: int, end: int) -> None:
        """Note what rank 0 is in, for its heartbeats."""
        if self._plan.heartbeat is not None:
            self.attempt.opened.append((begin, end, phase))

    def heartbeats(self, now: int) -> None:
        """Tell that rank 0 was alive, and in which phase, until it ended."""
        if self._plan.heartbeat is None:
            return
        attempt, position = self.attempt, 0
        until, every = attempt.exits.get(0, now), self._plan.heartbeat
        for time in range(attempt.begin + every, until, every):
            while position < len(attempt.opened) and attempt.opened[position][1] <= time:
                position += 1
            phases: tuple[str, ...] = ()
            if position < len(attempt.opened) and attempt.opened[position][0] <= time:
                phases = (attempt.opened[position][2],)
            self.rank(time, Heartbeat(open_phases=phases))
