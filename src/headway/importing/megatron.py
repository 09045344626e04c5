"""Megatron-LM from 2019 to core, Megatron-DeepSpeed, and DeepSpeed's own lines.

Steps are printed from 1. Wordings of Megatron-LM's `training.py` and `checkpointing.py` (saved
"at" and "from" an iteration) and of DeepSpeed's `engine.py`; the printed time of a step leaves out
evaluation and saves.
"""

import contextlib
import math
import re
from collections.abc import Sequence

import numpy as np

from headway.importing.rules import Format, Rows, Rule, loss_of
from headway.importing.sayings import (
    Began,
    Configured,
    Continues,
    Finished,
    LoadBegan,
    LoadEnded,
    PhaseSays,
    Remark,
    SaveBegan,
    SaveEnded,
    Saying,
    StepLine,
    StepRun,
    Stops,
    Took,
)
from headway.importing.stamps import SECOND

_MILLISECOND = 10**6
_STEP = re.compile(r"iteration\s{1,20}(\d{1,12})\s{0,9}/\s{0,20}(\d{1,12}) {0,9}\|")
_ROWS = re.compile(
    r"^((\[default[0-9]{1,5}\]:|\[rank[0-9]{1,6}\]:|[0-9]{1,6}: )? ?"
    r"(?:\[([-0-9]{10} [0-9:]{8})\] )?"
    r"iteration {1,12}([0-9]{1,12})/ {0,12}([0-9]{1,12}) \| "
    r"consumed samples: {1,20}([0-9]{1,18}) \|(?: consumed tokens: {1,20}[0-9]{1,20} \|)? "
    r"elapsed time per iteration \((ms|s)\): ([0-9]{1,12}(?:\.[0-9]{1,9})?) "
    r"(?=\|)[^\n]{0,2000}\| lm loss: (\S{1,30}) (?=\|)[^\n]{0,1000}"
    r"\| number of skipped iterations: {1,12}0 \|[A-Za-z0-9_ :|.]{0,200}\| ?)$|^(.*)$",
    re.MULTILINE,
)
"""Plain lines whole, prefix, stamp, step, target, samples, unit, time, loss; or any other line."""
_NUMBER = r"\s{0,30}([\d.]{1,24}(?:[eE][+-]?\d{1,3})?)"
_TIME = re.compile(
    r"elapsed time per iteration \((ms|s)\):" + _NUMBER + r"(?:/[\d.]{1,24})?\s{0,9}\|"
)
_LOSS = re.compile(r"\blm[ -]loss:\s{0,30}([-+\w.]{1,30})")
_SAMPLES = re.compile(r"consumed[ _]samples:\s{0,30}(\d{1,18})\s{0,9}\|")
_SKIPPED = re.compile(r"number of skipped iterations:\s{0,30}(\d{1,12})")
_DEEPSPEED = re.compile(r"\bstep=(\d{1,12}), skipped=(\d{1,12}), lr=")
_FIRST_FORM = re.compile(
    r"^(?:\S{1,80} )?steps: (\d{1,12}) loss: ([-+\w.]{1,30}) iter time \(s\): ([\d.]{1,24}) samples"
)
_SAVING = re.compile(
    r"saving checkpoint at iteration\s{1,20}(\d{1,12}) to (\S{1,1000})(?: in (\S{1,40}) format)?"
)
_SAVED = re.compile(
    r"successfully saved checkpoint (?:at|from) iteration\s{1,20}(\d{1,12}) to (\S{1,1000})"
)
_SCHEDULED = re.compile(
    r"scheduled an async checkpoint save at iteration\s{1,20}(\d{1,12}) to (\S{1,1000})"
)
_READY = re.compile(r"Checkpoint (?:\S{0,500}/)?global_step(\d{1,12}) is ready now")
_WRITING = re.compile(r"Saving (?:model )?checkpoint: (\S{0,1000}global_step(\d{1,12})\S{0,500})")
_LOADING = re.compile(
    r"(?<!successfully )loading (?:distributed |release )?checkpoint from (\S{1,1000}) at iteration"
    r"\s{1,20}(\d{1,12})"
)
_LOADED = re.compile(
    r"successfully loaded checkpoint from (\S{1,1000}).{0,200}? at iteration\s{1,20}(\d{1,12})"
)
_OLD_TIMER = re.compile(r"([\w/-]{1,80}): ([\d.]{1,24})(?= \||\s*$)")
_TIMER = re.compile(
    r"^\s{0,40}([a-z][\w/-]{1,80}) \.{1,100}:"
    r"\s{0,9}\(?([\d.]{1,24})(?:,\s{0,9}([\d.]{1,24})\))?\s*$"
)
_VALIDATED = re.compile(r"valid(?:ation)? loss at iteration (\d{1,12})\b")
_ARGUMENT = re.compile(r"^\s{0,40}([a-z]\w{1,60}) \.{3,100} (\S{1,400})\s*$")
_EXITING = re.compile(
    r"exiting program (?:after ([\d.]{1,24}) minutes|at iteration (\d{1,12})|"
    r"after receiving (\w{1,20}))"
)
_PHASES = {
    "save-checkpoint": "checkpoint_save",
    "load-checkpoint": "checkpoint_load",
    "evaluate": "evaluation",
    "eval-time": "evaluation",
}
_WORLD = re.compile(r"using world size: (\d{1,9})\b")
_SETTINGS = {
    "world_size": "world_size",
    "log_interval": "log_interval",
    "save_interval": "checkpoint_interval",
    "train_iters": "target_step",
    "eval_interval": "eval_interval",
}


