"""Which run and rank a recorder speaks for, from its arguments, settings and environment."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headway.exporter import identity
from headway.exporter.recording.plain_values import named, plain_int
from headway.settings import RecorderSettings

LONGEST_NAME = 120
"""Characters of a run's name, and of its id, that are kept."""

_NEXT = "set HEADWAY_RUN_ID or give `checkpoints`, a folder that all ranks share"


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Where a process belongs."""

    name: str
    run: str
    rank: int
    announces: bool
    """Whether it is this rank that says that the run began."""
    ranks: identity.Ranks
    launch: identity.Launch
    complaints: tuple[tuple[str, str], ...]
    """Kind and sentence of what was wrong with the arguments, and what was done instead."""


def membership(
    run: object,
    rank: object,
    checkpoints: Path | str | None,
    settings: RecorderSettings,
    environment: Mapping[str, str],
    earlier: int,
) -> Membership:
    """Return where this process belongs; `earlier` counts the trainings it has been through."""
    complaints = []
    ranks = identity.ranks(environment)
    number = ranks.rank if rank is None else _whole(rank)
    if number is None:
        number = ranks.rank
        complaints.append(("rank", f"a rank is a whole number, got {named(rank)}; using {number}"))
    launch = identity.launch(environment, of_many=rank is not None, earlier=earlier)
    try:
        folder = _folder(checkpoints)
        run_id, new = identity.run_id(settings.run_id, folder, launch)
    except (OSError, ValueError, TypeError) as error:
        folder = None
        run_id, new = identity.run_id(settings.run_id, None, launch)
        detail = f"the run's id beside its checkpoints cannot be had: {error}; using {run_id!r}"
        complaints.append(("run_id", f"{detail}, which a later job will not share; {_NEXT}"))
    if new and folder is None and launch.spans_nodes and number == 0:
        detail = "only MASTER_ADDR and MASTER_PORT tell this run from others, and they may return"
        complaints.append(("run_id", f"{detail}; {_NEXT}"))
    name = run or settings.run or _program()
    name = name if isinstance(name, str) else named(name)
    if len(name) > LONGEST_NAME:
        complaints.append(("run_name", f"the run's name is cut to {LONGEST_NAME} characters"))
        name = name[:LONGEST_NAME]
    if len(run_id) > LONGEST_NAME:
        run_id = identity.digest(run_id)
    stored = folder is not None and not settings.run_id
    is_first = not launch.launcher_round and not launch.slurm_restarts
    return Membership(
        name=name,
        run=f"{name}-{run_id}",
        rank=number,
        # One rank has made the file. No one knows who made up any other identity.
        announces=new if stored else is_first and number == 0,
        ranks=ranks,
        launch=launch,
        complaints=tuple(complaints),
    )


def imported_by_a_worker() -> bool:
    """Return whether a spawned worker is importing the training program.

    DataLoader's workers and NVRx's writing process run a program's top level again.
    """
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and hasattr(processes.current_process(), "_inheriting")


def _folder(checkpoints: Path | str | None) -> Path | None:
    if isinstance(checkpoints, str) and "://" in checkpoints:
        # As a path it would be a folder of each node's own.
        raise ValueError(f"{checkpoints!r} is an address, not a folder")
    return None if checkpoints is None else Path(checkpoints)


def _whole(rank: object) -> int | None:
    if isinstance(rank, str) and rank.isascii() and rank.isdigit():
        return int(rank)  # as read from the environment
    return plain_int(rank)


def _program() -> str:
    name = Path(sys.argv[0]).stem if sys.argv else ""
    return name if name and not name.startswith("-") else "run"
