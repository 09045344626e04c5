"""What summaries in place of steps would do to the ledger: `scripts/bench summaries [--json]`.

A made-up run of 8 ranks in lockstep whose waits for data vary by chance. Its ledger is reckoned
from every rank's steps, and from the steps of one rank and summaries of 100 steps of the others.
"""

import argparse
import json
import random
from collections.abc import Iterator, Sequence

from headway import step_blocks
from headway.events import AttemptStarted, Envelope, Event, Resumed, RunStarted, Steps, StepsSummary
from headway.ledger import Timeline
from headway.step_blocks import Step

RANKS, STEPS, BLOCK = 8, 2000, 100
SECOND = 1_000_000_000
WORK = 80_000_000
ANCHOR = 10**18


def lockstep(chance: random.Random) -> list[list[Step]]:
    """Return each rank's steps: all end together, when the last to get its batch has worked."""
    ranks: list[list[Step]] = [[] for _ in range(RANKS)]
    now = SECOND
    for _ in range(STEPS):
        waits = [chance.randint(5_000_000, 20_000_000) for _ in ranks]
        if chance.random() < 0.02:  # a slow file on one of them
            waits[chance.randrange(RANKS)] += chance.randint(SECOND // 2, 2 * SECOND)
        end = now + max(waits) + WORK
        for steps, wait in zip(ranks, waits, strict=True):
            steps.append(Step(now + wait, end - now - wait, wait))
        now = end
    return ranks


def categories(ranks: Sequence[Sequence[Step]], *, detailed: int) -> dict[str, float]:
    """Return the ledger in seconds if so many ranks tell their steps and the others summaries."""
    timeline = Timeline("r")
    timeline.add(
        envelope
        for rank, steps in enumerate(ranks)
        for envelope in _told(rank, steps, in_detail=rank < detailed)
    )
    end = ranks[0][-1].start + ranks[0][-1].duration
    found = timeline.ledger(ANCHOR + end).categories
    return {name: time / SECOND for name, time in found.items() if time}


def _told(rank: int, steps: Sequence[Step], *, in_detail: bool) -> Iterator[Envelope]:
    starts = (
        RunStarted(run_name="r"),
        AttemptStarted(layer="scheduler", world_size=RANKS),
        Resumed(completed=0),
    )
    for sequence, event in enumerate(starts):
        yield _envelope(rank, event, sequence, 1, at=sequence)
    for first in range(0, len(steps), BLOCK):
        block = steps[first : first + BLOCK]
        end = block[-1].start + block[-1].duration
        event = _detail(first, block) if in_detail else _summary(first, block, end)
        yield _envelope(rank, event, len(starts) + first, len(block), at=end)


def _detail(first: int, block: Sequence[Step]) -> Steps:
    packed = step_blocks.pack(block)
    return Steps(first_step=first + 1, version=step_blocks.VERSION, packed=packed)


def _summary(first: int, block: Sequence[Step], end: int) -> StepsSummary:
    begin = block[0].start - block[0].data_wait
    return StepsSummary(
        first_step=first + 1,
        num_steps=len(block),
        duration=end - begin,
        step_time=sum(step.duration for step in block),
        data_wait=sum(step.data_wait for step in block),
    )


def _envelope(rank: int, event: Event, sequence: int, records: int, *, at: int) -> Envelope:
    return Envelope(
        producer=f"p{rank}",
        anchor=ANCHOR,
        first_sequence=sequence,
        last_sequence=sequence + records - 1,
        run="r",
        attempt="a",
        rank=rank,
        wall=ANCHOR + at,
        monotonic=at,
        event=event,
    )


def main() -> None:
    """Reckon and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench summaries", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    ranks = lockstep(random.Random(3))  # noqa: S311  # made-up waits
    found = {
        "steps": categories(ranks, detailed=RANKS),
        "summaries": categories(ranks, detailed=1),
    }
    if options.json:
        print(json.dumps(found))
        return
    for name in sorted({*found["steps"], *found["summaries"]}):
        steps, summaries = (found[side].get(name, 0.0) for side in ("steps", "summaries"))
        print(f"{name:<14} {steps:>9.2f} s from steps {summaries:>9.2f} s with summaries")


if __name__ == "__main__":
    main()
