"""Progress bars of tqdm: Hugging Face's Trainer, Lightning, NeMo 1; and lines of HF's Trainer.

A bar is redrawn, counts its time from its own start, and its rate flips between steps per second
and seconds per step. What stands behind a bar on the same line is a line of its own.
"""

import re

from headway.importing.rules import loss_of
from headway.importing.sayings import StepLine
from headway.importing.stamps import SECOND, clock_reading

BAR = re.compile(
    r"(?:([A-Z][\w ]{0,60}?)\s?(\d{1,9})?\s?:{1,2}\s{0,3}:?\s{0,3})?"
    r"\d{1,3}%\|[^|]{0,400}\|\s{0,9}(\d{1,12})/(\d{1,12}) "
    r"\[((?:\d{1,4}:)?\d{1,4}:\d\d)<([^,\]]{1,20})"
    r"(?:,\s{0,9}([\d.]{1,12}|\?)\s?(s/it|it/s|s/step|it/min))?([^\]]{0,1000})\]"
)
_LOSS = re.compile(r"\b(?:reduced_train_loss|train_loss|loss)[=:]\s?([-+\w.]{1,30})")
_GLOBAL = re.compile(r"\bglobal_step=\s?(\d{1,12})(?:\.0{1,6})?\b")
_SAMPLES = re.compile(r"\bconsumed_samples=\s?(\d{1,18})(?:\.0{1,6})?\b")
_NEMO_TIME = re.compile(r"\btrain_step_timing in s=\s?([\d.]{1,20})")


def step_of(found: "re.Match[str]") -> StepLine | None:
    """Return the progress that a bar of training shows, None for any other bar."""
    label, number, done, total, elapsed, _, rate, unit, tail = found.groups()
    name = (label or "").strip()
    if name not in ("", "Epoch", "Training", "Train", "Steps"):
        return None
    if rate is None and name != "Epoch":
        return None  # NeMo 1 leaves the rate out, of its epochs alone
    here, of = int(done), int(total)
    loss = _LOSS.search(tail)
    counted = _GLOBAL.search(tail)
    samples = _SAMPLES.search(tail)
    timing = _NEMO_TIME.search(tail)
    in_epoch = name == "Epoch" and number is not None
    step = here + (int(number) * of if in_epoch else 0)
    if counted is not None:
        step = int(counted[1]) + 1  # NeMo counts the step in progress, from 0
    if step <= 0:
        return None
    spent = clock_reading(elapsed)
    covers = _covered(here, spent, rate, unit)
    return StepLine(
        step=step,
        printed=here,
        form="bar",
        target=None if in_epoch or counted is not None else of,
        per_step=None if timing is None else round(float(timing[1]) * SECOND),
        elapsed=spent,
        loss=None if loss is None else loss_of(loss[1]),
        samples=None if samples is None else int(samples[1]),
        redrawn=True,
        covers=covers,
        scope=(int(number or 0), of) if in_epoch else None,
    )


def _covered(done: int, spent: int, rate: str | None, unit: str) -> int | None:
    """Return all steps of a bar if its rate says that it has counted its time from step 0."""
    if rate is None or rate == "?" or float(rate) == 0 or not spent:
        return None
    speed = float(rate) if unit == "it/s" else 1 / float(rate)
    return done if 0.5 * done <= spent / SECOND * speed <= 2 * done else None
