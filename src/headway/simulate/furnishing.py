"""What real runs record beside what the simulator tells: labels, budgets, sizes, losses, notes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp
from random import Random

from headway.events import (
    AttemptStarted,
    CheckpointFinalized,
    CheckpointScheduled,
    Dropped,
    Envelope,
    Event,
    Fault,
    GpuXid,
    Note,
    RankDevice,
    RecorderCost,
    RestartBudget,
    RunConfigured,
    StepsSummary,
)
from headway.simulate.hardware import GPUS, device, pci_address
from headway.simulate.placement import Cluster
from headway.simulate.plan import MINUTE, SECOND

_LIMITS = {"launcher": 20, "in_process": 50}
_GIB = 2**30
_NOTES = (
    ("ana", "Resumed with a lower learning rate after the loss spike."),
    ("kofi", "Loader cache moved to the local disks; data wait should halve."),
    ("M\u00e1rta", "Watch gpu-fra-003: second time this week. \u2713 told the site."),
)
_FULL_AT = 6
"""Attempt at whose begin a recorder tells that its queue was full."""
_REVISIONS = ("4f1c9d2", "8ab03e7", "c0ffee1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Furniture:
    """Whose run it is, where and when (UTC ns) it starts; `nodes` in the simulator's order."""

    team: str
    cluster: Cluster
    start: int
    nodes: Sequence[str]

    def node(self, simulated: str) -> str:
        """Return the fleet's name of a node that the simulator numbers."""
        return self.nodes[int(simulated.rpartition("-")[2]) % len(self.nodes)]


def furnished(
    events: Iterable[Envelope], furniture: Furniture, random: Random
) -> tuple[list[Envelope], list[tuple[int, str, int, int]]]:
    """Return a run's events as a real run's, and its GPU faults, which the nodes tell.

    A fault is (time in UTC ns, node, index of the GPU, Xid).
    """
    size = random.randrange(8, 90) * _GIB
    notes = list(random.sample(_NOTES, random.randrange(3)))
    left = dict(_LIMITS)
    attempts: set[str | None] = set()
    found: list[Envelope] = []
    faults = []
    for envelope in events:
        envelope = _moved(envelope, furniture)
        if isinstance(envelope.event, GpuXid):
            index = (envelope.rank or 0) % GPUS
            faults.append((envelope.wall, envelope.node or "", index, envelope.event.code))
            continue
        event = _filled(envelope.event, furniture, size)
        found.append(replace(envelope, event=event))
        if isinstance(event, AttemptStarted) and envelope.rank == 0:
            attempts.add(envelope.attempt)
            found += [
                replace(envelope, event=told)
                for told in _at_begin(event, envelope, furniture, left, len(attempts))
            ]
            found.append(replace(envelope, event=RecorderCost(step=_cost(len(found)))))
            if len(attempts) == _FULL_AT:
                dropped = Dropped(count=1 + len(found) % 41, reason="queue full")
                found.append(replace(envelope, event=dropped))
            if notes and len(attempts) > 1:
                author, text = notes.pop()
                note = replace(
                    envelope,
                    wall=envelope.wall + 4 * MINUTE,
                    monotonic=envelope.monotonic + 4 * MINUTE,
                    event=Note(text=text, author=author),
                )
                found.append(note)
    return _numbered(found), faults


def _cost(number: int) -> int:
    """Return what a recorder took of a step, ns: about a microsecond, now and then much more."""
    return 820 + number * 7919 % 400 + (3_600 if number % 11 == 0 else 0)


def _moved(envelope: Envelope, furniture: Furniture) -> Envelope:
    shift = furniture.start - envelope.anchor
    node = None if envelope.node is None else furniture.node(envelope.node)
    return replace(
        envelope,
        anchor=furniture.start,
        wall=envelope.wall + shift,
        node=node,
        boot_id=f"boot-{node}",
    )


def _filled(event: Event, furniture: Furniture, size: int) -> Event:
    match event:
        case Fault(suspect_node=str(node)):
            return replace(event, suspect_node=furniture.node(node))
        case AttemptStarted():
            return replace(event, scheduler="slurm", scheduler_job="481337")
        case RunConfigured():
            return _configured(event, furniture, 1)
        case CheckpointScheduled():
            return replace(event, bytes_staged=size // 8)
        case CheckpointFinalized():
            return replace(event, bytes_written=size // 8, bytes_total=size, tier="shared")
        case StepsSummary():
            last = event.first_step + event.num_steps - 1
            wave = 0.02 * ((last * 7919) % 100) / 100
            return replace(
                event,
                loss=1.7 + 9.0 * exp(-last / 3_000) + wave,
                samples=last * 512,
                longest=round(event.duration * 1.7 / event.num_steps),
                longest_step=event.first_step + event.num_steps // 3,
            )
    return event


def _at_begin(
    event: AttemptStarted,
    envelope: Envelope,
    furniture: Furniture,
    left: dict[str, int],
    number: int,
) -> Iterator[Event]:
    """Say what rank 0 says as an attempt begins."""
    node = envelope.node or ""
    yield RankDevice(device=device(node, 0), pci_address=pci_address(0), local_rank=0)
    if number > 1 and event.layer in left:
        left[event.layer] = max(0, left[event.layer] - 1)
    for layer, remaining in left.items():
        yield RestartBudget(layer=layer, remaining=remaining, limit=_LIMITS[layer])
    if number > 1:
        configured = RunConfigured(world_size=event.world_size)
        yield _configured(configured, furniture, number)


def _configured(event: RunConfigured, furniture: Furniture, number: int) -> RunConfigured:
    later = min(number // 3, len(_REVISIONS) - 1)
    return replace(
        event,
        parallelism={"data": (event.world_size or 8) // 8 or 1, "tensor": 8, "pipeline": 1},
        timeouts={
            "process_group": 600 * SECOND,
            "in_process.soft_timeout": 600 * SECOND,
            "in_process.hard_timeout": (1_200 if later else 900) * SECOND,
            "launcher.heartbeat_timeout": 300 * SECOND,
        },
        restart_limits=dict(_LIMITS),
        versions={"torch": "2.9.1", "nvidia-resiliency-ext": "0.6.0", "nccl": "2.28.9"},
        code_revision=_REVISIONS[later],
        tokens_per_step=4_194_304,
        flops_per_step=1.9e18,
        labels={
            "team": furniture.team,
            "cluster": furniture.cluster.name,
            "gpu_type": furniture.cluster.gpu_type,
            "owner": "ana" if furniture.team == "pretraining" else "kofi",
        },
        links={
            "tracker": "https://tracker.example/runs/481337",
            "logs": "https://logs.example/?job=481337",
        },
        options={
            "learning_rate": 3e-4 if not later else 2.4e-4,
            "global_batch_size": 512,
            "optimizer": "adamw",
            "image": f"training:{2026 + later}.11",
        },
    )


def _numbered(envelopes: Sequence[Envelope]) -> list[Envelope]:
    """Return the events in order of time, each producer's records numbered without a gap."""
    sequences: dict[str, int] = {}
    found = []
    for envelope in sorted(envelopes, key=lambda one: one.wall):
        first = sequences.get(envelope.producer, 0)
        last = first + envelope.last_sequence - envelope.first_sequence
        sequences[envelope.producer] = last + 1
        found.append(replace(envelope, first_sequence=first, last_sequence=last))
    return found
