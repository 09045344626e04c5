"""Spans of NVRx's launcher and of Megatron become events; which ones, and how, is data here.

Names and attributes: NVRx's restart cycles (`nvrx.restart.*`, NVIDIA/nvidia-resiliency-ext#394, and
`nvrx.ft.*`, its telemetry contract of 2026) and Megatron-LM's `docs/user-guide/observability` and
goodput taxonomy, both through nemo-lens. A span's own identity gives producer and sequence, so that
it may come twice and in any order. No clock and no I/O.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headway import step_blocks, wire
from headway.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointFinalized,
    CheckpointScheduled,
    Envelope,
    Event,
    Fault,
    Health,
    PhaseEnded,
    RestartBudget,
    RestartPhase,
    Steps,
)

_LAUNCHER = "launcher"
_CHECK = "nvrx"
_RUN = ("headway.run", "nemo.run.id", "job.uid")
"""Attributes of a resource that name the run, the first that is there."""
_JOB = ("headway.scheduler_job", "slurm.job_id", "slurm.job.id")
_RANK = ("nv.dl.rank", "dl.rank")
_WORLD_SIZE = ("nv.dl.world_size", "dl.world_size")
_CYCLE = ("nvrx.cycle",)
_NODE = ("nvrx.node", "host.name")
_STEP = ("megatron.iteration", "nvrx.iteration")
_LATEST = 2**63 - 1
_IDLE = ("standby", "excluded")
"""Memberships and outcomes of a node that did not train in a cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One span; times in UTC ns, identities in hex, `error` its status where that is an error."""

    name: str
    trace_id: str
    span_id: str
    start: int
    end: int
    error: str | None
    resource: Mapping[str, Any]
    attributes: Mapping[str, Any]

    def find(self, names: tuple[str, ...]) -> Any:
        """Return the first of some attributes that the span or its resource has."""
        for name in names:
            for values in (self.attributes, self.resource):
                if values.get(name) is not None:
                    return values[name]
        return None

    def number(self, names: tuple[str, ...]) -> int | None:
        """Return a whole number, which OTEL_RESOURCE_ATTRIBUTES carries as text."""
        value = self.find(names)
        if isinstance(value, str) and value.isascii() and value.isdecimal():
            return int(value)
        return value if type(value) is int else None


Found = tuple[int, type[Event], Mapping[str, Any]]
"""Time of an event in UTC ns, its kind, its fields."""
Maker = Callable[[Told], Iterator[Found]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What one kind of span tells; `of_rank` tells a rank's own span from one of its launcher."""

    makers: tuple[Maker, ...]
    of_rank: bool = False


def _phase(name: str) -> Maker:
    def made(span: Told) -> Iterator[Found]:
        duration = span.end - span.start
        fields = {"phase": name, "duration": duration, "error": span.error}
        yield span.end, PhaseEnded, fields

    return made


def _restart(name: str) -> Maker:
    def made(span: Told) -> Iterator[Found]:
        if span.find(("nvrx.membership",)) in _IDLE:
            return  # a spare waits while the others train
        for time, state in ((span.start, "began"), (span.end, "ended")):
            yield time, RestartPhase, {"layer": _LAUNCHER, "phase": name, "state": state}

    return made


def _cycle(span: Told) -> Iterator[Found]:
    outcome = span.find(("nvrx.cycle_outcome",))
    idle = {outcome, span.find(("nvrx.membership",))} & set(_IDLE)
    remaining = span.number(("nvrx.remaining_restarts",))
    if not idle:
        yield (
            span.start,
            AttemptStarted,
            {
                "layer": _LAUNCHER,
                "scheduler_job": _text(span.find(_JOB)),
                "launcher_round": span.number(_CYCLE),
            },
        )
    if remaining is not None:
        limit = span.number(("nvrx.max_restarts",))
        yield (
            span.start,
            RestartBudget,
            {"layer": _LAUNCHER, "remaining": remaining, "limit": limit},
        )
    if not idle:
        yield span.end, AttemptEnded, {"learned_from": f"cycle outcome {outcome}"}


