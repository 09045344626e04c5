"""What one stored record says, in a few words; what no timeline needs says nothing.

Words do not name the rank or the node: records of several ranks that say the same are one line.
"""

from signal import Signals

from headway.events import (
    Allocation,
    Artifact,
    AttemptEnded,
    AttemptStarted,
    CheckpointFailed,
    CheckpointFinalized,
    CheckpointLoaded,
    CheckpointLoadFailed,
    Dropped,
    Event,
    Fault,
    GpuFault,
    GpuSxid,
    GpuXid,
    Health,
    Heartbeat,
    Misuse,
    NicSample,
    Note,
    RankExited,
    RestartBudget,
    RestartPhase,
    Resumed,
    RunEnded,
    StopAnnounced,
    StorageRecovered,
)
from headway.wording import count, counted, duration, plain, size

LONGEST = 300
"""Characters of a message that are kept; the record has the whole."""
_RESTARTING = {
    "abort": "aborts what is under way",
    "stop_workers": "stops what is left of the processes",
    "finalize": "clears up after the attempt",
    "health_check": "checks the health of the machines",
    "backoff": "waits before the next try",
    "wait_nodes": "waits for nodes",
    "rendezvous": "rendezvous",
    "spawn": "starts the processes",
}
_ENDED_BY = {
    "itself": "by itself",
    "kernel": "killed by the kernel",
    "launcher": "ended by the launcher",
    "scheduler": "ended by the scheduler",
    "person": "ended by a person",
    "unknown": "nobody saw by whom",
}


def words_of(event: Event) -> str | None:
    """Return what a record says; None where a timeline leaves it out."""
    match event:
        case AttemptStarted():
            return _started(event)
        case Resumed():
            return _resumed(event)
        case CheckpointFinalized():
            return f"checkpoint {event.checkpoint} is complete: {counted(event.step, 'step')}"
        case CheckpointFailed():
            return f"checkpoint {event.checkpoint} could not be written{_because(event.reason)}"
        case CheckpointLoaded():
            return f"checkpoint {event.checkpoint} is read back"
        case CheckpointLoadFailed():
            return f"checkpoint {event.checkpoint} could not be read back{_because(event.reason)}"
        case Fault():
            return _fault(event)
        case StopAnnounced():
            grace = "" if event.grace is None else f", within {duration(event.grace)}"
            return f"told to stop{grace}: {plain(event.reason)}"
        case RankExited():
            return f"process is gone: {_exit(event)}, {_ENDED_BY[event.by]}"
        case AttemptEnded():
            told = "" if event.learned_from is None else f", by word of {event.learned_from}"
            return f"leaves the attempt{told}"
        case RestartPhase():
            doing = _RESTARTING[event.phase]
            detail = "" if event.detail is None else f" ({shortened(event.detail)})"
            return f"{doing}{detail}" if event.state == "began" else None
        case RestartBudget():
            whole = "" if event.limit is None else f" of {count(event.limit)}"
            return f"restarts left from now on: {count(event.remaining)}{whole}"
        case Health():
            detail = "" if event.detail is None else f" ({shortened(event.detail)})"
            return f"health check {event.check}: {event.state}{detail}"
        case GpuXid() | GpuSxid() | GpuFault():
            return _of_gpu(event)
        case NicSample():
            return _of_nic(event)
        case Heartbeat():
            return _alive(event)
        case Allocation():
            nodes = event.nodes_held
            where = "" if nodes is None else f" on {counted(nodes, 'node')}"
            return f"holds {counted(event.gpus_held, 'GPU')}{where}"
        case Artifact():
            large = "" if event.size is None else f", {size(event.size)}"
            return f"file kept: {plain(event.kind)}, {event.path}{large}"
        case Note():
            return None if event.about is not None else _note(event)
        case Dropped():
            return f"{counted(event.count, 'record')} lost{_because(event.reason)}"
        case Misuse():
            return f"recorder misused: {plain(event.kind)}{_because(event.detail)}"
        case StorageRecovered():
            return f"the collector's database had to be repaired{_because(event.reason)}"
        case RunEnded():
            return f"the run ends: {event.reason}{_because(event.message)}"
    return None


def shortened(text: str) -> str:
    """Return a text on one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 4]} ..."


def _because(reason: str | None) -> str:
    """Return the words after a colon; those of an exception without a message end in one."""
    said = "" if reason is None else shortened(reason).rstrip(": ")
    return f": {said}" if said else ""


def _started(event: AttemptStarted) -> str:
    if event.layer == "in_process":
        again = event.iteration
        which = "" if again is None else f", iteration {count(again)} of the wrapper"
        return f"begins inside the same process{which}"
    round_ = event.launcher_round
    return (
        "process starts"
        if round_ is None
        else f"process starts, round {count(round_)} of the launcher"
    )


def _resumed(event: Resumed) -> str:
    if event.completed == 0 and event.checkpoint is None:
        return "trains from the beginning: no step is done"
    where = "a state" if event.checkpoint is None else f"checkpoint {event.checkpoint}"
    other = ""
    if event.requested not in (None, event.checkpoint):
        other = f" (asked for was {event.requested})"
    return f"resumes from {where}: {counted(event.completed, 'step')} done{other}"


def _fault(event: Fault) -> str:
    name = event.exception or plain(event.kind)
    where = "" if event.step is None else f" in step {count(event.step)}"
    said = None if event.message == plain(event.kind) else event.message
    return f"{name}{where}{_because(said)}"


def _exit(event: RankExited) -> str:
    if event.signal is not None:
        try:
            return f"signal {event.signal} ({Signals(event.signal).name})"
        except ValueError:
            return f"signal {event.signal}"
    return "no exit code known" if event.exit_code is None else f"exit code {event.exit_code}"


def _of_gpu(event: GpuXid | GpuSxid | GpuFault) -> str:
    match event:
        case GpuXid():
            name = f"Xid {event.code}"
        case GpuSxid():
            name = f"SXid {event.code}"
        case _:
            name = plain(event.kind)
    device = "a GPU" if event.device is None else event.device
    class_ = "" if event.classification is None else f", of class {event.classification}"
    seen = event.source if isinstance(event, GpuFault) and event.line is None else None
    by = "" if seen is None else f", seen by {seen}"
    return f"{name} on {device}{class_}{by}{_because(event.message or event.line)}"


def _of_nic(event: NicSample) -> str | None:
    name = event.device if event.port is None else f"{event.device} port {event.port}"
    if event.link_downs:
        return f"link of {name} went down {counted(event.link_downs, 'time')}"
    return f"link of {name} is down" if event.up is False else None


def _alive(event: Heartbeat) -> str:
    phases = event.open_phases
    inside = f"in {' > '.join(map(plain, phases))}" if phases else "in no phase"
    step = event.last_step
    done = "no step done yet" if step is None else f"its last step is {count(step)}"
    return f"alive, {inside}; {done}"


def _note(event: Note) -> str:
    author = "" if event.author is None else f"{event.author}: "
    return f"{author}{shortened(event.text)}"
