"""Every event that Headway records, declared once.

Each class is one kind of event: its docstring, its fields, their units and their sentences are
the only place where these are written. Wire names, tables and the reference page derive from
here (`headway.wire`, `headway generate`). Standard library only: training processes import it.

Times are UTC integer nanoseconds, durations integer nanoseconds of a monotonic clock, bytes are
bytes, ratios are 0 to 1, and `None` means unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Described:
    """One sentence about a field, its unit, and its values where they are a closed set.

    Integers are non-negative unless `signed`.
    """

    sentence: str
    unit: str | None = None
    choices: tuple[str, ...] = ()
    signed: bool = False


LAYERS = ("scheduler", "launcher", "in_process")
SCHEDULERS = ("slurm", "kubernetes")
PHASES = (
    "startup",
    "import",
    "rendezvous",
    "model",
    "warmup",
    "checkpoint_load",
    "step",
    "data_wait",
    "checkpoint_save",
    "evaluation",
)
FAULT_KINDS = (
    "exception",
    "gpu_oom",
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
    "health_check",
    "numerical",
    "unknown",
)
STOP_REASONS = ("sigterm", "preemption", "time_limit", "maintenance", "operator")
RESTART_PHASES = (
    "abort",
    "stop_workers",
    "finalize",
    "health_check",
    "backoff",
    "wait_nodes",
    "rendezvous",
    "spawn",
)
EXIT_BY = ("itself", "kernel", "launcher", "scheduler", "person", "unknown")
CAUSES = (
    "exception",
    "gpu_oom",
    "host_oom",
    "collective_timeout",
    "hang",
    "killed",
    "gpu_fault",
    "node_lost",
    "network",
    "storage",
    "preemption",
    "time_limit",
    "operator",
    "startup_failure",
    "numerical",
    "unknown",
)
"""Every class of incident."""
TIERS = ("memory", "local", "shared")
GPU_FAULT_CLASSES = (
    "application",
    "reset",
    "reboot",
    "replace",
    "watch",
    "consequence",
)
"""What a GPU fault asks for: nothing of the machine, or what has to be done to the GPU or node."""
GPU_FAULT_KINDS = (
    "lost",
    "fallen_off_bus",
    "reset_required",
    "gsp_heartbeat",
    "query_hung",
    "ecc_uncorrected",
    "row_remap_failed",
    "page_retirement",
    "recovery_action",
    "xid_changed",
)
END_REASONS = ("completed", "failed", "stopped")
NOTE_SUBJECTS = ("run", "incident", "node", "configuration")
"""What a person's note can be about; a configuration is that of one attempt."""

_NANOSECONDS = "ns"


