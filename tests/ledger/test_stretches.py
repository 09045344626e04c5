"""A long attempt read stretch by stretch gives every number that reading it whole gives."""

import random

import numpy as np
import pytest

from headway.events import AttemptStarted, Envelope, PhaseEnded, Steps, StepsSummary
from headway.ledger import Timeline, book, stretches
from headway.ledger.group import group_steps
from headway.ledger.growth import COLUMNS
from headway.step_blocks import VERSION, Step, pack

SECOND = 10**9


def long_attempt(chance):
    """Return the events of one rank with pauses, saves, waits, stalls and summaries."""
    time, sequence, step = 1_750_000_000 * SECOND, 0, chance.choice((0, 50, 10**7))
    begin = time

    def event(record):
        nonlocal sequence
        sequence += 1
        return Envelope(
            producer="a" * 32,
            anchor=0,
            first_sequence=sequence,
            last_sequence=sequence,
            run="run",
            attempt="attempt",
            rank=0,
            node=None,
            wall=time,
            monotonic=time,
            event=record,
        )

    events = [event(AttemptStarted(layer="scheduler"))]
    detailed = chance.random() < 0.5
    while len(events) < 40:
        count = chance.randrange(1, 60)
        time += chance.choice((0, 0, 0, SECOND // 2, 5 * SECOND, 700 * SECOND))
        if detailed:
            rows = []
            for _ in range(count):
                wait = chance.choice((0, 0, 10**8))
                took = chance.choice((SECOND, SECOND, 2 * SECOND, 90 * SECOND))
                rows.append(Step(time + wait, took, wait))
                time += wait + took
            events.append(event(Steps(first_step=step + 1, packed=pack(rows), version=VERSION)))
        else:
            took = count * SECOND + chance.randrange(SECOND)
            time += took
            longest = chance.choice((None, took // 2))
            events.append(
                event(
                    StepsSummary(
                        first_step=step + 1,
                        num_steps=count,
                        duration=took,
                        longest=longest,
                        longest_step=None if longest is None else step + chance.randint(1, count),
                    )
                )
            )
        step += count
        if chance.random() < 0.3:
            time += 4 * SECOND
            events.append(event(PhaseEnded(phase="checkpoint_save", duration=3 * SECOND)))
    return events, begin, time


@pytest.mark.parametrize("seed", range(25))
def test_a_long_attempt_read_in_stretches_is_the_one_read_whole(seed, monkeypatch):
    events, _, end = long_attempt(random.Random(seed))  # noqa: S311
    monkeypatch.setattr(stretches, "STRETCH", 160)
    compared = []

    def both(attempt, before):
        found, whole = stretches.in_stretches(attempt, before), group_steps(attempt, before)
        compared.append((found, whole))
        return found

    monkeypatch.setattr(book, "in_stretches", both)
    timeline = Timeline("run")
    timeline.add(events)
    ledger = timeline.ledger(end)

    assert sum(ledger.categories.values()) == ledger.elapsed
    ((found, whole),) = compared
    assert found is not None
    for name in (*COLUMNS, "segment"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)), name
    assert np.array_equal(found.places[0], whole.places[0])
    for name in ("pieces", "lead_from", "lead_rank", "lead_wait", "pace", "inherited", "phases"):
        assert getattr(found, name) == getattr(whole, name), name
