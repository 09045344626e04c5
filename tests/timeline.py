"""A short text as a run's events, so that a ledger test reads as a scenario.

One event a line: a time or a stretch in seconds, a verb, its arguments, `name=value` options.

    0       allocation 4
    0       attempt A launcher world=4
    0-574   steps 1-574
    500     finalized c500 500
    574     fault exception rank=3
    634     launcher stop_workers

`rank=` names the rank (default 0), `#` starts a comment. A stretch of steps is cut evenly, `each=9
wait=1` gives steps of 9 s after a wait of 1 s each, from the start of the stretch on. `loss=2` lets
step n lose 2 * (1 + 1 / n), `samples=8` lets it consume 8, `seen=` so many before step 1.

Events of a node name no run: `gpu 0 GPU-a 0000:cb:00.0` lists a GPU, `xid 79 0000:cb:00`, `sxid`
and `gpu_fault` break one, `node_fault` the node; `node=` names it (default node-a). With `rank=`
a rank itself records an Xid. `device` is a rank's GPU, `attempt ... local=0` numbers the ranks
within their nodes from 0. After `boot b2` all machines run in another boot.
"""

import math
import shlex
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headway import events as e
from headway.events import Envelope, Event
from headway.step_blocks import UNKNOWN_SAMPLES, Step, pack

SECOND = 10**9
EPOCH = 1_790_000_000 * SECOND
"""Wall-clock time of second 0."""


def seconds(text: str | float) -> int:
    """Return seconds as ns."""
    return round(float(text) * SECOND)


def at(text: str | float) -> int:
    """Return the wall-clock time of a second of the timeline."""
    return EPOCH + seconds(text)


@dataclass
class Timeline:
    """Builds envelopes; each rank is a producer of its own, `None` is the node's agent."""

    run: str = "run"
    attempt: str | None = None
    boot: str = "boot"
    envelopes: list[Envelope] = field(default_factory=list)
    _sequence: dict[int | str | None, int] = field(default_factory=lambda: defaultdict(int))

    def emit(self, time: int, event: Event, rank: int | None = 0, count: int = 1) -> None:
        """Add one event at a time in ns since the epoch of the timeline."""
        first = self._sequence[rank]
        self._sequence[rank] = first + count
        self.envelopes.append(
            Envelope(
                producer=f"rank{rank}",
                anchor=EPOCH,
                first_sequence=first,
                last_sequence=first + count - 1,
                run=self.run,
                attempt=self.attempt,
                rank=rank,
                node="node-a" if rank is None else f"node-{'abcdefgh'[rank // 4 % 8]}",
                boot_id=self.boot,
                wall=EPOCH + time,
                monotonic=time,
                event=event,
            )
        )

    def of_node(self, time: int, event: Event, node: str) -> None:
        """Add an event of a node, as its agent records it, at a time in ns."""
        producer = f"{node} {self.boot}"
        sequence = self._sequence[producer]
        self._sequence[producer] += 1
        self.envelopes.append(
            Envelope(
                producer=producer,
                anchor=EPOCH,
                first_sequence=sequence,
                last_sequence=sequence,
                run=None,
                node=node,
                boot_id=self.boot,
                wall=EPOCH + time,
                monotonic=time,
                event=event,
            )
        )


Arguments = list[str]
Options = dict[str, str]


def timeline(text: str, run: str = "run") -> list[Envelope]:
    """Return the envelopes of a text timeline."""
    built = Timeline(run)
    for number, line in enumerate(text.splitlines(), start=1):
        words = shlex.split(line, comments=True)
        if not words:
            continue
        options = dict(word.split("=", 1) for word in words[2:] if "=" in word)
        arguments = [word for word in words[2:] if "=" not in word]
        begin, _, finish = words[0].partition("-")
        try:
            verb = VERBS[words[1]]
        except KeyError:
            known = ", ".join(sorted(VERBS))
            raise ValueError(f"line {number}: unknown verb {words[1]!r}; known: {known}") from None
        stretch = seconds(begin), seconds(finish or begin)
        verb(built, stretch, arguments, options)
    return built.envelopes


def _ranks(options: Options) -> list[int]:
    low, _, high = options.get("rank", "0").partition("..")
    return list(range(int(low), int(high or low) + 1))


def _each(
    build: Callable[[Arguments, Options], Event],
) -> Callable[[Timeline, tuple[int, int], Arguments, Options], None]:
    def verb(
        built: Timeline, stretch: tuple[int, int], arguments: Arguments, options: Options
    ) -> None:
        for rank in _ranks(options):
            built.emit(stretch[1], build(arguments, options), rank)

    return verb


