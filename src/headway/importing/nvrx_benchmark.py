"""The published NVRx benchmark: its log lines, and how to know its `results.json`.

Wordings of awslabs/awsome-distributed-ai, 3.test_cases/pytorch/nvrx (March 2026). `Starting
training from step n` is a count of completed steps; a fault at step n strikes after step n.
"""

import re

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
_NUMBER = r"(-?\d{1,12}(?:\.\d{1,12})?)"
_FIGURES = (
    ("training_goodput_pct", re.compile(rf"Training Goodput: {_NUMBER}%")),
    ("infra_goodput_pct", re.compile(rf"Infra Goodput: {_NUMBER}%")),
    ("wasted_steps", re.compile(r"Wasted steps: (\d{1,12}) ")),
    ("wasted_time_seconds", re.compile(rf"Wasted steps: \d{{1,12}} \({_NUMBER}s\)")),
    ("total_shutdown_time_seconds", re.compile(rf"Shutdown: {_NUMBER}s")),
    ("total_startup_time_seconds", re.compile(rf"Startup: {_NUMBER}s")),
)
"""Its infrastructure goodput may be below 0: outages that it counts twice exceed the wall time."""
_LAYERS = {"IN-PROCESS": "in_process", "IN-JOB": "launcher", "CONTAINER": "scheduler"}
_KINDS = {"exception": "exception", "sigkill": "signal", "hang": "hang"}


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
