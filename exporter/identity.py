"""Who this process is: run, attempt, rank, node, boot and the moment it was started.

What the launchers and schedulers say in the environment is read here and nowhere else. Their
counters of restarts mean different things in torchrun, NVRx 0.4.1 and NVRx 0.6, so they are
evidence, and part of the attempt's identity only where nothing better is known.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

RUN_ID_FILE = ".headway_run_id"
_NO_RUN_ID = "none"
"""torchrun's name for a run without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Where this process stands in its group."""

    rank: int
    local_rank: int | None
    world_size: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Who started this process, as far as its environment tells."""

    layer: str
    scheduler_job: str | None
    launcher_round: int | None
    torchelastic_restarts: int | None
    slurm_restarts: int | None
    slurm_step: str | None
    """The `srun` that started the ranks; a launcher's agents may each have one of their own."""
    launcher_run: str | None
    scheduler: str | None
    visible_devices: str | None
    spans_nodes: bool
    group: str
    """Tells apart two launches that no scheduler numbers: the same for all ranks of one."""


def ranks(environment: Mapping[str, str]) -> Ranks:
    """Return the rank that launcher or Slurm assigned; a program without either is rank 0."""
    rank = _first(environment, "RANK", "SLURM_PROCID")
    return Ranks(
        rank=0 if rank is None else rank,
        local_rank=_first(environment, "LOCAL_RANK", "SLURM_LOCALID"),
        world_size=_first(environment, "WORLD_SIZE", "SLURM_NTASKS"),
    )


def launch(environment: Mapping[str, str], *, of_many: bool = False, earlier: int = 0) -> Launch:
    """Return who started this process.

    A program that nobody launched as one of many is a launch of its own, or two trainings from
    one shell would be one; `of_many` says that it is one of many all the same. `earlier` counts
    the trainings that this process has been through.
    """
    torchelastic = _first(environment, "TORCHELASTIC_RESTART_COUNT")
    slurm = _first(environment, "SLURM_RESTART_COUNT", "SLURM_RESTART_CNT")
    job = environment.get("SLURM_ARRAY_JOB_ID") or environment.get("SLURM_JOB_ID") or None
    if job and environment.get("SLURM_ARRAY_TASK_ID"):
        job = f"{job}_{environment['SLURM_ARRAY_TASK_ID']}"
    cycle = _cycle(environment.get("NVRX_CURRENT_CYCLE_INFO"))
    elastic = environment.get("TORCHELASTIC_RUN_ID", _NO_RUN_ID)
    under_launcher = "TORCHELASTIC_RUN_ID" in environment or torchelastic is not None
    return Launch(
        layer="launcher" if under_launcher else "scheduler",
        scheduler_job=job,
        launcher_round=torchelastic if cycle is None else cycle,
        torchelastic_restarts=torchelastic,
        slurm_restarts=slurm,
        slurm_step=None if under_launcher else environment.get("SLURM_STEP_ID"),
        launcher_run=None if elastic == _NO_RUN_ID else elastic,
        scheduler=_scheduler(job, environment),
        visible_devices=environment.get("CUDA_VISIBLE_DEVICES"),
        spans_nodes=_spans_nodes(environment),
        group=_group(environment, of_many, earlier),
    )


def _scheduler(job: str | None, environment: Mapping[str, str]) -> str | None:
    """Return who gave this process its machine; Slurm may itself run on Kubernetes."""
    if job is not None:
        return "slurm"
    return "kubernetes" if environment.get("KUBERNETES_SERVICE_HOST") else None


def run_id(configured: str | None, checkpoints: Path | None, launch: Launch) -> tuple[str, bool]:
    """Return the run's identity and whether it was made up just now.

    The file beside the checkpoints goes with the state of the training: a job that is submitted
    again continues the run, an emptied folder begins another one. The folder must be one that
    all ranks share.

    Raises:
        OSError: the folder cannot be read or written.
        ValueError: the file in it holds no identity.
    """
    if configured:
        return configured, False
    made_up = digest(launch.group, digits=8)
    if checkpoints is not None:
        return _stored_run_id(checkpoints, made_up)
    named = launch.scheduler_job or launch.launcher_run
    return (made_up, True) if named is None else (named, False)


