"""Makes up a month of a fleet whose alerts are to be judged: runs, and whom they need when.

Machines break at the rate of Meta's larger research cluster (arXiv 2410.21680: 6.50 per 1000
node-days) in the shares of the Llama 3 table (arXiv 2407.21783). Two windows of maintenance stop
whatever runs. Programs break, schedulers preempt and people resize runs at rates that are plausible
and published by nobody, as is how often something stays broken until a person mends it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from headway.simulate.plan import (
    DAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    Plan,
    Recovery,
    Straggler,
    Strike,
    Trouble,
    Writing,
)
from headway.simulate.presets import LLAMA_TABLE, RSC1_RATE
from headway.simulate.run import simulate
from headway.simulate.truth import Simulated

_SIZES = (1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 32, 64, 128, 256)
"""Nodes of a run: most are small, the few large ones hold most GPUs."""
_LENGTHS = (4, 6, 8, 8, 12, 12, 24, 24, 36, 48)
"""Hours that a run is given."""
_WATCHDOG = 600 * SECOND
_UNEXPECTED = sum(row.interruptions for row in LLAMA_TABLE)
_MACHINES = tuple(
    Trouble(
        label=row.label,
        cause=row.cause,
        symptom=row.symptom,
        xid=row.xid,
        rate=RSC1_RATE * row.interruptions / _UNEXPECTED,
        detection=_WATCHDOG if row.symptom == "collective_timeout" else None,
    )
    for row in LLAMA_TABLE
)
_EXCEPTION = Trouble(
    label="CUDA error: illegal memory access",
    cause="exception",
    symptom="exception",
    layer="in_process",
)
_NAN = Trouble(label="loss is NaN", cause="numerical", symptom="numerical", layer="in_process")
_OOM = Trouble(label="CUDA out of memory", cause="gpu_oom", symptom="gpu_oom", layer="in_process")
_HOST_OOM = Trouble(label="killed for lack of memory", cause="host_oom", symptom="host_oom")
_TIMEOUT = Trouble(
    label="collective operation timeout",
    cause="collective_timeout",
    symptom="collective_timeout",
    detection=_WATCHDOG,
)
_PREEMPTED = Trouble(
    label="preempted", cause="preemption", symptom="stop", layer="scheduler", reason="preemption"
)
_RESIZED = Trouble(
    label="resized", cause="operator", symptom="stop", layer="scheduler", reason="operator"
)
_MAINTENANCE = Trouble(
    label="maintenance", cause="operator", symptom="stop", layer="scheduler", reason="maintenance"
)
_BROKEN = Trouble(
    label="GPU has fallen off the bus", cause="gpu_fault", symptom="health_check", xid=79
)
_BAD_SAMPLE = Trouble(label="bad sample", cause="exception", symptom="exception")
_BAD_LINK = Trouble(label="link of mlx5_3 flaps", cause="network", symptom="network")
_HUNG = Trouble(label="no progress, and no watchdog", cause="hang", symptom="hang", by_person=True)
_GONE = Trouble(label="the job is gone", cause="killed", symptom="kill")
_OFTEN = (
    (0.10, _EXCEPTION),
    (0.05, _NAN),
    (0.03, _OOM),
    (0.03, _HOST_OOM),
    (0.05, _TIMEOUT),
    (0.12, _PREEMPTED),
    (0.04, _RESIZED),
)
"""What happens to any run and mends itself, with its rate in a day."""
_NEEDS = (
    *("node", "node", "link", "sample", "hang", "hang", "gone", "gone", "budget"),
    *("forgotten", "starved", "unsaved", "slow writes", "straggler"),
)
"""What may happen to a run that needs a person, as often as it stands here."""
_MAINTAINED = ((8 * DAY, 4 * HOUR), (22 * DAY, 4 * HOUR))
"""Begin and length of the windows of maintenance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthRun:
    """One run of the month; `start` is when it begins, in ns since the month's begin."""

    number: int
    start: int
    plan: Plan
    simulated: Simulated


def month(seed: int, *, runs: int = 200, days: int = 30) -> Iterator[MonthRun]:
    """Yield the runs of a month one after the other, so that one is in memory at a time."""
    for number in range(runs):
        random = Random(f"{seed} {number}")  # noqa: S311  # figures, not secrets
        length = min(round(random.choice(_LENGTHS) * HOUR * random.uniform(0.6, 1.3)), days * DAY)
        if days * DAY >= MONTH and number % 40 == 0:
            length = random.randrange(5, 10) * DAY
        start = random.randrange(max(days * DAY - length, 1))
        plan = _plan(random, number, start, length)
        simulated = simulate(plan, seed * 1_000 + number)
        yield MonthRun(number=number, start=start, plan=plan, simulated=simulated)


