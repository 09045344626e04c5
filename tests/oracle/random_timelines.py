"""Seeded random runs, realistic and nasty, for comparing two ledgers with each other.

`random_run(seed)` gives the envelopes of one run; the same seed gives the same run. Half of the
runs live on a grid of whole seconds, so that boundaries coincide; the others on nanoseconds.
`without` leaves features out, which narrows a disagreement down to the feature that causes it.
"""

import random
from dataclasses import dataclass, field

from headway.events import (
    Allocation,
    AttemptBound,
    AttemptEnded,
    AttemptStarted,
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointLoadFailed,
    CheckpointScheduled,
    Clock,
    Envelope,
    Fault,
    Heartbeat,
    PhaseBegan,
    PhaseEnded,
    RestartPhase,
    Resumed,
    RunStarted,
    StepsSummary,
    StopAnnounced,
)
from headway.step_blocks import Step
from oracle.chance import Chance
from oracle.scenario import ORIGIN, SECOND, Scenario, bound_later

FEATURES = (
    "absurd",  # stamps far from the run, to be quarantined
    "allocation",  # GPUs held, changing
    "bound",  # producers whose attempt becomes known later
    "clock",  # nodes whose clock is behind, with offsets
    "cut_phases",  # phases and steps that were open when the attempt died
    "duplicates",  # envelopes that arrive twice, and out of order
    "faults",  # exceptions, watchdogs, lost ranks and the like
    "gaps",  # time between steps that nothing covers
    "heartbeats",  # signs of life, with open phases
    "in_process",  # attempts within living processes
    "loads",  # checkpoint loads, failed ones and revocations
    "long_steps",  # steps over the limit
    "nested",  # phases inside phases and inside steps
    "overlap",  # an attempt that begins before the previous ended
    "phases",  # saves, evaluations, custom phases and waits between steps
    "ranks",  # more than one rank
    "resegment",  # a second `resumed` within an attempt
    "saves",  # checkpoints with their own events
    "self_heal",  # faults after which the attempt goes on
    "skew",  # ranks that end their steps at different times, or fall silent
    "stops",  # announced stops
    "summaries",  # ranges of steps instead of single ones
    "unrecorded",  # missing starts, exits and `resumed`
    "waits",  # packed data waits
)
"""Everything that a random run may contain beyond plain steps in plain attempts."""

FAR = 400 * 24 * 3600 * SECOND


def random_run(seed: int, without: frozenset[str] = frozenset()) -> list[Envelope]:
    """Return the envelopes of one random run."""
    unknown = without - set(FEATURES)
    if unknown:
        raise ValueError(f"unknown features {sorted(unknown)}; known: {', '.join(FEATURES)}")
    return _World(seed, without).build()


def random_as_of(seed: int, envelopes: list[Envelope]) -> int:
    """Return a moment at which to ask for the ledger: the end, later, or anywhere within."""
    rng = random.Random(f"as of {seed}")  # noqa: S311
    times = sorted(
        envelope.anchor + envelope.monotonic
        for envelope in envelopes
        if abs(envelope.anchor + envelope.monotonic - ORIGIN) < FAR // 2
    )
    kind = rng.random()
    if kind < 0.5:
        return times[-1] + 700 * SECOND
    if kind < 0.6:
        return times[-1] + 25 * 3600 * SECOND
    if kind < 0.7:
        return times[-1]
    if kind < 0.85:
        return max(ORIGIN, rng.choice(times))
    return rng.randint(ORIGIN, max(ORIGIN, times[-1]))


@dataclass
class _Save:
    checkpoint: str
    step: int
    readable: bool
    finalized: int | None


@dataclass
class _Attempt:
    name: str
    layer: str
    ranks: list[int]
    cursor: int
    detail: dict[int, str]
    behind: dict[int, int] = field(default_factory=dict)
    pending: dict[int, list[tuple[int, Step]]] = field(default_factory=dict)
    last: int = 0


