"""The published NVRx benchmark: its log lines, its `results.json`, and its figures put right.

Wordings of awslabs/awsome-distributed-ai, 3.test_cases/pytorch/nvrx (March 2026). `Starting
training from step n` is a count of completed steps; a fault at step n strikes after step n.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.events import Scalar
from headway.importing.rules import Format, Rule, loss_of
from headway.importing.sayings import (
    Began,
    Broke,
    Continues,
    Finished,
    LoadEnded,
    Published,
    SaveBegan,
    SaveEnded,
    Saying,
    StepLine,
)
from headway.importing.stamps import seconds

_STEP = re.compile(r"Step (\d{1,12}), Loss: ([-+\w.]{1,30}), (?:Wall|Time): [\d.]{1,20}s")
_SAVING = re.compile(r"Saving checkpoint at step (\d{1,12})\.\.\.")
_SAVED = re.compile(
    r"(?:Sync c|C)heckpoint saved in ([\d.]{1,20})s|Async checkpoint scheduled in ([\d.]{1,20})s|"
    r"Async finalization completed in ([\d.]{1,20})s"
)
_FAULT = re.compile(r"INJECTING FAULT at step (\d{1,12})! type=(\w{1,20}), fault #(\d{1,9})")
_RESTART = re.compile(r"(IN-PROCESS|IN-JOB|CONTAINER) RESTART #(\d{1,9})")
_LOADED = re.compile(r"Loaded DCP checkpoint from step (\d{1,12}) ")
_STARTING = re.compile(r"Starting training from step (\d{1,12})\.\.\.")
_FIGURES = (
    ("training_goodput_pct", re.compile(r"Training Goodput: ([\d.]{1,20})%")),
    ("infra_goodput_pct", re.compile(r"Infra Goodput: ([\d.]{1,20})%")),
    ("wasted_steps", re.compile(r"Wasted steps: (\d{1,12}) ")),
    ("wasted_time_seconds", re.compile(r"Wasted steps: \d{1,12} \(([\d.]{1,20})s\)")),
    ("total_shutdown_time_seconds", re.compile(r"Shutdown: ([\d.]{1,20})s")),
    ("total_startup_time_seconds", re.compile(r"Startup: ([\d.]{1,20})s")),
)
_LAYERS = {"IN-PROCESS": "in_process", "IN-JOB": "launcher", "CONTAINER": "scheduler"}
_KINDS = {"exception": "exception", "sigkill": "signal", "hang": "hang"}
_CASCADE_SLACK = 1.0
"""Seconds by which the parts of a record may miss those of the one before it."""


def _step(line: str) -> Saying | None:
    found = _STEP.search(line)
    if found is None:
        return None
    step = int(found[1])
    return StepLine(step=step, printed=step, form="benchmark", loss=loss_of(found[2]))


def _saving(line: str) -> Saying | None:
    found = _SAVING.search(line)
    return None if found is None else SaveBegan(step=int(found[1]))


def _saved(line: str) -> Saying | None:
    found = _SAVED.search(line)
    if found is None:
        return None
    if found[1] is not None:
        return SaveEnded(took=seconds(found[1]))
    if found[2] is not None:
        return SaveEnded(blocked=seconds(found[2]), durable=False)
    return SaveEnded(background=True)


def _fault(line: str) -> Saying | None:
    found = _FAULT.search(line)
    if found is None:
        return None
    kind = _KINDS.get(found[2], "unknown")
    return Broke(kind=kind, message=found[0], completed=int(found[1]))


def _restart(line: str) -> Saying | None:
    found = _RESTART.search(line)
    if found is None:
        return None
    return Began(layer=_LAYERS[found[1]], restarts=int(found[2]))


def _loaded(line: str) -> Saying | None:
    found = _LOADED.search(line)
    return None if found is None else LoadEnded(step=int(found[1]))


def _starting(line: str) -> Saying | None:
    found = _STARTING.search(line)
    return None if found is None else Continues(completed=int(found[1]))


def _figures(line: str) -> tuple[Saying, ...] | None:
    told: dict[str, Scalar] = {}
    for name, pattern in _FIGURES:
        found = pattern.search(line)
        if found is not None:
            told[name] = float(found[1])
    return (Published(figures=told),) if told else None


def _summary(line: str) -> Saying | None:
    return Finished(complete=True)


FORMAT = Format(
    name="nvrx-benchmark",
    rules=(
        Rule(", Loss: ", _step),
        Rule("Saving checkpoint at step", _saving),
        Rule("heckpoint saved in", _saved),
        Rule("Async checkpoint scheduled in", _saved),
        Rule("Async finalization completed in", _saved),
        Rule("INJECTING FAULT at step", _fault),
        Rule(" RESTART #", _restart),
        Rule("Loaded DCP checkpoint from step", _loaded),
        Rule("Starting training from step", _starting),
        Rule("Training Goodput:", _figures),
        Rule("Infra Goodput:", _figures),
        Rule("Wasted steps:", _figures),
        Rule("TRAINING SUMMARY", _summary),
    ),
)


def is_results(document: object) -> bool:
    """Whether a JSON document is the benchmark's `results.json`."""
    return (
        isinstance(document, dict)
        and {
            "job_wall_time_seconds",
            "training_goodput_pct",
            "infra_goodput_pct",
        }
        <= document.keys()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One figure by the program's formula and by ours; `None` is unknown."""

    figure: str
    theirs: float | None
    ours: float | None
    formula: str
    why: str


def corrected(results: Mapping[str, Any]) -> Mapping[str, float]:
    """Put the figures of a `results.json` right, as far as its own numbers allow."""
    wall = _number(results, "job_wall_time_seconds")
    records = [one for one in results.get("recovery_breakdown") or [] if isinstance(one, dict)]
    groups = outages(records)
    outage = sum(groups)
    found: dict[str, float] = {}
    if groups:
        found["recovery_seconds_per_fault"] = outage / len(groups)
    if wall:
        found["infra_goodput_pct"] = 100 * (wall - outage) / wall
        wasted = _number(results, "wasted_time_seconds")
        saving = _number(results, "total_checkpoint_time_seconds")
        if wasted is not None and saving is not None:
            setup = _number(results, "setup_time_seconds") or 0.0
            useful = max(wall - outage - wasted - saving - setup, 0.0)
            found["training_goodput_pct"] = 100 * useful / wall
    return found


def recovery_of(figures: Mapping[str, Any]) -> Difference | None:
    """Return the program's mean recovery beside ours, where a `results.json` tells both."""
    theirs = _number(figures, "avg_recovery_time_seconds")
    ours = _number(figures, "corrected recovery_seconds_per_fault")
    if theirs is None and ours is None:
        return None
    return Difference(
        figure="recovery_seconds_per_fault",
        theirs=theirs,
        ours=ours,
        formula="sum of outages / number of outages",
        why="theirs is the mean over restart attempts, called a mean per fault; attempts that "
        "follow each other without progress are one outage",
    )


def goodputs(
    figures: Mapping[str, Any], training: float | None, infrastructure: float | None
) -> list[Difference]:
    """Return the two goodputs of the program beside ours, in percent."""
    return [
        Difference(
            figure="training_goodput_pct",
            theirs=_number(figures, "training_goodput_pct"),
            ours=training,
            formula="time of steps that survive / wall time",
            why="theirs is steps x mean step time / wall time, where the mean is the training "
            "time by the steps: the steps cancel, so that work that was lost is never "
            "subtracted, and in process the down time counts as training",
        ),
        Difference(
            figure="infra_goodput_pct",
            theirs=_number(figures, "infra_goodput_pct"),
            ours=infrastructure,
            formula="(wall time - union of outages) / wall time",
            why="theirs adds up shutdown and start-up of every restart record; a restart without a "
            "new fault counts its shutdown from the old fault again",
        ),
    ]


def outages(records: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return the length of each outage in s: records of one cascade overlap and are one.

    A record whose shutdown holds all of the record before it counts from the same fault.
    """
    found: list[float] = []
    before: float | None = None
    for record in records:
        shutdown = _number(record, "shutdown_seconds") or 0.0
        startup = _number(record, "startup_total_seconds") or 0.0
        whole = shutdown + startup
        if before is not None and shutdown >= before - _CASCADE_SLACK and found:
            found[-1] = whole
        else:
            found.append(whole)
        before = whole
    return found


def _number(found: Mapping[str, Any], name: str) -> float | None:
    value = found.get(name)
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and value == value and abs(value) < 1e15 else None  # type: ignore[arg-type]