def _plan(random: Random, number: int, start: int, length: int) -> Plan:
    nodes = random.choice(_SIZES)
    step = random.choice((10, 20, 30, 45)) * SECOND
    interval = random.choice((15, 30, 30, 60, 120)) * MINUTE
    background = min(round(interval * random.uniform(0.03, 0.4)), 5 * MINUTE)
    recovery = _recovery(random, nodes)
    troubled = _Troubled(random, length, nodes, step, interval)
    if random.random() < 0.3:
        troubled.need()
    return Plan(
        run_name=f"run-{number}",
        nodes=nodes,
        gpus_per_node=8,
        duration=length,
        startup=recovery["launcher"].start + random.randrange(1, 10) * MINUTE,
        step_time=step,
        jitter=0.04,
        delay_jitter=0.4,
        data_wait=step // 50,
        checkpoint_interval=max(interval // step, 2),
        blocking=random.randrange(2, 20) * SECOND,
        background=background,
        torn_chance=0.004,
        elastic=random.random() < 0.3,
        repair=6 * HOUR,
        steps_per_record=None,
        troubles=(*_MACHINES, *_ALL, troubled.hung),
        strikes=tuple(troubled.strikes(start)),
        stragglers=tuple(troubled.stragglers),
        writings=tuple(troubled.writings),
        limits={"in_process": 8, "launcher": troubled.launcher_limit},
        absence=random.randrange(60, 240) * MINUTE,
        timeouts={"process_group": _WATCHDOG},
        recovery=recovery,
    )


_ALL = (
    *(trouble for _, trouble in _OFTEN),
    _MAINTENANCE,
    _BROKEN,
    _BAD_SAMPLE,
    _BAD_LINK,
    _GONE,
)


class _Troubled:
    """Draws what is to happen to one run at planned times."""

    def __init__(self, random: Random, length: int, nodes: int, step: int, interval: int) -> None:
        self._random, self._length, self._nodes = random, length, nodes
        self._step, self._interval = step, interval
        self.hung = _HUNG
        self._own: list[Strike] = []
        self.stragglers: list[Straggler] = []
        self.writings: list[Writing] = []
        self.launcher_limit = 20

    def strikes(self, start: int) -> Iterator[Strike]:
        """Yield the strikes of a run that begins at a time of the month."""
        for rate, trouble in _OFTEN:
            time = 0
            while (time := time + round(self._random.expovariate(rate / DAY))) < self._length:
                nodes = None
                if trouble is _RESIZED:
                    nodes = max(1, round(self._nodes * self._random.choice((0.5, 2))))
                yield Strike(trouble=trouble.label, at=time, nodes=nodes)
        for begin, lasts in _MAINTAINED:
            if 0 < begin - start < self._length:
                yield Strike(trouble=_MAINTENANCE.label, at=begin - start, queue=lasts)
        yield from self._own

    def need(self) -> None:
        """Let one thing happen that needs a person."""
        random = self._random
        at = random.randrange(self._length // 6, self._length * 5 // 6)
        lasts = random.randrange(60, 300) * MINUTE
        rank = random.randrange(max(self._nodes * 8 // 2, 1))
        match random.choice(_NEEDS):
            case "node":
                self._stay(_BROKEN, at, lasts, rank, random.randrange(1, 9) * MINUTE)
            case "link":
                self._stay(_BAD_LINK, at, lasts, rank, random.randrange(1, 9) * MINUTE)
            case "sample":
                self._stay(_BAD_SAMPLE, at, lasts, rank, 0)
            case "hang":
                self.hung = replace(_HUNG, detection=lasts)
                self._own.append(Strike(trouble=_HUNG.label, at=at, rank=rank))
            case "gone":
                self._own.append(Strike(trouble=_GONE.label, at=at, rank=rank, away=lasts))
            case "budget":
                self.launcher_limit = 2
                for _ in range(3):
                    self._own.append(Strike(trouble=_HOST_OOM.label, at=at))
                    at += random.randrange(2, 10) * HOUR
            case "forgotten":
                self._own.append(Strike(trouble=_PREEMPTED.label, at=at, forgets=4))
            case "starved":
                self._slow(0, at, self._step + self._step // 2)
            case "straggler":
                self._slow(max(rank, 1), at, self._step // 3)
            case "unsaved":
                self.writings.append(Writing(begin=at, end=at + 3 * lasts, background=None))
            case "slow writes":
                slow = round(0.95 * self._interval)
                self.writings.append(Writing(begin=at, end=at + 3 * lasts, background=slow))

    def _stay(self, trouble: Trouble, at: int, lasts: int, rank: int, after: int) -> None:
        in_startup = self._random.random() < 0.3
        self._own.append(
            Strike(
                trouble=trouble.label,
                at=at,
                rank=rank,
                until=at + lasts,
                after=after,
                in_startup=in_startup,
            )
        )

    def _slow(self, rank: int, at: int, excess: int) -> None:
        first = at // self._step
        last = first + max(4 * HOUR // (self._step + excess), 1)
        self.stragglers.append(
            Straggler(rank=rank, first_step=first, last_step=last, excess=excess)
        )


def _recovery(random: Random, nodes: int) -> dict[str, Recovery]:
    start = round(random.uniform(1, 3) * MINUTE * (1 + nodes / 64))
    load = round(random.uniform(0.5, 2) * MINUTE * (1 + nodes / 128))
    return {
        "in_process": Recovery(
            detection=20 * SECOND, teardown=5 * SECOND, start=15 * SECOND, load=load // 2
        ),
        "launcher": Recovery(
            detection=90 * SECOND,
            teardown=20 * SECOND,
            wait=20 * SECOND,
            rendezvous=40 * SECOND,
            start=start,
            load=load,
            failed_start_chance=0.08,
        ),
        "scheduler": Recovery(
            teardown=30 * SECOND,
            queue=round(random.choice((5, 20, 40, 90)) * MINUTE),
            wait=40 * SECOND,
            start=start,
            load=load,
            failed_start_chance=0.04,
        ),
    }
