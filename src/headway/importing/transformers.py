"""Hugging Face's Trainer, and LLaMA-Factory and axolotl, which run it; steps count from 1.

A save has a line when it begins and none when it ends, unless older ones are deleted after it.
"""

import re

from headway.importing.bars import BAR, step_of
from headway.importing.rules import Format, Rule, loss_of, number
from headway.importing.sayings import (
    Began,
    Configured,
    Continues,
    Finished,
    LoadBegan,
    PhaseSays,
    Remark,
    SaveBegan,
    SaveEnded,
    Saying,
    StepLine,
    Took,
)
from headway.importing.stamps import clock_reading, seconds

_TOTAL = re.compile(r"Total optimization steps = ([\d,]{1,15})")
_CONTINUES = re.compile(r"Continuing training from global step (\d{1,12})")
_FOLDER = re.compile(r"(\S{0,1000}checkpoint-(\d{1,12}))(?!\d)")
_EVALUATED = re.compile(r"'eval_runtime': '?([\d.]{1,20})")
_RAN = re.compile(r"'train_runtime': '?([\d.]{1,20})")
_LOSS = re.compile(r"'loss': '?([-+\w.]{1,30})")
_LLAMA = re.compile(
    r"\"current_steps\": (\d{1,12}), \"total_steps\": (\d{1,12})(?:, \"loss\": ([-+\w.]{1,30}))?"
)
_LLAMA_TIME = re.compile(r"\"elapsed_time\": \"(?:(\d{1,5}) days?, )?((?:\d{1,4}:)?\d{1,4}:\d\d)")


def _bar(line: str) -> Saying | None:
    found = BAR.search(line)
    if found is None or (found[1] or "").strip() == "Epoch":
        return None
    return step_of(found)


def _began(line: str) -> Saying | None:
    return Began()


def _total(line: str) -> Saying | None:
    found = _TOTAL.search(line)
    total = None if found is None else number(found[1])
    return None if total is None else Configured(name="target_step", value=total)


def _continues(line: str) -> Saying | None:
    found = _CONTINUES.search(line)
    return None if found is None else Continues(completed=int(found[1]))


def _saving(line: str) -> Saying | None:
    found = _FOLDER.search(line.partition("Saving model checkpoint to ")[2])
    return None if found is None else SaveBegan(step=int(found[2]), checkpoint=found[1])


def _accelerate_saving(line: str) -> Saying | None:
    found = _FOLDER.search(line.partition("Saving current state to ")[2])
    return None if found is None else SaveBegan(step=int(found[2]), checkpoint=found[1])


def _accelerate_saved(line: str) -> Saying | None:
    found = _FOLDER.search(line.partition("Saved state to ")[2])
    return None if found is None else SaveEnded(step=int(found[2]), checkpoint=found[1])


def _deleted(line: str) -> Saying | None:
    return SaveEnded()


def _loading(line: str) -> Saying | None:
    found = _FOLDER.search(line.partition("rom ")[2])
    return None if found is None else LoadBegan(step=int(found[2]), checkpoint=found[1])


def _evaluating(line: str) -> Saying | None:
    return PhaseSays(phase="evaluation", began=True)


def _evaluated(line: str) -> Saying | None:
    found = _EVALUATED.search(line)
    return None if found is None else Took(phase="evaluation", duration=seconds(found[1]))


def _ran(line: str) -> Saying | None:
    found = _RAN.search(line)
    return None if found is None else Finished(complete=True, ran=seconds(found[1]))


def _loss(line: str) -> Saying | None:
    found = _LOSS.search(line)
    return None if found is None else Remark(kind="loss", text=found[1])


def _done(line: str) -> Saying | None:
    return Finished(complete=True)


def _llama(line: str) -> Saying | None:
    found = _LLAMA.search(line)
    if found is None:
        return None
    passed = _LLAMA_TIME.search(line)
    elapsed = None
    if passed is not None:
        elapsed = clock_reading(f"{passed[1]}-{passed[2]}" if passed[1] else passed[2])
    return StepLine(
        step=int(found[1]),
        printed=int(found[1]),
        form="llama",
        target=int(found[2]),
        elapsed=elapsed,
        loss=loss_of(found[3]),
        redrawn=True,
        covers=int(found[1]),
    )


FORMAT = Format(
    name="huggingface",
    rules=(
        Rule("%|", _bar),
        Rule("***** Running training *****", _began),
        Rule("Total optimization steps", _total),
        Rule("Continuing training from global step", _continues),
        Rule("Saving model checkpoint to ", _saving),
        Rule("Deleting older checkpoint", _deleted),
        Rule("Loading model from ", _loading),
        Rule("Attempting to resume from ", _loading),
        Rule("Resuming from checkpoint ", _loading),
        Rule("Loading states from ", _loading),
        Rule("Saving current state to ", _accelerate_saving),
        Rule("Saved state to ", _accelerate_saved),
        Rule("***** Running Evaluation *****", _evaluating),
        Rule("'eval_runtime'", _evaluated),
        Rule("'train_runtime'", _ran),
        Rule("{'loss'", _loss),
        Rule("Training completed. Do not forget", _done),
        Rule('"current_steps"', _llama),
    ),
)
