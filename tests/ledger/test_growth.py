"""A ledger asked again and again while events arrive equals one that is read at once.

The stretch of steps that is read again is made short here, so that short runs have older steps.
"""

import random
from dataclasses import dataclass, field

import pytest

from headway.events import CheckpointScheduled, Envelope, Heartbeat, Resumed
from headway.ledger import Ledger, Timeline, book, growth, ledger, pace
from headway.ledger.timeouts import longest_phases
from oracle.random_timelines import random_run
from oracle.scenario import SECOND, Scenario


@dataclass
class Growth:
    """Counts how often an attempt only went on."""

    tried: int = 0
    taken: int = 0
    calls: list[str] = field(default_factory=list)


@pytest.fixture
def grows(monkeypatch: pytest.MonkeyPatch) -> Growth:
    """Shorten the stretch and count."""
    counted = Growth()

    def grown(*arguments: object) -> object:
        counted.tried += 1
        found = growth.grown(*arguments)  # type: ignore[arg-type]
        counted.taken += found is not None
        return found

    monkeypatch.setattr(book, "grown", grown)
    monkeypatch.setattr(pace, "WINDOW", 6)
    monkeypatch.setattr(growth, "FOREIGN", 8)
    monkeypatch.setattr(growth, "OVERLAP", 11)
    return counted


def some(few: int, of: int) -> list[object]:
    """Return seeds, of which only a few belong to the fast tests."""
    slow = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(few, of)]
    return [*(pytest.param(seed) for seed in range(few)), *slow]


def long_run(seed: int) -> list[Envelope]:
    """Return a run of two attempts with many steps, phases, waits and ranks at different speeds."""
    chance = random.Random(seed)  # noqa: S311
    run = Scenario(unit=1)
    ranks = tuple(range(chance.choice((1, 1, 2, 3))))
    now, completed = 0, 0
    for attempt in ("a", "b"):
        begin = now
        run.start(attempt, now, ranks)
        if attempt == "b":
            now += 5 * SECOND
            run.phase(attempt, "checkpoint_load", begin, now)
            for rank in ranks:
                run.event(now, Resumed(completed=completed), attempt, rank)
        ends = dict.fromkeys(ranks, now)
        for step in range(completed + 1, completed + chance.randrange(30, 80)):
            for rank in ranks:
                wait = chance.choice((0, 0, chance.randrange(SECOND)))
                gap = chance.choice((0, 0, 0, chance.randrange(5 * SECOND)))
                took = chance.choice((SECOND, SECOND, 2 * SECOND, 200 * SECOND))
                took += chance.randrange(SECOND)
                start = max(ends[rank], now - chance.randrange(2 * SECOND)) + gap
                ends[rank] = round(run.steps(attempt, step, 1, start, took, rank, wait))
                if chance.random() < 0.1:
                    beat = Heartbeat(open_phases=("step",), last_step=step)
                    run.event(ends[rank], beat, attempt, rank)
                if chance.random() < 0.15:
                    length = chance.randrange(4 * SECOND)
                    name = chance.choice(("checkpoint_save", "evaluation", "custom:check"))
                    late = chance.choice((0, 0, SECOND))
                    run.phase(attempt, name, ends[rank] - late, ends[rank] + length, rank)
                    ends[rank] += chance.choice((0, length))
                if chance.random() < 0.1:
                    blocking = chance.randrange(SECOND)
                    saved = CheckpointScheduled(checkpoint=f"c{step}", step=step, blocking=blocking)
                    run.event(ends[rank], saved, attempt, rank)
            now = max(ends.values())
            completed = step
        completed -= 5
        run.exit(attempt, now, ranks, code=1, by="itself")
        now += 30 * SECOND
    return run.envelopes()


def agree(online: Ledger, batch: Ledger) -> None:
    assert online.categories == batch.categories
    assert online.parts == batch.parts
    assert online.steps == batch.steps
    assert online.attempts == batch.attempts
    assert online.flags == batch.flags
    assert online.intervals() == batch.intervals()
    assert longest_phases(online) == longest_phases(batch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(3, of=60))
def test_a_run_read_record_by_record_equals_one_read_at_once(seed: int, grows: Growth) -> None:
    chance = random.Random(seed)  # noqa: S311
    envelopes = long_run(seed)
    timeline = Timeline("run-1")
    position = 0
    while position < len(envelopes):
        count = chance.choice((1, 1, 2, 5, 30))
        timeline.add(envelopes[position : position + count])
        position = min(position + count, len(envelopes))
        last = envelopes[position - 1]
        as_of = last.anchor + last.monotonic + chance.choice((0, 0, SECOND))
        agree(timeline.ledger(as_of), ledger(envelopes[:position], as_of))
    assert grows.taken > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(4, of=150))
def test_a_random_run_equals_itself_on_every_prefix(seed: int, grows: Growth) -> None:
    envelopes = random_run(seed)
    timeline = Timeline(envelopes[0].run or "")
    for position, envelope in enumerate(envelopes, start=1):
        timeline.add([envelope])
        if position % 3 == 0 or position == len(envelopes):
            as_of = max(one.anchor + one.monotonic for one in envelopes[:position])
            agree(timeline.ledger(as_of), ledger(envelopes[:position], as_of))
