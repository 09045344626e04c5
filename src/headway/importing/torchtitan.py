"""torchtitan; steps are printed from 1.

Wordings of its trainer and checkpointer from 2024 on. The writer of asynchronous saves logs under
another tag and later than the step that it saves; whether a save was only staged is not said.
"""

import re

from headway.importing.rules import Format, Rule, loss_of
from headway.importing.sayings import (
    Began,
    Continues,
    Finished,
    LoadBegan,
    LoadEnded,
    PhaseSays,
    SaveBegan,
    SaveEnded,
    Saying,
    StepLine,
)
from headway.importing.stamps import seconds

_STEP = re.compile(r"(validate )?step:\s{0,9}(\d{1,12})\s{1,9}loss:\s{0,9}([-+\w.]{1,30})(?=\s|$)")
_FOLDER = re.compile(r"step-(\d{1,12})(?!\d)")
_STARTS = re.compile(r"Training starts at step (\d{1,12})")
_LOADING = re.compile(
    r"Loading the checkpoint (?:from (\S{1,1000}?)\.?|at step (\d{1,12})\.?)(?:\s|$)"
)
_LOADED = re.compile(r"Finished loading the checkpoint in ([\d.]{1,20}) seconds")
_STAGED = re.compile(
    r"Finished saving the checkpoint (?:\(or staging if async is enabled\)\s?)?"
    r"in ([\d.]{1,20}) seconds"
)
_LAST = re.compile(
    r"Saving a \S{1,20}(?: \S{1,20})? checkpoint (?:in \S{1,20} )?"
    r"(?:at|in) last step, step (\d{1,12})"
)


def _step(line: str) -> Saying | None:
    found = _STEP.search(line)
    if found is None:
        return None
    step = int(found[2])
    if found[1]:
        return PhaseSays(phase="evaluation", began=True, step=step, sign=True)
    return StepLine(step=step, printed=step, form="titan", loss=loss_of(found[3]))


def _starts(line: str) -> Saying | None:
    found = _STARTS.search(line)
    return None if found is None else Continues(completed=max(int(found[1]) - 1, 0))


def _began(line: str) -> Saying | None:
    name = line.partition("Starting job:")[2].strip()
    return Began(run_name=name[:200] or None)


def _loading(line: str) -> Saying | None:
    found = _LOADING.search(line)
    if found is None:
        return None
    return LoadBegan(checkpoint=found[1], step=_step_of(found[1] or f"step-{found[2]}"))


def _loaded(line: str) -> Saying | None:
    found = _LOADED.search(line)
    return None if found is None else LoadEnded(took=seconds(found[1]))


def _received(line: str) -> Saying | None:
    name = line.partition("id=")[2].strip()
    return SaveBegan(step=_step_of(name), checkpoint=name or None, background=True)


def _submitted(line: str) -> Saying | None:
    step = _step_of(line)
    return None if step is None else SaveEnded(step=step, background=True)


def _saving(line: str) -> Saying | None:
    return SaveBegan()


def _staged(line: str) -> Saying | None:
    found = _STAGED.search(line)
    return None if found is None else SaveEnded(blocked=seconds(found[1]), durable=False)


def _last(line: str) -> Saying | None:
    found = _LAST.search(line)
    return None if found is None else SaveBegan(step=int(found[1]))


def _done(line: str) -> Saying | None:
    return Finished(complete=True)


def _step_of(text: str) -> int | None:
    found = _FOLDER.search(text)
    return None if found is None else int(found[1])


FORMAT = Format(
    name="torchtitan",
    rules=(
        Rule("loss:", _step),
        Rule("Training starts at step", _starts),
        Rule("Starting job:", _began),
        Rule("Loading the checkpoint", _loading),
        Rule("Finished loading the checkpoint", _loaded),
        Rule("Received async checkpoint request", _received),
        Rule("Submitted checkpoint save request", _submitted),
        Rule("Saving the checkpoint", _saving),
        Rule("Finished saving the checkpoint", _staged),
        Rule(" checkpoint in last step", _last),
        Rule("at last step, step", _last),
        Rule("Training completed", _done),
    ),
)
