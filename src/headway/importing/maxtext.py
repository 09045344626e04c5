"""MaxText and Orbax; steps count from 0, and checkpoint N holds N + 1 completed steps.

The printed seconds of the steps after the first time the dispatch, not the work, so the time
between two lines counts instead.
"""

import re

from headway.importing.rules import Format, Rule, loss_of
from headway.importing.sayings import (
    Continues,
    LoadBegan,
    PhaseSays,
    SaveBegan,
    SaveEnded,
    Saying,
    StepLine,
)
from headway.importing.stamps import seconds

_STEP = re.compile(
    r"completed step: (\d{1,12}), seconds: ([\d.]{1,20}),(?=.{0,400}?\bloss: ([-+\w.]{1,30}))?"
)
_SAVED = re.compile(r"saved a checkpoint at step (\d{1,12})")
_FINISHED = re.compile(
    r"Finished (?:saving checkpoint to|async_save .{0,200}?) ?[`']?(\S{0,1000}?/(\d{1,12}))\b"
)
_RESTORING = re.compile(
    r"[Rr]estoring from (?:this run's directory|\S{1,1000}) (?:latest )?step (\d{1,12})"
)
_EVALUATED = re.compile(r"eval metrics after step: (\d{1,12})")


def _step(line: str) -> Saying | None:
    found = _STEP.search(line)
    if found is None:
        return None
    printed = int(found[1])
    return StepLine(
        step=printed + 1,
        printed=printed,
        form="maxtext",
        per_step=seconds(found[2]),
        loss=loss_of(found[3]),
        dispatch=printed in (1, 2),
    )


def _saved(line: str) -> Saying | None:
    found = _SAVED.search(line)
    return None if found is None else SaveBegan(step=int(found[1]) + 1, background=True)


def _finished(line: str) -> Saying | None:
    found = _FINISHED.search(line)
    if found is None:
        return None
    return SaveEnded(step=int(found[2]) + 1, checkpoint=found[1], background=True)


def _restoring(line: str) -> Saying | None:
    found = _RESTORING.search(line)
    return None if found is None else LoadBegan(step=int(found[1]) + 1)


def _none(line: str) -> Saying | None:
    return Continues(completed=0)


def _evaluated(line: str) -> Saying | None:
    found = _EVALUATED.search(line)
    if found is None:
        return None
    return PhaseSays(phase="evaluation", began=True, step=int(found[1]) + 1, sign=True)


FORMAT = Format(
    name="maxtext",
    first_step=0,
    rules=(
        Rule("completed step:", _step),
        Rule("saved a checkpoint at step", _saved),
        Rule("Finished saving checkpoint to", _finished),
        Rule("Finished async_save", _finished),
        Rule("estoring from", _restoring),
        Rule("not restoring checkpoint", _none),
        Rule("eval metrics after step", _evaluated),
    ),
)