def _step(line: str) -> Saying | None:
    found = _STEP.search(line)
    if found is None:
        return None
    rest = found.end()
    before = line[max(found.start() - 40, 0) : found.start()]
    if "Training epoch" in before:
        return None  # NeMo's, which counts from 0
    time = _TIME.search(line, rest)
    samples = _SAMPLES.search(line, rest - 1)
    loss = _LOSS.search(line, rest)
    skipped = _SKIPPED.search(line, rest)
    if time is None and samples is None and loss is None:
        return None
    step = int(found[1])
    duration = None
    if time is not None:
        duration = round(float(time[2]) * (_MILLISECOND if time[1] == "ms" else SECOND))
    return StepLine(
        step=step,
        printed=step,
        form="iteration",
        target=int(found[2]),
        per_step=duration,
        loss=None if loss is None else loss_of(loss[1]),
        samples=None if samples is None else int(samples[1]),
        skipped=0 if skipped is None else int(skipped[1]),
    )


def _run(columns: Sequence[tuple[str, ...]]) -> StepRun:
    """Return what lines found by `_ROWS` say, up to the first whose loss is no finite number."""
    texts, _, stamps, steps, targets, samples, units, times, losses, _ = columns
    values = _finite(losses)
    kept = min(len(values), *(_alike(column) for column in (targets, units)))
    unit = _MILLISECOND if units[0] == "ms" else SECOND
    durations = np.rint(np.array(list(map(float, times[:kept]))) * unit)
    return StepRun(
        texts=texts[:kept],
        stamps=stamps[:kept],
        steps=list(map(int, steps[:kept])),
        target=int(targets[0]),
        samples=samples[:kept],
        per_step=durations.astype(np.int64),
        losses=values[:kept],
        form="iteration",
    )


def _alike(column: Sequence[str]) -> int:
    """Return how many of the first entries of a column are the same."""
    if column.count(column[0]) == len(column):
        return len(column)
    return next(number for number, one in enumerate(column) if one != column[0])


def _finite(texts: Sequence[str]) -> list[float]:
    """Return numbers up to the first text that is no finite one."""
    found: list[float] = []
    with contextlib.suppress(ValueError):
        found.extend(map(float, texts))
    if math.isfinite(sum(found)):
        return found
    return found[: next((n for n, one in enumerate(found) if not math.isfinite(one)), len(found))]


def _deepspeed(line: str) -> Saying | None:
    found = _DEEPSPEED.search(line)
    if found is None:
        return None
    return StepLine(step=int(found[1]), printed=int(found[1]), form="deepspeed")


def _first_form(line: str) -> Saying | None:
    found = _FIRST_FORM.search(line)
    if found is None:
        return None
    step, took = int(found[1]), round(float(found[3]) * SECOND)
    return StepLine(
        step=step, printed=step, form="deepspeed", per_step=took, loss=loss_of(found[2])
    )


def _saving(line: str) -> Saying | None:
    found = _SAVING.search(line)
    return None if found is None else SaveBegan(step=int(found[1]), checkpoint=_name(found[2]))


def _saved(line: str) -> Saying | None:
    found = _SAVED.search(line)
    return None if found is None else SaveEnded(step=int(found[1]), checkpoint=_name(found[2]))


