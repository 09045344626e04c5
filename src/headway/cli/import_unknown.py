"""What stays unknown of a run whose logs tell no step: those of launchers and schedulers alone."""

from collections.abc import Iterable
from typing import Any

_NO_PROGRAM = ("kubernetes",)
_OF_STEPS = ("productive", "rolled_back", "startup", "stalled")
"""Categories that only steps tell apart; of a restart it is what comes after the rendezvous."""
_OF_STARTS = ("failed_start", "other")


def tells_steps(formats: Iterable[str]) -> bool:
    """Whether one of these formats is a training program's own, which prints its steps."""
    from headway.importing.formats import FORMATS

    return any(
        name not in _NO_PROGRAM and (name not in FORMATS or FORMATS[name].is_training)
        for name in formats
    )


def forget_steps(found: dict[str, Any]) -> None:
    """Put what a report claims of steps that nobody told back to unknown.

    The ledger takes an attempt without steps for a start that failed; here they were not printed.
    """
    categories, parts = dict(found["categories"]), dict(found["parts"])
    moved = sum(categories[name] for name in _OF_STEPS)
    restart = dict(parts.get("restart", {}))
    lost = sum(restart.pop(name, 0) for name in _OF_STARTS)
    categories |= dict.fromkeys(_OF_STEPS, 0)
    categories["restart"] -= lost
    categories["unattributed"] += moved + lost
    found["categories"] = categories
    found["parts"] = {name: of for name, of in parts.items() if name not in _OF_STEPS} | {
        "restart": restart
    }
    found["steps"] = {**dict.fromkeys(found["steps"]), "target": found["steps"]["target"]}
    found |= dict.fromkeys(("failed_starts", "steps_at_risk", "checkpoint_efficiency"))
    elapsed = found["elapsed_ns"]
    known = sum(categories[name] for name in ("restart", "down"))
    for name, least, most in (
        ("training_goodput", 0, categories["unattributed"]),
        ("infrastructure_goodput", elapsed - known - categories["unattributed"], elapsed - known),
    ):
        found["formulas"][name]["numerator_ns"] = [least, most]
        found[name] = {
            "low": least / elapsed if elapsed else None,
            "high": most / elapsed if elapsed else None,
        }
    found["alternatives"] = []
    for one in found["incidents"]:
        if one["cause"] == "startup_failure":
            one["cause"] = "unknown"
    found["log"]["notes"] = [
        *found["log"]["notes"],
        "no line tells a step: whether the ranks trained between their starts and ends is unknown; "
        "add the training program's own log",
    ]