def _began(span: Told) -> Iterator[Found]:
    cycle = span.number(_CYCLE)
    yield (
        span.start,
        AttemptStarted,
        {
            "layer": "scheduler" if cycle is None else _LAUNCHER,
            "world_size": span.number(_WORLD_SIZE),
            "scheduler_job": _text(span.find(_JOB)),
            "launcher_round": cycle,
        },
    )


def _fault(span: Told) -> Iterator[Found]:
    failures, state = span.find(("nvrx.failures",)), span.find(("nvrx.state",))
    words = [] if failures is None else [f"{failures} workers failed"]
    words += [] if state is None else [f"state {state}"]
    yield span.start, Fault, {"kind": "unknown", "message": ", ".join(words) or None}


def _checked(span: Told) -> Iterator[Found]:
    state = "healthy" if span.error is None else "unhealthy"
    yield span.end, Health, {"check": _CHECK, "state": state, "detail": span.error}


def _excluded(span: Told) -> Iterator[Found]:
    yield span.end, Health, {"check": _CHECK, "state": "unhealthy", "detail": "node excluded"}


def _step(span: Told) -> Iterator[Found]:
    loss = span.attributes.get("megatron.loss")
    step = step_blocks.Step(
        start=0,
        duration=span.end - span.start,
        loss=float(loss) if isinstance(loss, int | float) else math.nan,
    )
    packed = step_blocks.pack([step])
    fields = {"version": step_blocks.VERSION, "packed": packed}
    yield span.end, Steps, {"first_step": span.number(_STEP), **fields}


def _scheduled(span: Told) -> Iterator[Found]:
    step = span.number(_STEP)
    if step is not None:
        fields = {"checkpoint": _checkpoint(step), "step": step, "blocking": span.end - span.start}
        yield span.end, CheckpointScheduled, fields


def _finalized(span: Told) -> Iterator[Found]:
    step = span.number(_STEP)
    if step is not None and span.error is None:
        yield span.end, CheckpointFinalized, {"checkpoint": _checkpoint(step), "step": step}


def _checkpoint(step: int) -> str:
    """Return Megatron's own name of a checkpoint's folder."""
    return f"iter_{step:07d}"


def _launcher(*makers: Maker) -> Rule:
    return Rule(makers=makers)


def _rank(*makers: Maker) -> Rule:
    return Rule(makers=makers, of_rank=True)


_SAVE, _START = _phase("checkpoint_save"), _phase("startup")

