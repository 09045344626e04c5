"""Structured events of `goodput_measure` (AI-Hypercomputer/resiliency), and the table of minutes
with which it is explained.

A step in them is a count of completed steps. A save tells that the steps up to it are done; from
the start of a job to its load is loading.
"""

import json
import re

from headway.importing.rules import Format, Rule
from headway.importing.sayings import (
    At,
    Began,
    Finished,
    LeftRank,
    LoadBegan,
    LoadEnded,
    OfRun,
    SaveBegan,
    SaveEnded,
    Saying,
    StepLine,
    Stops,
)
from headway.importing.stamps import SECOND

_ROW = re.compile(
    r"^(\d{1,9}(?:\.\d{1,6})?),(job_started|job_restarted|job_crashed|job_finished|"
    r"checkpoint_loaded|checkpoint_saved|step_finished),(\d{0,12})\s*$"
)
_MINUTE = 60 * SECOND


def _event(line: str) -> tuple[Saying, ...] | None:
    begin = line.find("{")
    found = json.loads(line[begin:]) if begin >= 0 else None
    if not isinstance(found, dict) or not isinstance(found.get("event_type"), str):
        return None
    said = _sayings(found["event_type"], found.get("step"))
    if said is None:
        return None
    job = found.get("job_name")
    return (OfRun(name=job[:200]), *said) if isinstance(job, str) and job else said


def _sayings(kind: str, step: object) -> tuple[Saying, ...] | None:
    count = step if isinstance(step, int) and 0 <= step < 10**12 else None
    match kind:
        case "job_started" | "job_restarted":
            return Began(), LoadBegan()
        case "checkpoint_loaded":
            return (LoadEnded(step=count),)
        case "checkpoint_saved" if count is not None:
            return _done(count), SaveBegan(step=count, background=True), SaveEnded(step=count)
        case "step_finished" if count is not None:
            return (_done(count),)
        case "job_terminated":
            return (Finished(complete=False, code=None),)
        case "user_terminated":
            return Stops(reason="operator"), Finished(complete=False, code=None)
        case "job_crashed":
            return (LeftRank(code=1, rank=0),)
        case "job_finished":
            return (Finished(complete=True, code=None),)
        case _:
            return None


def _done(step: int) -> StepLine:
    return StepLine(step=step, printed=step, form="event")


def _row(line: str) -> tuple[Saying, ...] | None:
    found = _ROW.search(line)
    if found is None:
        return None
    said = _sayings(found[2], int(found[3]) if found[3] else None)
    if said is None:
        return None
    time = At(time=round(float(found[1]) * _MINUTE), relative=True)
    if found[2] == "checkpoint_saved":
        # what passes between the steps before it and the save is the save
        return (time, SaveBegan(step=int(found[3]), since=True), SaveEnded(step=int(found[3])))
    return (time, *said)


FORMAT = Format(
    name="goodput-events",
    rules=(
        Rule('"event_type"', _event),
        Rule(",job_", _row),
        Rule(",checkpoint_", _row),
        Rule(",step_finished", _row),
    ),
)