def _attempt(
    built: Timeline, stretch: tuple[int, int], arguments: Arguments, options: Options
) -> None:
    built.attempt = arguments[0]
    layer = arguments[1] if len(arguments) > 1 else "launcher"
    world = int(options["world"]) if "world" in options else None
    local = _number(options, "local")
    for rank in _ranks(options):
        started = e.AttemptStarted(
            layer=layer,
            world_size=world,
            process_id=_number(options, "pid"),
            torchelastic_restarts=_number(options, "restarts"),
            local_rank=None if local is None else local + rank % 4,
            visible_devices=options.get("visible"),
            scheduler=options.get("scheduler"),
        )
        built.emit(stretch[0], started, rank)


def _steps(
    built: Timeline, stretch: tuple[int, int], arguments: Arguments, options: Options
) -> None:
    low, _, high = arguments[0].partition("-")
    first, last = int(low), int(high or low)
    count = last - first + 1
    begin, end = stretch
    wait = seconds(options.get("wait", "0"))
    steps = []
    for index in range(count):
        values = _values(first + index, options)
        if "each" in options:
            start = begin + index * (seconds(options["each"]) + wait) + wait
            steps.append(Step(start, seconds(options["each"]), wait, *values))
        else:
            a = begin + (end - begin) * index // count
            b = begin + (end - begin) * (index + 1) // count
            steps.append(Step(a + wait, b - a - wait, wait, *values))
    event = e.Steps(first_step=first, version=1, packed=pack(steps))
    for rank in _ranks(options):
        built.emit(steps[-1].start + steps[-1].duration, event, rank, count)


def _values(number: int, options: Options) -> tuple[float, int]:
    """Return loss and samples of a step."""
    loss = float(options["loss"]) * (1 + 1 / number) if "loss" in options else math.nan
    if "samples" not in options:
        return loss, UNKNOWN_SAMPLES
    return loss, number * int(options["samples"]) + int(options.get("seen", "0"))


def _summary(
    built: Timeline, stretch: tuple[int, int], arguments: Arguments, options: Options
) -> None:
    low, _, high = arguments[0].partition("-")
    count = int(high or low) - int(low) + 1
    longest = options.get("longest")
    event = e.StepsSummary(
        first_step=int(low),
        num_steps=count,
        duration=stretch[1] - stretch[0],
        data_wait=seconds(options["wait"]) if "wait" in options else None,
        longest=None if longest is None else seconds(longest),
        longest_step=int(options["longest_step"]) if longest is not None else None,
    )
    for rank in _ranks(options):
        built.emit(stretch[1], event, rank)


def _phase(
    built: Timeline, stretch: tuple[int, int], arguments: Arguments, options: Options
) -> None:
    for rank in _ranks(options):
        built.emit(stretch[0], e.PhaseBegan(phase=arguments[0]), rank)
        if stretch[1] > stretch[0]:
            ended = e.PhaseEnded(
                phase=arguments[0], duration=stretch[1] - stretch[0], error=options.get("error")
            )
            built.emit(stretch[1], ended, rank)


def _alone(
    build: Callable[[Arguments, Options], Event],
) -> Callable[[Timeline, tuple[int, int], Arguments, Options], None]:
    def verb(
        built: Timeline, stretch: tuple[int, int], arguments: Arguments, options: Options
    ) -> None:
        kept, built.attempt = built.attempt, None
        built.emit(stretch[0], build(arguments, options), None)
        built.attempt = kept

    return verb


def _of_node(
    build: Callable[[Arguments, Options], Event],
) -> Callable[[Timeline, tuple[int, int], Arguments, Options], None]:
    def verb(
        built: Timeline, stretch: tuple[int, int], arguments: Arguments, options: Options
    ) -> None:
        event = build(arguments, options)
        if "rank" in options:
            built.emit(stretch[0], event, int(options["rank"]))
        else:
            built.of_node(stretch[0], event, options.get("node", "node-a"))

    return verb


def _boot(
    built: Timeline, stretch: tuple[int, int], arguments: Arguments, options: Options
) -> None:
    built.boot = arguments[0]


def _names(options: Options, name: str) -> tuple[str, ...]:
    return tuple(options[name].split(",")) if name in options else ()


def _optional(options: Options, name: str) -> int | None:
    return seconds(options[name]) if name in options else None


def _number(options: Options, name: str) -> int | None:
    return int(options[name]) if name in options else None


def _step_of(arguments: Arguments) -> int:
    return int(arguments[1]) if len(arguments) > 1 else int(arguments[0].lstrip("abc") or 0)


