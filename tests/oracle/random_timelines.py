"""Seeded random runs, realistic and nasty, for comparing two ledgers with each other.

`random_run(seed)` gives the envelopes of one run; the same seed gives the same run. Half of the
runs live on a grid of whole seconds, so that boundaries coincide; the others on nanoseconds.
`without` leaves features out, which narrows a disagreement down to the feature that causes it.
"""

import random

from headway.events import (
    Allocation,
    AttemptBound,
    AttemptStarted,
    Clock,
    Envelope,
    Heartbeat,
    RestartPhase,
    RunStarted,
)
from oracle.random_course import Trial
from oracle.random_endings import FAR, Endings
from oracle.random_training import Training
from oracle.scenario import ORIGIN, SECOND, bound_later

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


class _World(Training, Endings):
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

    def attempt(self, number: int, last: bool) -> None:
        ranks = list(range(self.rng.randint(1, 4) if self.has("ranks") else 1))
        layer = self.next_layer
        self.next_layer = self.pick("scheduler", "launcher")
        if not last and self.chance(0.2, "in_process"):
            self.next_layer = "in_process"
        attempt = Trial(f"a{number}", layer, ranks, self.now, {})
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

    def failed_start(self, attempt: Trial) -> None:
        for rank in attempt.ranks:
            end = attempt.cursor + self.delay()
            if self.chance(0.5, "phases"):
                name = self.pick("startup", "import", "rendezvous", "model", "warmup")
                closed = not self.has("cut_phases") or self.chance(0.7)
                self.run.phase(attempt.name, name, attempt.cursor, end if closed else None, rank)
        attempt.cursor += self.delay()
        if self.chance(0.3, "heartbeats"):
            self.run.event(attempt.cursor, Heartbeat(), attempt.name, 0)

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