def _scheduled(line: str) -> Saying | None:
    found = _SCHEDULED.search(line)
    if found is None:
        return None
    return SaveBegan(step=int(found[1]), checkpoint=_name(found[2]), background=True)


def _ready(line: str) -> Saying | None:
    found = _READY.search(line)
    return None if found is None else SaveEnded(step=int(found[1]))


def _writing(line: str) -> Saying | None:
    found = _WRITING.search(line)
    return None if found is None else Remark(kind="save", text=found[1])


def _loading(line: str) -> Saying | None:
    found = _LOADING.search(line)
    return None if found is None else LoadBegan(checkpoint=_name(found[1]), step=int(found[2]))


def _loaded(line: str) -> Saying | None:
    found = _LOADED.search(line)
    return None if found is None else LoadEnded(checkpoint=_name(found[1]), step=int(found[2]))


def _name(path: str) -> str:
    return path.rstrip(".,;")


def _random(line: str) -> Saying | None:
    return Continues(completed=0)


def _timers(line: str) -> tuple[Saying, ...] | None:
    """Read the timers of one line, of before 2022."""
    took: list[Saying] = []
    for name, value in _OLD_TIMER.findall(line):
        if name in _PHASES:
            took.append(Took(phase=_PHASES[name], duration=round(float(value) * _MILLISECOND)))
    return tuple(took) or None


def _timer(line: str) -> Saying | None:
    found = _TIMER.search(_plain(line))
    if found is None or found[1] not in _PHASES:
        return None
    longest = found[3] or found[2]
    return Took(phase=_PHASES[found[1]], duration=round(float(longest) * _MILLISECOND))


def _plain(line: str) -> str:
    """Return a line without the prefix of a rank that `torchrun --tee` put before it."""
    return line.partition("]:")[2] if line.startswith("[") else line


def _validated(line: str) -> Saying | None:
    found = _VALIDATED.search(line)
    if found is None:
        return None
    return PhaseSays(phase="evaluation", began=True, step=int(found[1]), sign=True)


def _evaluating(line: str) -> Saying | None:
    return PhaseSays(phase="evaluation", began=True)


def _argument(line: str) -> Saying | None:
    found = _ARGUMENT.search(_plain(line))
    if found is None or found[1] not in _SETTINGS or not found[2].isdigit():
        return None
    return Configured(name=_SETTINGS[found[1]], value=int(found[2]))


def _world(line: str) -> tuple[Saying, ...] | None:
    found = _WORLD.search(line)
    if found is None:
        return None
    return Began(), Configured(name="world_size", value=int(found[1]))


def _began(line: str) -> Saying | None:
    return Began()


def _exiting(line: str) -> Saying | tuple[Saying, ...] | None:
    found = _EXITING.search(line)
    if found is None:
        return None
    ran = None if found[1] is None else round(float(found[1]) * 60 * SECOND)
    if found[3] is not None:
        return Stops(reason="sigterm", handled="saved"), Finished(complete=False)
    return Finished(complete=False, ran=ran)


def _done(line: str) -> Saying | None:
    return Finished(complete=True)


def _stamp(line: str) -> Saying | None:
    return Remark(kind="stamp", text=line.strip()[:80])


FORMAT = Format(
    name="megatron",
    rows=Rows("iteration ", " lm loss: ", _ROWS, _run),
    rules=(
        Rule("iteration ", _step),
        Rule(", skipped=", _deepspeed),
        Rule("iter time (s):", _first_form),
        Rule("saving checkpoint at iteration", _saving),
        Rule("successfully saved checkpoint", _saved),
        Rule("scheduled an async checkpoint save", _scheduled),
        Rule("is ready now", _ready),
        Rule("heckpoint: ", _writing),
        Rule("loading ", _loading),
        Rule("successfully loaded checkpoint", _loaded),
        Rule("will start from random", _random),
        Rule("time (ms) |", _timers),
        Rule(" ..", _timer),
        Rule(" ...", _argument),
        Rule(" loss at iteration ", _validated),
        Rule("Evaluating on ", _evaluating),
        Rule("Evaluating iter", _evaluating),
        Rule("using world size:", _world),
        Rule("-- arguments --", _began),
        Rule("[after dataloaders are built]", _began),
        Rule("[before the start of training step]", _stamp),
        Rule("exiting program ", _exiting),
        Rule("[after training is done]", _done),
    ),
)
