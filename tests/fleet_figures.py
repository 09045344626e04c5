"""Runs and incidents for tests of a fleet's figures, whose answers are reckoned by hand."""

from typing import Any

from headway.fleet.past import PastIncident, PastTry
from headway.fleet.shares import Share
from headway.incidents.model import PHASES
from headway.ledger import Ledger
from reckoning import book
from timeline import SECOND
from worked_example import KILLED


def worked_example() -> Ledger:
    """Return the ledger of the worked example at its end."""
    return book(KILLED, 754)


def incident(name: str = "i", **values: Any) -> PastIncident:
    """Return an incident that was recovered by one launcher's attempt after 10 s, or as given."""
    opened = values.get("opened", 0)
    layers = values.pop("layers", ("launcher",))
    phases = dict.fromkeys(PHASES, 0) | values.pop("phases", {})
    known: dict[str, Any] = {
        "run": "run-1",
        "run_name": "run",
        "labels": {},
        "incident": name,
        "number": 1,
        "opened": opened,
        "recovered": opened + 10 * SECOND,
        "caught_up": None,
        "cause": "exception",
        "layer": layers[-1] if layers else None,
        "outcome": "held_at_first",
        "node": None,
        "headline": "It broke.",
        "lost_gpu": 40 * SECOND,
        "valid": "yes",
        "phases": phases,
        "tries": tuple(PastTry(layer=layer, phases=phases) for layer in layers),
        "checkpoint_bytes": None,
        "checkpoint_age": None,
        "ranks": 4,
    }
    return PastIncident(**(known | values))


def share(run: str = "run-1", **values: Any) -> Share:
    """Return what a run adds: 80 s productive and 20 s restart on 2 GPUs, or as given."""
    seconds = values.pop("seconds", {"productive": 80, "restart": 20})
    gpus = values.pop("gpus", 2)
    known: dict[str, Any] = {
        "run": run,
        "state": "completed",
        "labels": {},
        "training_good": (),
        "wall": {name: amount * SECOND for name, amount in seconds.items()},
        "gpu": {name: amount * gpus * SECOND for name, amount in seconds.items()},
        "attempts": 2,
        "failed_starts": 0,
        "open_incidents": 0,
        "incidents": (),
    }
    return Share(**(known | values))