VERBS: dict[str, Any] = {
    "allocation": _alone(
        lambda a, o: e.Allocation(
            gpus_held=int(a[0]),
            gpus_requested=_number(o, "requested"),
            nodes_held=_number(o, "nodes"),
        )
    ),
    "attempt": _attempt,
    "steps": _steps,
    "summary": _summary,
    "phase": _phase,
    "run_started": _each(lambda a, o: e.RunStarted(run_name=a[0])),
    "configured": _each(
        lambda a, o: e.RunConfigured(
            target_step=_number(o, "target"),
            training_good=tuple(o["good"].split(",")) if "good" in o else (),
            timeouts={
                name: seconds(limit)
                for name, _, limit in (one.partition(":") for one in _names(o, "timeouts"))
            },
            labels={
                name: value
                for name, _, value in (one.partition(":") for one in _names(o, "labels"))
            }
            or None,
        )
    ),
    "budget": _each(
        lambda a, o: e.RestartBudget(layer=a[0], remaining=int(a[1]), limit=_number(o, "limit"))
    ),
    "run_ended": _each(lambda a, o: e.RunEnded(reason=a[0])),
    "resumed": _each(
        lambda a, o: e.Resumed(
            completed=int(a[0]), checkpoint=o.get("from"), requested=o.get("requested")
        )
    ),
    "scheduled": _each(
        lambda a, o: e.CheckpointScheduled(
            checkpoint=a[0],
            step=_step_of(a),
            blocking=_optional(o, "blocking"),
            tier=o.get("tier"),
        )
    ),
    "staged": _each(lambda a, o: e.CheckpointStaged(checkpoint=a[0], step=_step_of(a))),
    "finalized": _each(
        lambda a, o: e.CheckpointFinalized(checkpoint=a[0], step=_step_of(a), tier=o.get("tier"))
    ),
    "save_failed": _each(lambda a, o: e.CheckpointFailed(checkpoint=a[0], step=_step_of(a))),
    "loaded": _each(lambda a, o: e.CheckpointLoaded(checkpoint=a[0], step=_step_of(a))),
    "load_failed": _each(lambda a, o: e.CheckpointLoadFailed(checkpoint=a[0])),
    "fault": _each(
        lambda a, o: e.Fault(
            kind=a[0],
            message=o.get("message"),
            ran_for=_optional(o, "ran_for"),
            timeout=_optional(o, "timeout"),
            exception=o.get("exception"),
            phase=o.get("phase"),
            step=_number(o, "step"),
            suspect_rank=_number(o, "suspect"),
        )
    ),
    "stop": _each(lambda a, o: e.StopAnnounced(reason=a[0])),
    "exit": _each(
        lambda a, o: e.RankExited(
            exit_code=_number(o, "code"), signal=_number(o, "signal"), by=o.get("by", "unknown")
        )
    ),
    "ended": _each(
        lambda a, o: e.AttemptEnded(
            exit_code=_number(o, "code"), signal=_number(o, "signal"), learned_from="function"
        )
    ),
    "heartbeat": _each(
        lambda a, o: e.Heartbeat(
            open_phases=tuple(o["open"].split(",")) if "open" in o else (),
            last_step=_number(o, "step"),
        )
    ),
    "launcher": _alone(
        lambda a, o: e.RestartPhase(
            layer="launcher", phase=a[0], state=a[1] if len(a) > 1 else "began"
        )
    ),
    "wrapper": _each(
        lambda a, o: e.RestartPhase(
            layer="in_process", phase=a[0], state=a[1] if len(a) > 1 else "began"
        )
    ),
    "boot": _boot,
    "gpu": _of_node(
        lambda a, o: e.GpuPresent(
            index=int(a[0]),
            device=a[1],
            pci_address=a[2],
            slices=_names(o, "slices"),
            instances=_names(o, "instances"),
        )
    ),
    "device": _each(
        lambda a, o: e.RankDevice(device=a[0], pci_address=o.get("pci"), slice=o.get("slice"))
    ),
    "xid": _of_node(
        lambda a, o: e.GpuXid(
            code=int(a[0]),
            device=a[1],
            process_id=_number(o, "pid"),
            gpu_instance=_number(o, "gi"),
            compute_instance=_number(o, "ci"),
            repeats=_number(o, "repeats"),
            line=o.get("line"),
            caused_by=_number(o, "caused_by"),
            classification=o.get("class"),
            policy="site 1" if "class" in o else None,
        )
    ),
    "sxid": _of_node(
        lambda a, o: e.GpuSxid(code=int(a[0]), device=a[1], classification=o.get("class"))
    ),
    "gpu_fault": _of_node(
        lambda a, o: e.GpuFault(
            kind=a[0], device=a[1] if len(a) > 1 else None, classification=o.get("class")
        )
    ),
    "node_fault": _of_node(lambda a, o: e.Fault(kind=a[0], message=o.get("message"))),
    "health": _of_node(lambda a, o: e.Health(check=a[0], state=a[1], detail=o.get("detail"))),
    "corrected": _alone(
        lambda a, o: e.IncidentCorrected(
            incident=a[0], cause=a[1], author=o["by"], reason=o.get("reason")
        )
    ),
    "acknowledged": _alone(lambda a, o: e.IncidentAcknowledged(incident=a[0], author=o["by"])),
    "note": _alone(lambda a, o: e.Note(text=a[0])),
    "clock": _alone(lambda a, o: e.Clock(offset=seconds(a[0]))),
    "node_clock": _of_node(lambda a, o: e.Clock(offset=seconds(a[0]))),
}
