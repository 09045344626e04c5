"""Makes the steps of a simulated run uneven: drawn durations, waits, early ranks, losses."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

from headway.events import Envelope, Steps
from headway.step_blocks import Step, pack, unpack


def uneven(events: Sequence[Envelope], seed: int) -> list[Envelope]:
    """Return the same run; the last step of each record still ends when it did."""
    random = Random(seed)  # noqa: S311
    return [
        replace(envelope, event=_uneven(envelope.event, random))
        if isinstance(envelope.event, Steps)
        else envelope
        for envelope in events
    ]


def _uneven(event: Steps, random: Random) -> Steps:
    """Draw anew where each step ends that its successor follows at once."""
    steps = list(unpack(event.version, event.packed))
    for place, (step, after) in enumerate(pairwise(steps)):
        end = step.start + step.duration
        if after.start - after.data_wait != end:
            continue
        moved = end + int(min(step.duration, after.duration) * random.uniform(-0.4, 0.4))
        early = int(step.duration * random.choice([0, 0, 0.05]))
        wait = int((after.start + after.duration - moved) * random.choice([0, 0, 0.1, 0.3]))
        steps[place] = step._replace(duration=moved - step.start - early)
        steps[place + 1] = after._replace(
            start=moved + wait,
            duration=after.start + after.duration - moved - wait,
            data_wait=wait,
        )
    return replace(event, packed=pack(Step(*step) for step in steps))