class _World(Chance):
    def __init__(self, seed: int, without: frozenset[str]) -> None:
        super().__init__(seed, without)
        self.run = Scenario(f"random-{seed}", unit=1)
        self.duration = self.time(1, 12)
        self.saves: list[_Save] = []
        self.completed = 0
        self.highest = 0
        self.now = 0
        self.bound: list[str] = []
        self.over = False
        self.announced = False
        self.next_layer = "scheduler"

    # The run

    def build(self) -> list[Envelope]:
        for node in ("n0", "n1"):
            if self.chance(0.2, "clock"):
                self.run.behind[node] = self.time(-100, 600)
                self.run.event(0, Clock(offset=self.run.behind[node], error=1000), node=node)
        self.announced = self.chance(0.5)
        if self.announced:
            self.run.event(0, RunStarted(run_name="random"), rank=0)
        if self.chance(0.4, "allocation"):
            self.run.event(0, Allocation(gpus_held=self.pick(0, 4), gpus_requested=4))
            self.now += self.delay()
            self.run.event(self.now, Allocation(gpus_held=4, nodes_held=2))
        attempts = self.rng.randint(1, 6)
        for number in range(attempts):
            self.attempt(number, last=number == attempts - 1)
            if self.over:
                break
        envelopes = self.run.envelopes()
        envelopes = self.bind(envelopes)
        if self.has("duplicates"):
            envelopes += self.rng.choices(envelopes, k=self.rng.randint(0, 4))
            self.rng.shuffle(envelopes)
        return envelopes

    def bind(self, envelopes: list[Envelope]) -> list[Envelope]:
        for name in self.bound:
            producers = sorted({e.producer for e in envelopes if e.attempt == name})
            for producer in producers:
                mine = [e for e in envelopes if e.producer == producer]
                if all(e.attempt == name for e in mine):
                    last = max(e.last_sequence for e in mine)
                    bound = AttemptBound(attempt=name, first_sequence=1, last_sequence=last)
                    envelopes = bound_later(envelopes, producer, bound)
        return envelopes

    # One attempt

    def attempt(self, number: int, last: bool) -> None:
        ranks = list(range(self.rng.randint(1, 4) if self.has("ranks") else 1))
        layer = self.next_layer
        self.next_layer = self.pick("scheduler", "launcher")
        if not last and self.chance(0.2, "in_process"):
            self.next_layer = "in_process"
        attempt = _Attempt(f"a{number}", layer, ranks, self.now, {})
        if self.chance(0.1, "bound"):
            self.bound.append(attempt.name)
        for rank in ranks:
            attempt.detail[rank] = self.reporting(rank)
        nameless = self.chance(0.05, "unrecorded")
        for rank in ranks:
            if not nameless and (rank == 0 or not self.chance(0.1, "unrecorded")):
                late = self.time(0, 3) if rank and self.chance(0.4, "skew") else 0
                started = AttemptStarted(layer=layer, world_size=len(ranks))
                self.run.event(self.now + late, started, attempt.name, rank)
        kind = self.rng.random()
        if kind < 0.2:
            self.failed_start(attempt)
        elif self.prepare(attempt):
            self.train(attempt)
        overlapping = not last and self.chance(0.1, "overlap")
        begin = attempt.cursor
        self.finish(attempt, last)
        if overlapping and not self.over:
            self.now = begin
        elif not self.over:
            self.between(last)

    def reporting(self, rank: int) -> str:
        if rank == 0 or not self.has("summaries"):
            return "summary" if self.chance(0.2, "summaries") else "detail"
        return self.pick("detail", "detail", "summary", "none", "both")

    def failed_start(self, attempt: _Attempt) -> None:
        for rank in attempt.ranks:
            end = attempt.cursor + self.delay()
            if self.chance(0.5, "phases"):
                name = self.pick("startup", "import", "rendezvous", "model", "warmup")
                closed = not self.has("cut_phases") or self.chance(0.7)
                self.run.phase(attempt.name, name, attempt.cursor, end if closed else None, rank)
        attempt.cursor += self.delay()
        if self.chance(0.3, "heartbeats"):
            self.run.event(attempt.cursor, Heartbeat(), attempt.name, 0)

    def prepare(self, attempt: _Attempt) -> bool:
        """Go from the process's start to the first step; False where a load killed it."""
        begin = attempt.cursor
        nested = self.chance(0.3, "nested")
        for name in ("import", "rendezvous", "model"):
            if self.chance(0.4):
                end = attempt.cursor + self.time(0, 15)
                for rank in attempt.ranks:
                    if self.chance(0.8):
                        self.run.phase(attempt.name, name, attempt.cursor, end, rank)
                attempt.cursor = end
            elif self.chance(0.3, "gaps"):
                attempt.cursor += self.time(0, 10)
        loaded = self.load(attempt)
        if loaded is None:
            return False
        if self.chance(0.25, "phases"):
            name = self.pick("warmup", "evaluation", "checkpoint_save", "custom:probe", "data_wait")
            end = attempt.cursor + self.time(0, 20)
            self.run.phase(attempt.name, name, attempt.cursor, end, self.pick(*attempt.ranks))
            attempt.cursor = end
        if nested:
            for rank in attempt.ranks:
                self.run.phase(attempt.name, "startup", begin, attempt.cursor, rank)
        self.completed = attempt.last = loaded
        return True

    def load(self, attempt: _Attempt) -> int | None:
        """Load the newest checkpoint that can be read; None where the process dies of it."""
        name = attempt.name
        usable = [save for save in self.saves if save.finalized or self.chance(0.3)]
        self.rng.shuffle(usable) if self.chance(0.2) else usable.sort(key=lambda save: save.step)
        while usable and self.has("loads"):
            save = usable.pop()
            end = attempt.cursor + self.time(0, 30)
            if not save.readable or self.chance(0.15):
                save.readable = save.readable and self.chance(0.5)
                error = "corrupt" if self.chance(0.5) else None
                took = end - attempt.cursor
                for rank in attempt.ranks[: self.pick(1, 4)]:
                    self.run.event(attempt.cursor, PhaseBegan(phase="checkpoint_load"), name, rank)
                    ended = PhaseEnded(phase="checkpoint_load", duration=took, error=error)
                    self.run.event(end, ended, name, rank)
                failed = CheckpointLoadFailed(checkpoint=save.checkpoint, step=save.step)
                self.run.event(end, failed, name, 0)
                attempt.cursor = end + self.time(0, 2)
                if self.chance(0.2):
                    return None
                continue
            for rank in attempt.ranks:
                if rank == 0 or self.chance(0.8):
                    late = self.time(0, 2) if self.chance(0.2, "skew") else 0
                    self.run.phase(name, "checkpoint_load", attempt.cursor, end + late, rank)
                    attempt.behind[rank] = late
            attempt.cursor = end + max(attempt.behind.values(), default=0)
            attempt.behind.clear()
            if self.chance(0.7):
                loaded = CheckpointLoaded(checkpoint=save.checkpoint, step=save.step)
                self.run.event(attempt.cursor, loaded, name, 0)
            known = self.chance(0.8)
            self.resumed(attempt, save.step, save.checkpoint if known else None)
            return save.step
        completed = 0
        if self.highest and self.chance(0.6):
            completed = self.rng.randint(0, self.highest)
        self.resumed(attempt, completed, None)
        return completed

    def resumed(self, attempt: _Attempt, completed: int, checkpoint: str | None) -> None:
        if self.chance(0.25, "unrecorded"):
            return
        event = Resumed(completed=completed, checkpoint=checkpoint)
        for rank in attempt.ranks[: self.pick(1, 4)]:
            self.run.event(attempt.cursor, event, attempt.name, rank)

    # Steps

    def train(self, attempt: _Attempt) -> None:
        if self.chance(0.15, "gaps"):
            attempt.cursor += self.delay()
        shift = self.pick(-1, 1) if self.chance(0.05, "unrecorded") else 0
        step = max(1, attempt.last + 1 + shift)
        silent = self.pick(*attempt.ranks) if self.chance(0.1, "skew") else None
        total = self.pick(1, 2, 5, 12, 30)
        for number in range(self.rng.randint(1, total)):
            if number and silent is not None and number > total // 2 and silent != 0:
                attempt.detail[silent] = "none"
            self.one_step(attempt, step)
            attempt.last = self.completed = step
            self.highest = max(self.highest, step)
            self.after_step(attempt, step)
            step += 1
            if self.chance(0.02, "resegment") and self.saves:
                self.flush(attempt)
                save = self.pick(*self.saves)
                end = attempt.cursor + self.time(0, 10)
                self.run.phase(attempt.name, "checkpoint_load", attempt.cursor, end, 0)
                attempt.cursor = end
                self.run.event(
                    end,
                    Resumed(completed=save.step, checkpoint=save.checkpoint),
                    attempt.name,
                    0,
                )
                attempt.last = self.completed = save.step
                step = save.step + 1
        self.flush(attempt)

    def one_step(self, attempt: _Attempt, step: int) -> None:
        duration = self.duration + self.time(0, 0.5)
        if self.chance(0.03, "long_steps"):
            duration = self.time(50, 300)
        wait = self.time(0, 8) if self.chance(0.3, "waits") else 0
        ends = []
        for rank in attempt.ranks:
            lag = self.time(0, 2) if self.chance(0.2, "skew") else 0
            own_wait = wait + (self.time(0, 3) if self.chance(0.1, "waits", "ranks") else 0)
            start = attempt.cursor + own_wait
            end = max(start, attempt.cursor + wait + duration + lag)
            if self.chance(0.05, "waits"):
                own_wait += self.time(0, 20)  # a wait that began before the previous step ended
            times = Step(self.run.monotonic(start), end - start, own_wait)
            attempt.pending.setdefault(rank, []).append((step, times))
            ends.append(end)
            if self.chance(0.04, "nested", "phases"):
                name = self.pick("custom:inner", "evaluation", "checkpoint_save", "data_wait")
                begin = self.rng.randint(start, end)
                self.run.phase(attempt.name, name, begin, self.rng.randint(begin, end), rank)
            if self.chance(0.02, "nested", "cut_phases"):
                self.run.phase(attempt.name, self.pick("evaluation", "custom:x"), start, None, rank)
            if self.chance(0.03, "heartbeats"):
                beat = Heartbeat(open_phases=("step",), last_step=step - 1)
                self.run.event(self.rng.randint(start, end), beat, attempt.name, rank)
        attempt.cursor = max(ends)

    def after_step(self, attempt: _Attempt, step: int) -> None:
        if self.chance(0.08):
            self.flush(attempt)
        if self.chance(0.1, "gaps"):
            attempt.cursor += self.time(0, 4) if self.chance(0.7) else self.delay()
        if self.chance(0.12, "phases"):
            name = self.pick("evaluation", "custom:check", "data_wait", "warmup", "custom:x")
            begin, end = attempt.cursor, attempt.cursor + self.time(0, 40)
            if self.chance(0.05, "long_steps"):
                end = begin + self.time(50, 300)
            for rank in attempt.ranks:
                if self.chance(0.8):
                    self.run.phase(attempt.name, name, begin, end, rank)
            if self.chance(0.3, "nested"):
                inner = self.rng.randint(begin, end)
                name = self.pick("data_wait", "checkpoint_save", "custom:inner")
                self.run.phase(attempt.name, name, inner, self.rng.randint(inner, end), 0)
            attempt.cursor = end
        if self.chance(0.12, "saves"):
            self.save(attempt, step)
        if self.chance(0.03, "faults", "self_heal"):
            self.run.event(
                attempt.cursor, self.fault(step), attempt.name, self.pick(*attempt.ranks)
            )

    def save(self, attempt: _Attempt, step: int) -> None:
        blocking = self.time(0, 15)
        begin, end = attempt.cursor, attempt.cursor + blocking
        if self.chance(0.6, "phases"):
            for rank in attempt.ranks:
                if rank == 0 or self.chance(0.7):
                    self.run.phase(attempt.name, "checkpoint_save", begin, end, rank)
        checkpoint = f"c{step}" if self.chance(0.7) else f"c{step} {attempt.name}"
        scheduled = CheckpointScheduled(
            checkpoint=checkpoint,
            step=step,
            blocking=blocking if self.chance(0.8) else None,
            tier=self.pick("memory", "local", "shared", None),
        )
        for rank in attempt.ranks[: self.pick(1, 1, 4)]:
            self.run.event(end, scheduled, attempt.name, rank)
        attempt.cursor = end
        done: int | None = None
        if self.chance(0.75):
            done = end + self.time(0, 60)
            finalized = CheckpointFinalized(checkpoint=checkpoint, step=step)
            self.run.event(done, finalized, self.pick(attempt.name, None), 0)
        elif self.chance(0.5):
            failed = CheckpointFailed(checkpoint=checkpoint, step=step)
            self.run.event(end + self.time(0, 30), failed, attempt.name, 0)
        self.saves.append(_Save(checkpoint, step, self.chance(0.85), done))

    def flush(self, attempt: _Attempt) -> None:
        """Write the steps done so far in each rank's own fashion."""
        for rank, steps in attempt.pending.items():
            mode = attempt.detail[rank]
            if mode in ("detail", "both"):
                self.run.step_times(attempt.name, steps[0][0], [s for _, s in steps], rank)
            if mode in ("summary", "both"):
                self.summaries(attempt, rank, steps)
        attempt.pending.clear()

    def summaries(self, attempt: _Attempt, rank: int, steps: list[tuple[int, Step]]) -> None:
        while steps:
            size = self.rng.randint(1, 10)
            part, steps = steps[:size], steps[size:]
            first, newest = part[0][1], part[-1][1]
            longest = max(part, key=lambda item: item[1].duration)
            wide = self.chance(0.7)
            summary = StepsSummary(
                first_step=part[0][0],
                num_steps=len(part),
                duration=newest.start + newest.duration - first.start,
                step_time=sum(s.duration for _, s in part) if wide else None,
                data_wait=sum(s.data_wait for _, s in part[1:]) if wide else None,
                longest=longest[1].duration if wide else None,
                longest_step=longest[0] if wide else None,
            )
            at = newest.start + newest.duration - self.run.monotonic(0)
            count = len(part) if self.chance(0.7) else 1
            self.run.event(at, summary, attempt.name, rank, count=count)

    # Faults, stops and ends

    def fault(self, step: int) -> Fault:
        kind = self.pick(
            "exception",
            "exception",
            "exception",
            "exception",
            "gpu_oom",
            "numerical",
            "host_oom",
            "collective_timeout",
            "heartbeat_timeout",
            "section_timeout",
            "hang",
            "signal",
            "lost_rank",
            "lost_node",
            "network",
            "storage",
            "unknown",
        )
        watchdog = kind in ("collective_timeout", "heartbeat_timeout", "section_timeout", "hang")
        ran_for = self.time(0, 300) if watchdog and self.chance(0.8) else None
        return Fault(
            kind=kind,
            ran_for=ran_for,
            step=step if self.chance(0.3) else None,
            phase=self.pick("step", "data_wait", "evaluation", None, None),
        )

    def finish(self, attempt: _Attempt, last: bool) -> None:
        begin = attempt.cursor
        kind = self.rng.random()
        if last and kind < 0.35:
            self.clean_end(attempt)
        elif kind < 0.5:
            self.announced_stop(attempt)
        elif kind < 0.6:
            attempt.cursor += self.delay()  # silence: nothing tells how it ended
            self.beats(attempt, begin)
        elif kind < 0.7 and not last:
            self.exits(attempt, itself=True)
        else:
            self.breakage(attempt)
        if last and not self.over and self.chance(0.4):
            self.run.end(attempt.cursor + self.time(0, 20), self.pick("failed", "stopped"))
        if self.chance(0.03, "absurd"):
            node = f"astray {attempt.name}"
            self.run.behind[node] = self.pick(-FAR, FAR) if self.announced else -FAR
            self.run.event(begin, Heartbeat(), attempt.name, 0, node, producer=node)
        self.now = max(self.now, attempt.cursor)

    def clean_end(self, attempt: _Attempt) -> None:
        attempt.cursor += self.pick(0, self.time(0, 3), self.time(0, 40))
        self.exits(attempt, itself=True)
        if self.chance(0.8):
            reason = self.pick("completed", "completed", "failed", "stopped")
            self.run.end(attempt.cursor + self.pick(0, self.time(0, 5)), reason)
            self.over = True

    def exits(self, attempt: _Attempt, itself: bool) -> None:
        """Every rank exits on its own or is ended, and most exits are recorded."""
        latest = attempt.cursor
        for rank in attempt.ranks:
            at = attempt.cursor + (self.time(0, 5) if self.chance(0.3) else 0)
            latest = max(latest, at)
            if self.chance(0.15, "unrecorded"):
                continue
            if self.next_layer == "in_process" and self.chance(0.9):
                self.run.event(at, AttemptEnded(), attempt.name, rank)  # the process lives on
                continue
            if itself and self.chance(0.5):
                ended = AttemptEnded(exit_code=self.pick(0, 1))
                self.run.event(at, ended, attempt.name, rank)
            if itself:
                self.run.exit(attempt.name, at, [rank], code=self.pick(0, 1), by="itself")
            else:
                by = self.pick("launcher", "scheduler", "person", "kernel", "unknown")
                self.run.exit(attempt.name, at, [rank], signal=self.pick(9, 15), by=by)
        attempt.cursor = latest

    def announced_stop(self, attempt: _Attempt) -> None:
        if not self.has("stops"):
            self.exits(attempt, itself=True)
            return
        begin = attempt.cursor
        notice = begin + self.pick(0, self.time(0, 30), -self.time(0, 10))
        reason = self.pick("sigterm", "preemption", "time_limit", "maintenance", "operator")
        for rank in attempt.ranks[: self.pick(1, 4)]:
            self.run.event(max(0, notice), StopAnnounced(reason=reason), attempt.name, rank)
        attempt.cursor = max(begin, notice)
        if self.chance(0.5, "saves", "phases"):
            end = attempt.cursor + self.time(0, 40)
            closed = self.chance(0.7) or not self.has("cut_phases")
            self.run.phase(attempt.name, "checkpoint_save", attempt.cursor, end if closed else None)
            if closed and self.chance(0.8):
                checkpoint = f"exit {attempt.name}"
                scheduled = CheckpointScheduled(checkpoint=checkpoint, step=attempt.last)
                self.run.event(end, scheduled, attempt.name, 0)
                finalized = CheckpointFinalized(checkpoint=checkpoint, step=attempt.last)
                self.run.event(end, finalized, attempt.name, 0)
                self.saves.append(_Save(checkpoint, attempt.last, True, end))
            attempt.cursor = end
        attempt.cursor += self.delay()
        if self.chance(0.8):
            self.exits(attempt, itself=self.chance(0.5))

    def beats(self, attempt: _Attempt, begin: int) -> None:
        if not self.has("heartbeats"):
            return
        for _ in range(self.rng.randint(0, 4)):
            phases = self.pick((), ("step",), ("step", "data_wait"), ("evaluation",), ("model",))
            beat = Heartbeat(open_phases=phases, last_step=attempt.last or None)
            at = self.rng.randint(begin, max(begin, attempt.cursor)) // self.grid * self.grid
            self.run.event(max(begin, at), beat, attempt.name, self.pick(*attempt.ranks))

    def breakage(self, attempt: _Attempt) -> None:
        """Something breaks, it is noticed after a while, and somebody tears the group down."""
        begin = attempt.cursor
        if not self.has("faults"):
            self.exits(attempt, itself=True)
            return
        culprit = self.pick(*attempt.ranks)
        if self.has("cut_phases"):
            for rank in attempt.ranks:
                if self.chance(0.4):
                    name = self.pick("step", "step", "data_wait", "evaluation", "checkpoint_save")
                    self.run.phase(attempt.name, name, begin + self.time(0, 3), None, rank)
        attempt.cursor += self.pick(0, self.time(0, self.duration / SECOND))
        seen = attempt.cursor
        for _ in range(self.pick(0, 1, 1, 2, 3)):
            fault = self.fault(attempt.last + 1)
            if fault.ran_for is not None and self.chance(0.6):
                seen = begin + fault.ran_for
            accused = self.pick(culprit, *attempt.ranks, None)
            self.run.event(seen, fault, attempt.name, accused)
            seen += self.pick(0, self.time(0, 60))
        attempt.cursor = seen
        if self.chance(0.5):
            by = self.pick("kernel", "unknown", "itself")
            signal = self.pick(6, 9, 11) if by != "itself" else None
            at = self.pick(begin, attempt.cursor)
            self.run.exit(attempt.name, at, [culprit], code=1, signal=signal, by=by)
        attempt.cursor += self.delay()
        self.teardown(attempt)
        self.beats(attempt, begin)
        if self.chance(0.7):
            self.exits(attempt, itself=False)

    def teardown(self, attempt: _Attempt) -> None:
        for phase in ("abort", "stop_workers", "finalize"):
            if not self.chance(0.4):
                continue
            in_process = phase != "stop_workers"
            layer = "in_process" if in_process else "launcher"
            rank = self.pick(*attempt.ranks) if in_process else None
            name = attempt.name if in_process else self.pick(attempt.name, None)
            end = attempt.cursor + self.time(0, 10)
            began = RestartPhase(layer=layer, phase=phase, state="began")
            self.run.event(attempt.cursor, began, name, rank)
            if self.chance(0.8):
                ended = RestartPhase(layer=layer, phase=phase, state="ended")
                self.run.event(end, ended, name, rank)
            attempt.cursor = end

    def between(self, last: bool) -> None:
        """Time between two attempts: queued, backing off, in rendezvous, or nothing known."""
        for _ in range(0 if self.next_layer == "in_process" else self.rng.randint(0, 3)):
            if self.chance(0.2, "allocation"):
                self.run.event(self.now, Allocation(gpus_held=self.pick(0, 2, 4)))
            if self.chance(0.4):
                phase = self.pick("backoff", "wait_nodes", "rendezvous", "spawn", "health_check")
                began = RestartPhase(layer="launcher", phase=phase, state="began")
                self.run.event(self.now, began)
                self.now += self.delay()
                if self.chance(0.8):
                    ended = RestartPhase(layer="launcher", phase=phase, state="ended")
                    self.run.event(self.now, ended)
            self.now += self.pick(0, self.time(0, 30))
        if not last and self.chance(0.02):
            self.now += self.time(20 * 3600, 30 * 3600)