RULES: Mapping[str, Rule] = {
    "nvrx.restart.cycle": _launcher(_cycle),
    "nvrx.restart.await_round": _launcher(_restart("wait_nodes")),
    "nvrx.restart.health_check": _launcher(_restart("health_check"), _checked),
    "nvrx.restart.rendezvous": _launcher(_restart("rendezvous")),
    "nvrx.restart.worker_launch": _launcher(_restart("spawn")),
    "nvrx.restart.fault": _launcher(_fault),
    "nvrx.restart.teardown": _launcher(_restart("stop_workers")),
    "nvrx.restart.excluded": _launcher(_excluded),
    "nvrx.ft.cycle": _launcher(_cycle),
    "nvrx.ft.round_wait": _launcher(_restart("wait_nodes")),
    "nvrx.ft.health_check": _launcher(_restart("health_check"), _checked),
    "nvrx.ft.rendezvous": _launcher(_restart("rendezvous")),
    "nvrx.ft.worker_start": _launcher(_restart("spawn")),
    "nvrx.ft.fault": _launcher(_fault),
    "nvrx.ft.teardown": _launcher(_restart("stop_workers")),
    "nvrx.ckpt.save.shm_drain": _rank(_SAVE),
    "nvrx.ckpt.save.stage": _rank(_SAVE),
    "nvrx.ckpt.save.schedule": _rank(_SAVE, _scheduled),
    "nvrx.ckpt.save.completion_sync": _rank(_SAVE),
    "nvrx.ckpt.save.finalize": _rank(_SAVE, _finalized),
    "megatron.startup.imports": _rank(_began, _phase("import")),
    "megatron.startup.arg_parse": _rank(_START),
    "megatron.startup.inprocess_setup": _rank(_START),
    "megatron.startup.in_job_setup": _rank(_START),
    "megatron.startup.initialize_megatron": _rank(_START),
    "megatron.startup.jit_fusion_options": _rank(_START),
    "megatron.startup.dataloader": _rank(_START),
    "megatron.startup.model_init": _rank(_phase("model")),
    "megatron.startup.cuda_graph_capture": _rank(_phase("warmup")),
    "megatron.startup.weight_hash_check": _rank(_phase("warmup")),
    "megatron.startup.sniff_test": _rank(_phase("warmup")),
    "megatron.pretrain": _rank(_began),
    "megatron.model_init": _rank(_phase("model")),
    "megatron.load_checkpoint": _rank(_phase("checkpoint_load")),
    "megatron.checkpoint.load": _rank(_phase("checkpoint_load")),
    "megatron.checkpoint.exposed_save": _rank(_SAVE),
    "megatron.checkpoint.save": _rank(_SAVE, _scheduled),
    "megatron.checkpoint.save.finalize": _rank(_SAVE),
    "megatron.checkpoint.exit_finalize": _rank(_SAVE),
    "megatron.save_checkpoint": _rank(_SAVE, _scheduled),
    "megatron.evaluate": _rank(_phase("evaluation")),
    "megatron.train.iteration": _rank(_step),
    "megatron.train_step": _rank(_step),
}
"""What is kept of which span. Spans that only hold others, such as `nvrx.restart.run`, and those of
a process beside the training, such as `nvrx.ckpt.save.write`, tell no event."""

_OF_ATTEMPT = (AttemptStarted, AttemptEnded)


def is_known(name: str) -> bool:
    """Return whether spans of a name tell events."""
    return name in RULES


def events(span: Told) -> list[Envelope]:
    """Return what a span of a known name tells.

    What a launcher tells names no attempt, except its own begin and end: the newest attempt that
    had begun takes it.

    Raises:
        WireError: the span has no identity, no run or rank, or values that do not fit.
    """
    rule = RULES[span.name]
    if not span.trace_id.strip("0") or not span.span_id.strip("0"):
        raise wire.WireError(f"span {span.name!r} has no trace id or no span id")
    if not span.start <= span.end <= _LATEST:
        raise wire.WireError(
            f"span {span.name!r} ends at {span.end}: before {span.start} or out of range"
        )
    run = _text(span.find(_RUN))
    if run is None:
        raise wire.WireError(
            f"span {span.name!r} is of no run; set OTEL_RESOURCE_ATTRIBUTES=headway.run=RUN"
        )
    rank = span.number(_RANK) if rule.of_rank else None
    if rule.of_rank and rank is None:
        raise wire.WireError(f"span {span.name!r} is of no rank; its resource needs dl.rank")
    identity = hashlib.blake2b(f"{span.trace_id} {span.span_id}".encode(), digest_size=16)
    producer = wire.Producer(
        {
            "producer": identity.hexdigest(),
            "anchor": span.start,
            "run": run,
            "node": _text(span.find(_NODE)),
            "boot_id": None,
        }
    )
    attempt = attempt_id(run, _text(span.find(_JOB)), span.number(_CYCLE))
    found = sorted((one for maker in rule.makers for one in maker(span)), key=lambda one: one[0])
    return [
        producer.build(
            {
                "first_sequence": sequence,
                "last_sequence": sequence,
                "attempt": attempt if rule.of_rank or kind in _OF_ATTEMPT else None,
                "rank": rank,
                "wall": time,
                "monotonic": time - span.start,
            },
            kind.name,
            fields,
        )
        for sequence, (time, kind, fields) in enumerate(found)
    ]


def attempt_id(run: str, job: str | None, cycle: int | None) -> str:
    """Return the identity that a recorder in the same attempt gives it (`headway.exporter`)."""
    parts = (run, job or "", str(cycle or 0), "0")
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
