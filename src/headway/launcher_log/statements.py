"""What a line of a launcher can say: one class for each kind of statement. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFailed:
    """The launcher saw the first of its ranks fail; a negative exit code is a signal."""

    exit_code: int
    local_rank: int
    process_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRank:
    """A line of the failure table: whose failure follows."""

    rank: int
    local_rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableExit:
    """A line of the failure table: how the rank named before ended."""

    exit_code: int
    process_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksEnded:
    """`srun` saw tasks end; a negative exit code is a signal."""

    node: str
    tasks: tuple[int, ...]
    exit_code: int
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The launcher sends a signal to one of its ranks."""

    process_id: int
    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """The launcher itself was told to end by a signal."""

    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarting:
    """The launcher restarts its ranks; `remaining` restarts are left after this one.

    `state` says whether all ranks failed (`FAILED`) or some (`UNHEALTHY`); `None` where the
    membership changed or nothing was said. An unknown budget is `None`.
    """

    state: str | None
    remaining: int | None
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted:
    """The launcher gives up: no restart will follow."""

    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSaid:
    """A phase of a restart began or ended; `wall` is the line's own time in UTC ns, if it has one.

    `cycle` is NVRx's count of restarts.
    """

    phase: str
    state: str
    wall: int | None = None
    cycle: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureDetected:
    """A profiling line: the launcher noticed a failure."""

    cycle: int
    wall: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """A line of NVRx's nested restarter, of the layer `InJob` or `InProcess`."""

    layer: str
    state: str
    stage: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """A watchdog of the launcher fired for a rank, `None` where the line does not name it.

    `kind` is `heartbeat_timeout` or `section_timeout`; `waited` and `timeout` are ns. NVRx 0.6
    names the rank on its node.
    """

    kind: str
    rank: int | None
    local_rank: int | None = None
    waited: int
    timeout: int
    section: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelled:
    """Slurm ended the job step and said why."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OomNoted:
    """Slurm counted kills for lack of memory in the job step."""

    kills: int


Said = (
    RankFailed
    | TableRank
    | TableExit
    | TasksEnded
    | Closing
    | Stopping
    | Restarting
    | Exhausted
    | PhaseSaid
    | FailureDetected
    | Nested
    | TimedOut
    | Cancelled
    | OomNoted
)