class Event:
    """One thing that happened; subclasses declare the kinds."""

    __slots__ = ()
    name: ClassVar[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A training run began at step 0."""

    name: ClassVar[str] = "run.started"
    run_name: Annotated[str, Described("Name that people gave the run.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The run is over and no attempt will follow."""

    name: ClassVar[str] = "run.ended"
    reason: Annotated[str, Described("How the run ended.", choices=END_REASONS)]
    message: Annotated[str | None, Described("What the program said about its end.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfigured(Event):
    """Settings of the run as one attempt saw them."""

    name: ClassVar[str] = "run.configured"
    target_step: Annotated[int | None, Described("Step at which the run is complete.", "steps")] = (
        None
    )
    checkpoint_interval: Annotated[
        int | None, Described("Steps between two scheduled checkpoints.", "steps")
    ] = None
    world_size: Annotated[int | None, Described("Ranks of the group.", "ranks")] = None
    min_world_size: Annotated[
        int | None, Described("Fewest ranks with which the group trains.", "ranks")
    ] = None
    parallelism: Annotated[
        Mapping[str, Scalar] | None, Described("Degree of each kind of parallelism.")
    ] = None
    timeouts: Annotated[
        Mapping[str, Scalar] | None, Described("Every configured timeout by name.", _NANOSECONDS)
    ] = None
    restart_limits: Annotated[
        Mapping[str, Scalar] | None, Described("Restarts allowed per layer.", "restarts")
    ] = None
    versions: Annotated[Mapping[str, Scalar] | None, Described("Version of each library.")] = None
    code_revision: Annotated[str | None, Described("Revision of the training code.")] = None
    tokens_per_step: Annotated[int | None, Described("Tokens in one optimizer step.", "tokens")] = (
        None
    )
    flops_per_step: Annotated[
        float | None, Described("Floating-point operations in one optimizer step.", "flop")
    ] = None
    labels: Annotated[
        Mapping[str, Scalar] | None,
        Described("Team, cluster, owner, GPU type, priority and the like."),
    ] = None
    links: Annotated[Mapping[str, Scalar] | None, Described("Addresses of tracker and logs.")] = (
        None
    )
    options: Annotated[
        Mapping[str, Scalar] | None, Described("Any other option worth comparing.")
    ] = None
    command: Annotated[
        str | None, Described("Command line of the process that told the settings.")
    ] = None
    environment: Annotated[
        Mapping[str, Scalar] | None, Described("Environment variables that steer libraries.")
    ] = None
    training_good: Annotated[
        tuple[str, ...], Described("Custom categories whose time counts as training good.")
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation(Event):
    """Machines that the run holds and has asked for, from this moment on."""

    name: ClassVar[str] = "allocation"
    gpus_held: Annotated[int, Described("GPUs held by the run.", "GPUs")]
    gpus_requested: Annotated[int | None, Described("GPUs the run asked for.", "GPUs")] = None
    nodes_held: Annotated[int | None, Described("Nodes held by the run.", "nodes")] = None
    nodes_requested: Annotated[int | None, Described("Nodes the run asked for.", "nodes")] = None
    source: Annotated[str | None, Described("Who says so.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStarted(Event):
    """One rank's process (in process: its function) entered an attempt; the time is its start."""

    name: ClassVar[str] = "attempt.started"
    layer: Annotated[str, Described("Who started the attempt.", choices=LAYERS)]
    world_size: Annotated[int | None, Described("Ranks of the group.", "ranks")] = None
    process_id: Annotated[int | None, Described("Operating system's process id.")] = None
    local_rank: Annotated[int | None, Described("Rank within the node.")] = None
    scheduler_job: Annotated[str | None, Described("Job id of the scheduler.")] = None
    launcher_round: Annotated[
        int | None, Described("Round, generation or cycle of the launcher.")
    ] = None
    iteration: Annotated[int | None, Described("Iteration of the in-process wrapper.")] = None
    torchelastic_restarts: Annotated[
        int | None, Described("TORCHELASTIC_RESTART_COUNT, as evidence only.")
    ] = None
    slurm_restarts: Annotated[int | None, Described("SLURM_RESTART_COUNT, as evidence only.")] = (
        None
    )
    visible_devices: Annotated[
        str | None, Described("CUDA_VISIBLE_DEVICES of the process, as evidence only.")
    ] = None
    scheduler: Annotated[
        str | None, Described("Who gave the run its machines.", choices=SCHEDULERS)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptBound(Event):
    """Records of this producer belong to an attempt whose identity became known later."""

    name: ClassVar[str] = "attempt.bound"
    attempt: Annotated[str, Described("Identity of the attempt.")]
    first_sequence: Annotated[int, Described("First record that belongs to it.")]
    last_sequence: Annotated[int, Described("Last record that belongs to it.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded(Event):
    """One rank left the attempt."""

    name: ClassVar[str] = "attempt.ended"
    exit_code: Annotated[int | None, Described("Exit code, if the process ended.", signed=True)] = (
        None
    )
    signal: Annotated[int | None, Described("Signal that ended the process.")] = None
    learned_from: Annotated[str | None, Described("How the end became known.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseBegan(Event):
    """One rank entered a phase; a phase that never ends names the culprit of a hang."""

    name: ClassVar[str] = "phase.began"
    phase: Annotated[str, Described("Name of the phase; `custom:` names are the user's.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnded(Event):
    """One rank left a phase; the phase began `duration` before this event."""

    name: ClassVar[str] = "phase.ended"
    phase: Annotated[str, Described("Name of the phase.")]
    duration: Annotated[int, Described("Time spent in it.", _NANOSECONDS)]
    error: Annotated[str | None, Described("Exception that ended it early.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Event):
    """Consecutive completed steps of one rank in full detail; the time is the last step's end.

    One record of the producer per step, so an envelope of n records carries n steps.
    """

    name: ClassVar[str] = "steps"
    first_step: Annotated[int, Described("Number of the first step.", "steps")]
    version: Annotated[int, Described("Layout of `packed`, see `headway.step_blocks`.")]
    packed: Annotated[
        bytes,
        Described("Start, duration, data wait, loss and samples of each step, little-endian."),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsSummary(Event):
    """Consecutive completed steps as one line; the time is the last step's end."""

    name: ClassVar[str] = "steps.summary"
    first_step: Annotated[int, Described("Number of the first step.", "steps")]
    num_steps: Annotated[int, Described("Number of steps.", "steps")]
    duration: Annotated[
        int, Described("From the start of the first step to the end of the last.", _NANOSECONDS)
    ]
    step_time: Annotated[
        int | None, Described("Sum of the steps' own durations.", _NANOSECONDS)
    ] = None
    data_wait: Annotated[int | None, Described("Sum of the waits for data.", _NANOSECONDS)] = None
    longest: Annotated[int | None, Described("Duration of the longest step.", _NANOSECONDS)] = None
    longest_step: Annotated[int | None, Described("Number of the longest step.", "steps")] = None
    loss: Annotated[float | None, Described("Loss of the last step.")] = None
    samples: Annotated[int | None, Described("Samples consumed so far.", "samples")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event):
    """Training continues from a restored state; the next step is `completed` + 1."""

    name: ClassVar[str] = "resumed"
    completed: Annotated[int, Described("Optimizer steps in the restored state.", "steps")]
    checkpoint: Annotated[str | None, Described("Checkpoint it came from.")] = None
    requested: Annotated[str | None, Described("Checkpoint that was asked for.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointScheduled(Event):
    """A save was handed over; the time is the moment training went on."""

    name: ClassVar[str] = "checkpoint.scheduled"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int, Described("Optimizer steps in the saved state.", "steps")]
    blocking: Annotated[int | None, Described("Time for which training waited.", _NANOSECONDS)] = (
        None
    )
    bytes_staged: Annotated[int | None, Described("Bytes copied for the writer.", "bytes")] = None
    queue_depth: Annotated[int | None, Described("Saves not yet finalized.", "checkpoints")] = None
    tier: Annotated[str | None, Described("Where the copy lies.", choices=TIERS)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointStaged(Event):
    """The state is copied, so that training may change it again; the time is the copy's end."""

    name: ClassVar[str] = "checkpoint.staged"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int, Described("Optimizer steps in the saved state.", "steps")]
    duration: Annotated[int | None, Described("Time the copy took.", _NANOSECONDS)] = None
    bytes_staged: Annotated[int | None, Described("Bytes copied by this rank.", "bytes")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFinalized(Event):
    """A checkpoint's completion was observed: from now on it is durable (claimed)."""

    name: ClassVar[str] = "checkpoint.finalized"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int, Described("Optimizer steps in the saved state.", "steps")]
    background: Annotated[int | None, Described("From scheduled to finalized.", _NANOSECONDS)] = (
        None
    )
    bytes_written: Annotated[int | None, Described("Bytes written by this rank.", "bytes")] = None
    tier: Annotated[str | None, Described("Where the copy lies.", choices=TIERS)] = None
    bytes_total: Annotated[
        int | None, Described("Bytes of the whole checkpoint, those of all ranks.", "bytes")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointFailed(Event):
    """A scheduled save did not complete."""

    name: ClassVar[str] = "checkpoint.failed"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int, Described("Optimizer steps in the state to be saved.", "steps")]
    reason: Annotated[str | None, Described("Why it failed.")] = None
    background: Annotated[
        int | None, Described("From scheduled until it was known to have failed.", _NANOSECONDS)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLoaded(Event):
    """A checkpoint was read back completely: it is verified."""

    name: ClassVar[str] = "checkpoint.loaded"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int, Described("Optimizer steps in the state.", "steps")]
    duration: Annotated[int | None, Described("Time the load took.", _NANOSECONDS)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLoadFailed(Event):
    """A checkpoint could not be read back: from now on it is revoked."""

    name: ClassVar[str] = "checkpoint.load_failed"
    checkpoint: Annotated[str, Described("Identity of the checkpoint within the run.")]
    step: Annotated[int | None, Described("Optimizer steps it was believed to hold.", "steps")] = (
        None
    )
    reason: Annotated[str | None, Described("Why it failed.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault(Event):
    """One observed breakage; the time is the observation's."""

    name: ClassVar[str] = "fault"
    kind: Annotated[str, Described("What was observed.", choices=FAULT_KINDS)]
    message: Annotated[str | None, Described("Its words.")] = None
    exception: Annotated[str | None, Described("Qualified name of the exception.")] = None
    traceback: Annotated[str | None, Described("Where it was raised.")] = None
    signal: Annotated[int | None, Described("Signal that ended the rank.")] = None
    ran_for: Annotated[
        int | None, Described("How long the watchdog had waited when it fired.", _NANOSECONDS)
    ] = None
    timeout: Annotated[int | None, Described("Its configured limit.", _NANOSECONDS)] = None
    phase: Annotated[str | None, Described("Phase or section in which it struck.")] = None
    step: Annotated[int | None, Described("Step during which it struck.", "steps")] = None
    suspect_rank: Annotated[int | None, Described("Rank that the evidence accuses.")] = None
    suspect_node: Annotated[str | None, Described("Node that the evidence accuses.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopAnnounced(Event):
    """The attempt was told to stop."""

    name: ClassVar[str] = "stop.announced"
    reason: Annotated[str, Described("Who wants it to stop, or why.", choices=STOP_REASONS)]
    grace: Annotated[int | None, Described("Time until it is killed.", _NANOSECONDS)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Health(Event):
    """Result of one health check."""

    name: ClassVar[str] = "health"
    check: Annotated[str, Described("Name of the check.")]
    state: Annotated[str, Described("Its result.", choices=("healthy", "unhealthy", "disabled"))]
    detail: Annotated[str | None, Described("Its words.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPhase(Event):
    """A launcher or wrapper entered or left one phase of a restart."""

    name: ClassVar[str] = "restart.phase"
    layer: Annotated[str, Described("Which layer restarts.", choices=LAYERS)]
    phase: Annotated[str, Described("Phase of the restart.", choices=RESTART_PHASES)]
    state: Annotated[str, Described("Whether it begins or ends.", choices=("began", "ended"))]
    detail: Annotated[str | None, Described("Its words.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartBudget(Event):
    """How many more restarts a layer allows, each time that it is known."""

    name: ClassVar[str] = "restart.budget"
    layer: Annotated[str, Described("Which layer restarts.", choices=LAYERS)]
    remaining: Annotated[int, Described("Restarts left.", "restarts")]
    limit: Annotated[int | None, Described("Restarts allowed in all.", "restarts")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankDevice(Event):
    """The GPU, or the slice of one, on which a rank works."""

    name: ClassVar[str] = "rank.device"
    device: Annotated[str, Described("GPU's UUID.")]
    pci_address: Annotated[str | None, Described("GPU's PCI address.")] = None
    local_rank: Annotated[int | None, Described("Rank within the node.")] = None
    slice: Annotated[str | None, Described("UUID of the MIG slice.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPresent(Event):
    """A GPU of the node, as its driver lists it; said again when anything of it changes."""

    name: ClassVar[str] = "gpu.present"
    device: Annotated[str, Described("GPU's UUID.")]
    pci_address: Annotated[str, Described("GPU's PCI address.")]
    index: Annotated[int, Described("Number of the GPU on its node.")]
    product: Annotated[str | None, Described("Name of the product.")] = None
    serial: Annotated[str | None, Described("Serial number of the board.")] = None
    driver: Annotated[str | None, Described("Version of the driver.")] = None
    slices: Annotated[tuple[str, ...], Described("UUIDs of its MIG slices.")] = ()
    instances: Annotated[
        tuple[str, ...],
        Described("GPU and compute instance of each slice, such as `2/0`, in the same order."),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFault(Event):
    """A GPU fault that is known by something else than an Xid."""

    name: ClassVar[str] = "gpu.fault"
    kind: Annotated[str, Described("What was observed.", choices=GPU_FAULT_KINDS)]
    device: Annotated[
        str | None,
        Described("GPU's UUID or PCI address, else the driver's number such as `GPU6`."),
    ] = None
    source: Annotated[str | None, Described("Who saw it: kernel log, NVML, DCGM, ...")] = None
    message: Annotated[str | None, Described("Its words.")] = None
    code: Annotated[int | None, Described("Its raw number, where it has one.")] = None
    classification: Annotated[
        str | None, Described("What it asks for.", choices=GPU_FAULT_CLASSES)
    ] = None
    policy: Annotated[str | None, Described("Name and version of the policy that says so.")] = None
    line: Annotated[str | None, Described("The raw kernel line.")] = None
    repeats: Annotated[int | None, Described("Kernel lines united in this event.", "lines")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuXid(Event):
    """The driver reported an Xid."""

    name: ClassVar[str] = "gpu.xid"
    code: Annotated[int, Described("Xid number.")]
    device: Annotated[str, Described("GPU's UUID or PCI address.")]
    process_id: Annotated[int | None, Described("Process named by the driver.")] = None
    process: Annotated[str | None, Described("Its name.")] = None
    message: Annotated[str | None, Described("The driver's words.")] = None
    line: Annotated[str | None, Described("The raw kernel line.")] = None
    gpu_instance: Annotated[int | None, Described("GPU instance of a MIG slice.")] = None
    compute_instance: Annotated[int | None, Described("Compute instance of a MIG slice.")] = None
    sub_code: Annotated[int | None, Described("NVLink 5 sub-code.")] = None
    unit: Annotated[str | None, Described("Unit of NVLink 5 that reported it.")] = None
    error_status: Annotated[int | None, Described("Error status of that unit.")] = None
    fatal: Annotated[bool | None, Described("Whether the driver calls it fatal.")] = None
    link: Annotated[
        int | None, Described("NVLink on which it occurred; -1 is no particular one.", signed=True)
    ] = None
    recovery_action: Annotated[
        int | None, Described("Recovery action that Xid 154 names, by NVML's number.")
    ] = None
    caused_by: Annotated[int | None, Described("Xid that the driver names as its cause.")] = None
    repeats: Annotated[int | None, Described("Kernel lines united in this event.", "lines")] = None
    classification: Annotated[
        str | None, Described("What it asks for.", choices=GPU_FAULT_CLASSES)
    ] = None
    policy: Annotated[str | None, Described("Name and version of the policy that says so.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSxid(Event):
    """The driver reported an NVSwitch error."""

    name: ClassVar[str] = "gpu.sxid"
    code: Annotated[int, Described("SXid number.")]
    device: Annotated[str, Described("Switch's PCI address.")]
    fatal: Annotated[bool | None, Described("Whether the driver calls it fatal.")] = None
    link: Annotated[int | None, Described("Link on which it occurred.")] = None
    line: Annotated[str | None, Described("The raw kernel line.")] = None
    message: Annotated[str | None, Described("The driver's words.")] = None
    repeats: Annotated[int | None, Described("Kernel lines united in this event.", "lines")] = None
    classification: Annotated[
        str | None, Described("What it asks for.", choices=GPU_FAULT_CLASSES)
    ] = None
    policy: Annotated[str | None, Described("Name and version of the policy that says so.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample(Event):
    """State of one GPU."""

    name: ClassVar[str] = "gpu.sample"
    device: Annotated[str, Described("GPU's UUID.")]
    temperature: Annotated[float | None, Described("Temperature.", "degC")] = None
    power: Annotated[float | None, Described("Power draw.", "W")] = None
    memory_used: Annotated[int | None, Described("Memory in use.", "bytes")] = None
    utilization: Annotated[float | None, Described("Share of time with a kernel running.")] = None
    memory_total: Annotated[int | None, Described("Memory installed.", "bytes")] = None
    throttle: Annotated[
        tuple[str, ...] | None,
        Described("What holds its clocks down; empty where nothing does."),
    ] = None
    recovery_action: Annotated[
        int | None, Described("Recovery action that the driver asks for, by NVML's number.")
    ] = None
    ecc_corrected: Annotated[
        int | None, Described("Corrected memory errors since the driver was loaded.", "errors")
    ] = None
    ecc_uncorrected: Annotated[
        int | None, Described("Uncorrected memory errors since the driver was loaded.", "errors")
    ] = None
    remapped_correctable: Annotated[
        int | None, Described("Rows replaced for corrected errors in its life.", "rows")
    ] = None
    remapped_uncorrectable: Annotated[
        int | None, Described("Rows replaced for uncorrected errors in its life.", "rows")
    ] = None
    retirement_pending: Annotated[
        bool | None, Described("Whether rows or pages wait for a reset to be replaced.")
    ] = None
    remap_failed: Annotated[
        bool | None, Described("Whether a row could not be replaced in its life.")
    ] = None
    pcie_replays: Annotated[int | None, Described("PCIe replays since the reset.", "replays")] = (
        None
    )
    nvlinks_up: Annotated[int | None, Described("NVLinks that are up.", "links")] = None
    nvlink_errors: Annotated[
        int | None, Described("Errors that its NVLinks have counted.", "errors")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NicSample(Event):
    """State of one port of a network adapter, told when anything of it changed."""

    name: ClassVar[str] = "nic.sample"
    device: Annotated[str, Described("Name of the adapter on its node.")]
    port: Annotated[int | None, Described("Port of an InfiniBand adapter.")] = None
    state: Annotated[str | None, Described("State of the link in the kernel's words.")] = None
    up: Annotated[bool | None, Described("Whether the link is up.")] = None
    link_downs: Annotated[
        int | None, Described("Times the link went down since the last sample.", "times")
    ] = None
    counters: Annotated[
        Mapping[str, Scalar] | None,
        Described("Error counters that rose since the last sample, and by how much."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeMemory(Event):
    """Memory of one node."""

    name: ClassVar[str] = "node.memory"
    available: Annotated[int, Described("Memory available.", "bytes")]
    total: Annotated[int | None, Described("Memory installed.", "bytes")] = None
    pressure: Annotated[
        float | None, Described("Share of the last 10 s in which some task waited for memory.")
    ] = None
    oom_kills: Annotated[
        int | None, Described("Processes killed for lack of memory since the boot.", "processes")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock(Event):
    """How far a node's clock is from the collector's; add `offset` to the node's times."""

    name: ClassVar[str] = "clock"
    offset: Annotated[
        int, Described("Collector's clock minus the node's.", _NANOSECONDS, signed=True)
    ]
    error: Annotated[int | None, Described("Largest error of the offset.", _NANOSECONDS)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat(Event):
    """A rank was alive at this time."""

    name: ClassVar[str] = "heartbeat"
    open_phases: Annotated[tuple[str, ...], Described("Phases it was in, the innermost last.")] = ()
    last_step: Annotated[int | None, Described("Last completed step.", "steps")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderCost(Event):
    """What recording one step took of the training, as the recorder measured it now and then."""

    name: ClassVar[str] = "recorder.cost"
    step: Annotated[
        int, Described("Time from the call to its return, at begin and end.", _NANOSECONDS)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCost(Event):
    """What the node agent takes of its node."""

    name: ClassVar[str] = "agent.cost"
    cpu: Annotated[float, Described("Share of one core since the sample before.")]
    memory: Annotated[int, Described("Memory resident.", "bytes")]
    version: Annotated[str | None, Described("The agent's version of Headway.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankExited(Event):
    """A rank's process ended, as its parent or its node saw it."""

    name: ClassVar[str] = "rank.exited"
    exit_code: Annotated[int | None, Described("Exit code.", signed=True)] = None
    signal: Annotated[int | None, Described("Signal that ended it.")] = None
    by: Annotated[str, Described("Who ended it.", choices=EXIT_BY)] = "unknown"
    process_id: Annotated[int | None, Described("Operating system's process id.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact(Event):
    """A file that helps to explain an incident."""

    name: ClassVar[str] = "artifact"
    kind: Annotated[str, Described("What it is.")]
    path: Annotated[str, Described("Where it lies.")]
    size: Annotated[int | None, Described("Its size.", "bytes")] = None
    sha256: Annotated[str | None, Described("Its checksum.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Note(Event):
    """Something a person or a program wanted to be remembered."""

    name: ClassVar[str] = "note"
    text: Annotated[str, Described("Its words; empty where it only changes labels.")]
    author: Annotated[str | None, Described("Who wrote it.")] = None
    about: Annotated[
        str | None, Described("What a person's note is about.", choices=NOTE_SUBJECTS)
    ] = None
    subject: Annotated[
        str | None, Described("Identity of that run, incident, node or attempt.")
    ] = None
    labels: Annotated[tuple[str, ...], Described("Labels that its subject gets.")] = ()
    labels_removed: Annotated[tuple[str, ...], Described("Labels that its subject loses.")] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultAttached(Event):
    """The result of a benchmark or a drill, kept with the configuration that produced it."""

    name: ClassVar[str] = "result.attached"
    title: Annotated[str, Described("Name of the benchmark or drill; results of one compare.")]
    content: Annotated[str, Described("What it printed, a JSON object.")]
    configuration: Annotated[
        str, Described("Identity of the attempt whose configuration produced it.")
    ]
    author: Annotated[str | None, Described("Who attached it.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentAcknowledged(Event):
    """A person took charge of an incident."""

    name: ClassVar[str] = "incident.acknowledged"
    incident: Annotated[str, Described("Identity of the incident.")]
    author: Annotated[str, Described("Who took charge.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentCorrected(Event):
    """A person corrected the cause of an incident; the rule's own verdict stays on record."""

    name: ClassVar[str] = "incident.corrected"
    incident: Annotated[str, Described("Identity of the incident.")]
    cause: Annotated[str, Described("The cause in the person's judgement.", choices=CAUSES)]
    author: Annotated[str, Described("Who says so.")]
    reason: Annotated[str | None, Described("Why.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(Event):
    """Records that were lost before they could be stored."""

    name: ClassVar[str] = "dropped"
    count: Annotated[int, Described("How many.", "records")]
    reason: Annotated[str, Described("Why.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRecovered(Event):
    """The collector could open its database only after repairing its log, or found it short."""

    name: ClassVar[str] = "storage.recovered"
    reason: Annotated[str, Described("What was wrong.")]
    set_aside: Annotated[
        tuple[str, ...], Described("Where what was damaged is kept, to be looked at.")
    ] = ()
    kept: Annotated[int, Described("Part of the log that was whole.", "bytes")] = 0
    damaged: Annotated[int, Described("Part of the log that could not be read.", "bytes")] = 0
    lost: Annotated[
        int, Described("Records that had been acknowledged and are not stored.", "records")
    ] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Misuse(Event):
    """The recorder was used in a way it cannot make sense of; reported once per kind."""

    name: ClassVar[str] = "misuse"
    kind: Annotated[str, Described("What was wrong.")]
    detail: Annotated[str | None, Described("The offending value and the next step.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """One event, or a range of step records, with who recorded it and when.

    The producer's clock counts: event time is `anchor` + `monotonic`, plus the offset of the
    node's boot. `wall` is the wall clock's own opinion and only shows steps of that clock.
    """

    producer: Annotated[str, Described("Random 128-bit id of one recorder instance, in hex.")]
    anchor: Annotated[
        int,
        Described(
            "Wall-clock time at which the producer's monotonic clock read 0.", "ns", signed=True
        ),
    ]
    first_sequence: Annotated[int, Described("First record of the producer in this envelope.")]
    last_sequence: Annotated[int, Described("Last record of the producer in this envelope.")]
    run: Annotated[str | None, Described("Identity of the run.")]
    attempt: Annotated[str | None, Described("Identity of the attempt, once known.")] = None
    rank: Annotated[int | None, Described("Global rank that the event is about.")] = None
    node: Annotated[str | None, Described("Node that the event is about.")] = None
    boot_id: Annotated[str | None, Described("Identity of the node's boot.")] = None
    wall: Annotated[int, Described("Wall clock at the event.", "ns")]
    monotonic: Annotated[int, Described("Monotonic clock at the event.", "ns")]
    event: Event


EVENTS: Mapping[str, type[Event]] = {
    kind.name: kind
    for _, kind in sorted(globals().items())
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
}
"""Every kind of event by its wire name."""
