"""OpenMMLab's mmcv and mmengine, and the trainer of IDEFICS (m4); iterations count from 1.

An OpenMMLab line counts within its epoch. The elapsed time of m4 is the job's, its time of
forward and backward is that of all jobs so far.
"""

import re

from headway.importing.rules import Format, Rule, loss_of
from headway.importing.sayings import Continues, PhaseSays, SaveBegan, Saying, StepLine
from headway.importing.stamps import SECOND, clock_reading, seconds

_MM = re.compile(
    r"\b(?:(Epoch)(\((?:train|val|test)\))?\s{0,3}\[\s{0,9}(\d{1,9})\]|Iter(\((?:train|val|test)\))?\s{0,3})"
    r"\s?\[\s{0,12}(\d{1,12})/(\d{1,12})\]"
)
_MM_TIME = re.compile(r"(?<!data_)\btime: ([\d.]{1,20})")
_MM_LOSS = re.compile(r"(?<![\w.])loss: ([-+\w.]{1,30})")
_MM_SAVE = re.compile(r"Saving checkpoint at (\d{1,12}) (epochs|iterations)")
_MM_RESUMED = re.compile(r"resumed epoch:? \d{1,9}, iter:? (\d{1,12})")
_M4 = re.compile(
    r"\biteration:\s{1,12}(\d{1,12})/(\d{1,12})\s{1,9}\d{1,3}% \| "
    r"elapsed time: ((?:\d{1,4}-)?[\d:]{5,12}) \|"
)
_M4_LOSS = re.compile(r"per_token_loss: ([-+\w.]{1,30})")
_M4_STEP = re.compile(r"fwd_bwd_time_no_acc: ([\d.]{1,20})")
_M4_ALL = re.compile(r"fwd_bwd_time: ([\d.]{1,20})")


def _mm(line: str) -> Saying | None:
    found = _MM.search(line)
    if found is None:
        return None
    if "(val)" in found[0] or "(test)" in found[0]:
        return PhaseSays(phase="evaluation", began=True)
    here, of = int(found[5]), int(found[6])
    epoch = None if found[1] is None else int(found[3])
    time, loss = _MM_TIME.search(line), _MM_LOSS.search(line)
    return StepLine(
        step=here if epoch is None else (epoch - 1) * of + here,
        printed=here,
        form="mm",
        target=of if epoch is None else None,
        per_step=None if time is None else seconds(time[1]),
        loss=None if loss is None else loss_of(loss[1]),
        scope=None if epoch is None else (epoch, of),
    )


def _mm_saving(line: str) -> Saying | None:
    found = _MM_SAVE.search(line)
    if found is None:
        return None
    return SaveBegan(step=int(found[1]) if found[2] == "iterations" else None)


def _mm_resumed(line: str) -> Saying | None:
    found = _MM_RESUMED.search(line)
    return None if found is None else Continues(completed=int(found[1]))


def _m4(line: str) -> Saying | None:
    found = _M4.search(line)
    if found is None:
        return None
    loss, step, whole = _M4_LOSS.search(line), _M4_STEP.search(line), _M4_ALL.search(line)
    return StepLine(
        step=int(found[1]),
        printed=int(found[1]),
        form="m4",
        target=int(found[2]),
        per_step=None if step is None else round(float(step[1]) * SECOND),
        elapsed=clock_reading(found[3]),
        loss=None if loss is None else loss_of(loss[1]),
        cumulative=None if whole is None else round(float(whole[1]) * SECOND),
    )


def _m4_validating(line: str) -> Saying | None:
    return PhaseSays(phase="evaluation", began=True)


def _m4_validated(line: str) -> Saying | None:
    return PhaseSays(phase="evaluation", began=False)


MM = Format(
    name="openmmlab",
    rules=(
        Rule("Epoch", _mm),
        Rule("Iter", _mm),
        Rule("Saving checkpoint at", _mm_saving),
        Rule("resumed epoch", _mm_resumed),
    ),
)
M4 = Format(
    name="m4",
    rules=(
        Rule("iteration:", _m4),
        Rule("** Starting validation **", _m4_validating),
        Rule("** Finished validation **", _m4_validated),
    ),
)
