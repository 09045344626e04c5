"""How each recovery layer is started: the command of every node, as a person would give it."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from headway.cli.drill_plan import CHECKPOINT_EVERY, EVALUATE_EVERY, FAULT_RANK, RANKS, STEPS, Drill
from headway.cli.refusal import Refusal

HANG_TIMEOUT = 10
"""Seconds after which a rank counts as hung where something watches it; usual steps take 0.05 s."""
_RESTARTS = 3
_POLICY = "min-healthy"
_GRACE = 5
"""Seconds that a launcher gives the ranks it stops."""
_LAST_CALL = 20
"""Seconds that a launcher waits for more nodes once it has enough; the second may start slowly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """What runs on one node of a drill, under one `headway run`."""

    name: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def check(drill: Drill) -> None:
    """Look whether the installed NVRx can do what the layer needs.

    Raises:
        Refusal: its launcher cannot leave a fault to the wrapper inside.
    """
    if drill.layer != "both":
        return
    library = metadata.distribution("nvidia-resiliency-ext")
    launcher = library.locate_file("nvidia_resiliency_ext/fault_tolerance/launcher.py")
    if _POLICY not in Path(str(launcher)).read_text(encoding="utf-8"):
        raise Refusal(
            f"ft_launcher of nvidia-resiliency-ext {library.version} has no policy {_POLICY!r}, "
            "with which it leaves a fault to the wrapper inside",
            "install a version below 0.6, or choose another layer",
        )


def nodes(drill: Drill, folder: Path, port: int, start: int) -> list[Node]:
    """Return the nodes of the job's `start`-th start, counted from 0, the first holding rank 0.

    `port` is a free one for the ranks or their launchers to meet.
    """
    if drill.layer in ("in_process", "scheduler"):
        return [_bare(drill, folder, port, start, rank) for rank in range(RANKS)]
    launcher = _torchrun if drill.layer == "torchrun" else _ft_launcher
    return [
        Node(name=f"node-{number}", command=launcher(drill, folder, port, number))
        for number in range(drill.num_nodes)
    ]


def _bare(drill: Drill, folder: Path, port: int, start: int, rank: int) -> Node:
    """Return a node that starts its rank by itself, as a scheduler's container does."""
    lost = drill.fault == "node_lost" and rank == FAULT_RANK
    environment = {
        "RANK": str(rank),
        "WORLD_SIZE": str(RANKS),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    if drill.layer == "scheduler":
        # One job that is started again, as Slurm numbers it.
        environment |= {"SLURM_JOB_ID": str(1000 + drill.seed), "SLURM_RESTART_COUNT": str(start)}
    return Node(
        # What is started again in the place of a lost node is another one.
        name=f"node-{rank if not lost or start == 0 else RANKS}",
        command=[sys.executable, *_training(drill, folder)],
        environment=environment,
    )


def _torchrun(drill: Drill, folder: Path, port: int, number: int) -> list[str]:
    return [
        _beside("torchrun"),
        *_rendezvous(drill, port, number),
        *("--shutdown-timeout", str(_GRACE), "--monitor-interval", "0.5"),
        *_training(drill, folder),
    ]


def _ft_launcher(drill: Drill, folder: Path, port: int, number: int) -> list[str]:
    settings = folder / "ft.yaml"
    # Where the wrapper inside is to act first, the launcher must be more patient than it.
    patience = 6 * HANG_TIMEOUT if drill.layer == "both" else HANG_TIMEOUT
    settings.write_text(
        "fault_tolerance:\n"
        "  workload_check_interval: 1.0\n"
        f"  initial_rank_heartbeat_timeout: {6 * HANG_TIMEOUT}.0\n"
        f"  rank_heartbeat_timeout: {patience}.0\n"
        "  rank_termination_signal: SIGKILL\n"
        "  log_level: INFO\n",
        encoding="ascii",
    )
    policy = ("--ft-restart-policy", _POLICY) if drill.layer == "both" else ()
    return [
        _beside("ft_launcher"),
        *_rendezvous(drill, port, number),
        *("--ft-cfg-path", str(settings), "--ft-enable-nic-monitor", "False", *policy),
        *("--workers-stop-timeout", str(_GRACE), "--monitor-interval", "0.5"),
        *_training(drill, folder),
    ]


def _rendezvous(drill: Drill, port: int, number: int) -> tuple[str, ...]:
    several = drill.num_nodes > 1
    host = f"is_host={1 - number}"
    return (
        *("--nnodes", f"1:{drill.num_nodes}" if several else "1"),
        *("--nproc-per-node", str(RANKS // drill.num_nodes)),
        *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"),
        *("--rdzv-id", f"drill-{drill.seed}"),
        *(("--rdzv-conf", f"{host},last_call_timeout={_LAST_CALL}") if several else ()),
        *("--max-restarts", str(_RESTARTS)),
    )


def _training(drill: Drill, folder: Path) -> list[str]:
    fault = ("--fault", drill.fault, "--fault-rank", str(FAULT_RANK), "--fault-at", drill.at)
    early = drill.at in ("startup", "load")
    step = ("--fault-step", "0" if early else str(drill.fault_step))
    return [
        *("-m", "headway.exporter.training.loop", "--directory", str(folder / "training")),
        *("--name", "drill", "--seed", str(drill.seed), "--save", drill.save),
        *("--steps", str(STEPS), "--checkpoint-every", str(CHECKPOINT_EVERY)),
        *("--evaluate-every", str(EVALUATE_EVERY), "--hang-timeout", str(HANG_TIMEOUT)),
        *("--grace", str(_GRACE)),
        *("--recovery", "in_process" if drill.restarts_in_process else "none"),
        *(() if drill.fault == "none" else (*fault, *step)),
    ]


def _beside(program: str) -> str:
    """Return a program that was installed with this interpreter."""
    return os.path.join(os.path.dirname(sys.executable), program)