def clock_anchor(monotonic: Callable[[], int], wall: Callable[[], int], samples: int = 5) -> int:
    """Return wall clock minus monotonic clock, in ns.

    The closest of some pairs of readings: this process may be put aside between the two.
    """
    found = []
    for _ in range(samples):
        before, now, after = monotonic(), wall(), monotonic()
        found.append((after - before, now - (before + after) // 2))
    return min(found)[1]


def attempt_id(
    run: str, scheduler_job: str | None, launcher_round: int | None, iteration: int | None
) -> str:
    """Return the identity of an attempt: 16 hexadecimal digits, never all zero.

    No round and no iteration are round and iteration 0: the in-process wrapper's first iteration
    is the attempt that its process started.
    """
    return digest(run, scheduler_job or "", str(launcher_round or 0), str(iteration or 0))


def node(environment: Mapping[str, str]) -> str:
    """Return the node's name as scheduler or cluster knows it, else the host's."""
    return environment.get("SLURMD_NODENAME") or environment.get("NODE_NAME") or os.uname().nodename


def boot_id(path: Path = Path("/proc/sys/kernel/random/boot_id")) -> str | None:
    """Return the identity of this boot of the node."""
    try:
        return path.read_text(encoding="ascii").strip() or None
    except OSError:
        return None


def process_started(process_id: int | str = "self", proc: Path = Path("/proc")) -> int | None:
    """Return when a process started, in ns of the monotonic clock, to 10 ms."""
    try:
        stat = (proc / str(process_id) / "stat").read_bytes()
        # The command's name may hold spaces and brackets; the fields count from its last bracket.
        ticks = int(stat.rpartition(b")")[2].split()[19])
        since_boot = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
    suspended = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    return min(max(since_boot - suspended, 0), time.monotonic_ns())


def _first(environment: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        value = environment.get(name, "")
        if value.isascii() and value.isdigit():
            return int(value)
    return None


def _group(environment: Mapping[str, str], of_many: bool, earlier: int) -> str:
    """Return what is the same for the ranks of one launch and differs between two launches."""
    size = _first(environment, "WORLD_SIZE")
    launched = "TORCHELASTIC_RUN_ID" in environment or (size is not None and size > 1)
    if not launched and not of_many:
        own = os.getpid()
        return f"{boot_id()}/{own}/{_started_ticks(own)}/{earlier}"
    if _spans_nodes(environment):
        names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
        return "/".join(environment.get(name, "") for name in names)
    # One node: all ranks have the same parent, and no other parent started at that time.
    parent = os.getppid()
    return f"{boot_id()}/{parent}/{_started_ticks(parent)}"


def _spans_nodes(environment: Mapping[str, str]) -> bool:
    size, local = _first(environment, "WORLD_SIZE"), _first(environment, "LOCAL_WORLD_SIZE")
    if size is None or size == 1:
        return False
    if local is not None:
        return size > local
    # Without a launcher's count of local ranks only the address tells that all are on this node.
    address = environment.get("MASTER_ADDR", "")
    return address not in ("", "localhost") and not address.startswith("127.")


def _started_ticks(process_id: int) -> str:
    try:
        stat = Path(f"/proc/{process_id}/stat").read_bytes()
    except OSError:
        return ""
    return stat.rpartition(b")")[2].split()[19].decode()


def _cycle(path: str | None) -> int | None:
    if not path:
        return None
    try:
        cycle = json.loads(Path(path).read_bytes())["cycle_number"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return cycle if isinstance(cycle, int) and cycle >= 0 else None


def _stored_run_id(checkpoints: Path, made_up: str) -> tuple[str, bool]:
    path = checkpoints / RUN_ID_FILE
    checkpoints.mkdir(parents=True, exist_ok=True)
    fresh = os.urandom(6).hex()
    mine = checkpoints / f"{RUN_ID_FILE}.{fresh}"
    if not path.exists():
        mine.write_text(fresh + "\n", encoding="ascii")
        try:
            os.link(mine, path)  # of all ranks that try, one succeeds, and its file is complete
        except FileExistsError:
            pass
        except OSError:
            # A file system without hard links: all ranks of a launch write the same.
            fresh = made_up
            mine.write_text(fresh + "\n", encoding="ascii")
            mine.replace(path)
        finally:
            mine.unlink(missing_ok=True)
    stored = path.read_text(encoding="utf-8").strip()
    if not stored:
        raise ValueError(f"{path} is empty; delete it or write the run's id into it")
    return stored, stored == fresh


def digest(*parts: str, digits: int = 16) -> str:
    """Return hexadecimal digits that stand for these texts."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:digits]
