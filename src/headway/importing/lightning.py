"""PyTorch Lightning and NeMo; their epochs count from 0, a bar's number is of completed batches.

NeMo's own lines name the step in progress from 0 (`global_step: 1` is the second): one more is
done when it is printed. `step=N` in the name of a checkpoint is a count of completed steps.
"""

import re

from headway.importing.bars import BAR, step_of
from headway.importing.rules import Format, Rule, loss_of
from headway.importing.sayings import (
    Began,
    Configured,
    Finished,
    LoadBegan,
    LoadEnded,
    Remark,
    SaveBegan,
    SaveEnded,
    Saying,
    StepLine,
    Stops,
)
from headway.importing.stamps import SECOND, seconds

_RESTORED = re.compile(
    r"(Restored|Restoring) (?:all )?states from the checkpoint (?:path )?at (\S{1,1000})"
)
_NAMED_STEP = re.compile(r"\bstep=(\d{1,12})(?!\d)")
_SAVING = re.compile(
    r"Epoch (\d{1,9}), global step (\d{1,12}): .{1,300}saving model to '?([^']{1,1000})"
)
_MEMBER = re.compile(r"GLOBAL_RANK: (\d{1,9}), MEMBER: \d{1,9}/(\d{1,9})")
_NEMO = re.compile(
    r"Training epoch (\d{1,9}), iteration (\d{1,12})/(\d{1,12}) \|"
    r"(?:.{0,400}?global_step: (\d{1,12}))?"
)
_NEMO_LOSS = re.compile(r"\breduced_train_loss: ([-+\w.]{1,30})")
_NEMO_TIME = re.compile(r"\btrain_step_timing in s: ([\d.]{1,20})")
_NEMO_SAMPLES = re.compile(r"\bconsumed_samples: (\d{1,18})")
_FINALIZED = re.compile(r"Async checkpoint save for step (\d{1,12}) .{0,600}finalized successfully")
_SCHEDULED = re.compile(r"Scheduled async checkpoint save for (\S{1,1000})")
_GLOBAL_LOAD = re.compile(
    r"Global Checkpoint Load .{0,200}Time spent in load_checkpoint: ([\d.]{1,20})"
)
_SIGNAL = re.compile(r"Received signal (\d{1,3}), initiating graceful stop")


def _bar(line: str) -> Saying | None:
    found = BAR.search(line)
    if found is None or (found[1] or "").strip() != "Epoch":
        return None
    return step_of(found)


def _restored(line: str) -> Saying | None:
    found = _RESTORED.search(line)
    if found is None:
        return None
    step = _NAMED_STEP.search(found[2])
    completed = None if step is None else int(step[1])
    if found[1] == "Restored":
        return LoadEnded(checkpoint=found[2], step=completed)
    return LoadBegan(checkpoint=found[2], step=completed)


def _saving(line: str) -> Saying | None:
    found = _SAVING.search(line)
    return None if found is None else SaveBegan(step=int(found[2]), checkpoint=found[3])


def _member(line: str) -> tuple[Saying, ...] | None:
    found = _MEMBER.search(line)
    if found is None:
        return None
    return Began(), Configured(name="world_size", value=int(found[2]))


def _began(line: str) -> Saying | None:
    return Began()


def _stopped(line: str) -> Saying | None:
    return Finished(complete=True)


def _bypassed(line: str) -> Saying | None:
    return Stops(reason="sigterm", handled="bypassed")


def _interrupted(line: str) -> Saying | None:
    return Stops(reason="operator", handled="graceful stop")


def _nemo(line: str) -> Saying | None:
    found = _NEMO.search(line)
    if found is None:
        return None
    epoch, index, of = int(found[1]), int(found[2]), int(found[3])
    done = (epoch * of + index if found[4] is None else int(found[4])) + 1
    loss, timing = _NEMO_LOSS.search(line), _NEMO_TIME.search(line)
    samples = _NEMO_SAMPLES.search(line)
    return StepLine(
        step=done,
        printed=done - 1,
        form="nemo",
        per_step=None if timing is None else round(float(timing[1]) * SECOND),
        loss=None if loss is None else loss_of(loss[1]),
        samples=None if samples is None else int(samples[1]),
        scope=(epoch, of),
    )


def _preempted(line: str) -> Saying | None:
    return Stops(reason="preemption", handled="saved")


def _signalled(line: str) -> Saying | None:
    return Stops(reason="preemption") if _SIGNAL.search(line) else None


def _finalized(line: str) -> Saying | None:
    found = _FINALIZED.search(line)
    return None if found is None else SaveEnded(step=int(found[1]), background=True)


def _scheduled(line: str) -> Saying | None:
    found = _SCHEDULED.search(line)
    if found is None:
        return None
    step = _NAMED_STEP.search(found[1])
    if step is None:
        return Remark(kind="save", text=found[1])
    return SaveBegan(step=int(step[1]), checkpoint=found[1], background=True)


def _global_load(line: str) -> Saying | None:
    found = _GLOBAL_LOAD.search(line)
    return None if found is None else LoadEnded(took=seconds(found[1]))


FORMAT = Format(
    name="lightning",
    first_step=0,
    rules=(
        Rule("%|", _bar),
        Rule("states from the checkpoint", _restored),
        Rule("saving model to", _saving),
        Rule("GLOBAL_RANK:", _member),
        Rule("GPU available:", _began),
        Rule("`Trainer.fit` stopped:", _stopped),
        Rule("Bypassing SIG", _bypassed),
        Rule("Detected KeyboardInterrupt", _interrupted),
    ),
)
NEMO = Format(
    name="nemo",
    stands_on=("lightning",),
    first_step=0,
    rules=(
        Rule("Training epoch", _nemo),
        Rule("Preemption detected", _preempted),
        Rule("initiating graceful stop", _signalled),
        Rule("finalized successfully", _finalized),
        Rule("Scheduled async checkpoint save", _scheduled),
        Rule("Global Checkpoint Load", _global_load),
    ),
)
