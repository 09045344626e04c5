"""Lines that are taken many at a time say what they say one by one, whatever stands between."""

import random

import pytest

from headway.importing.formats import rules_for
from headway.importing.log import LogImport
from headway.importing.merging import Stream
from headway.importing.stamps import Stamps


def random_log(chance):
    """Return the lines of a Megatron run with breaks, repeats, jumps, oddities and damage."""
    interval = chance.choice((1, 1, 2, 10))
    stamped = chance.random() < 0.8
    head = chance.choice(("", "", "", "[default7]:", "0: "))
    step_ms = chance.choice((80.0, 900.5, 8000.0, 70_000.0))
    now = 1_767_225_600 + chance.randrange(100_000)
    step, lines = chance.choice((0, 1000 * interval)), []
    for _ in range(chance.randrange(50, 700)):
        step += interval
        took = step_ms * chance.choice((1, 1, 1, 1, 1, 1.02, 0.98, 0.5, 3))
        now += interval * took / 1000 * chance.choice((1, 1, 1, 1, 1, 1, 0.6, 1.4))
        dice = chance.random()
        if dice < 0.01:
            step = max(step - chance.randrange(1, 30) * interval, interval)
        elif dice < 0.015:
            step += interval
        elif dice < 0.02:
            now += chance.choice((3, 120, 7200))
        elif dice < 0.023:
            now -= chance.choice((1, 3600))
        loss = f"{2 + chance.random() + (5 if chance.random() < 0.02 else 0):.6E}"
        loss = chance.choice(("nan", "inf", "1e-")) if chance.random() < 0.005 else loss
        line = (
            f"{head} {stamp(now) if stamped else ''}iteration {step:8d}/ "
            f"{1_000_000 if chance.random() < 0.998 else 5} | "
            f"consumed samples: {step * 16:12d} | elapsed time per iteration "
            f"({'ms' if chance.random() < 0.998 else 's'}): {took:.1f} | learning rate: 1.0E-05 | "
            f"{'' if chance.random() < 0.005 else f'lm loss: {loss} | '}grad norm: 3.874 | "
            f"number of skipped iterations: {int(chance.random() < 0.01):3d} | "
            "number of nan iterations:   0 |"
        )
        lines.append(line)
        dice = chance.random()
        if dice < 0.004:
            lines.append(line)
        elif dice < 0.008:
            lines[-1] = line[: chance.randrange(len(line))] + lines[-2 if len(lines) > 1 else -1]
        elif dice < 0.012:
            lines.append(head.replace("7", "3") + line.removeprefix(head))
        elif dice < 0.016:
            lines += ["", "noise " * chance.randrange(5)]
        elif dice < 0.04:
            lines.append(f"saving checkpoint at iteration {step:7d} to ckpt in torch_dist format")
            lines.append(f"  successfully saved checkpoint from iteration {step:7d} to ckpt")
        elif dice < 0.045:
            lines.append(f" loading checkpoint from ckpt at iteration {max(step - 5, 0)}")
    return "\n".join(lines) + chance.choice(("\n", ""))


def stamp(now):
    hours, rest = divmod(int(now) % 86_400, 3600)
    day = (int(now) - 1_767_225_600) // 86_400
    return f"[2026-01-{day + 1:02} {hours:02}:{rest // 60:02}:{rest % 60:02}] "


def told(text, cut, *, alone):
    clock = Stamps()
    stream = Stream([text[:cut], text[cut:]], rules_for("megatron"), clock, alone=alone)
    log = LogImport("run", clock)
    for one in stream:
        log.take(one.saying, one.moment, one.rank, one.text)
    runs = log.finish(0)
    counted = stream.reader.lines, stream.reader.understood, dict(stream.reader.formats)
    return [(one.course.journal.envelopes, one.course.findings.values(0)) for one in runs], counted


@pytest.mark.parametrize("seed", range(30))
def test_lines_taken_together_say_what_they_say_singly(seed):
    chance = random.Random(seed)  # noqa: S311
    text = random_log(chance)
    cut = chance.randrange(len(text))

    together, counts = told(text, cut, alone=True)
    singly, counts_singly = told(text, cut, alone=False)

    assert len(together) == len(singly)
    for (events, found), (events_singly, found_singly) in zip(together, singly, strict=True):
        for one, other in zip(events, events_singly, strict=False):
            assert repr(one) == repr(other)
        assert len(events) == len(events_singly)
        assert repr(found) == repr(found_singly)
    assert counts == counts_singly
