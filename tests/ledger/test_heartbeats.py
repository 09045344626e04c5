"""A ledger that let go of heartbeats which tell nothing equals one that holds them all."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from headway import wire
from headway.blocks import Block, Column, expanded, num_records
from headway.events import Envelope, Heartbeat, Note
from headway.ledger import Timeline, intake
from headway.ledger.heartbeats import APART, thinned, untold
from headway.report import report
from headway.simulate import simulate
from made_up_plans import made_up_plan
from records import ANCHOR, SECOND, record, steps


def beating(events: list[Envelope], random: Random) -> Iterator[Envelope]:
    """Yield events in order of time, and between those of each rank a lot of heartbeats."""
    of_ranks = defaultdict(list)
    for event in events:
        if event.rank is not None and event.attempt is not None:
            of_ranks[event.attempt, event.rank].append(event)
    beats = []
    for (attempt, rank), listed in of_ranks.items():
        first, last = listed[0].monotonic, listed[-1].monotonic
        every = (last - first) // random.randint(50, 99) + 1
        for number, time in enumerate(range(first, last, every), 1):
            told = Heartbeat(open_phases=(random.choice(["step", "checkpoint_save"]),))
            beat = replace(
                listed[0],
                producer=f"{attempt}-{rank}",
                first_sequence=number,
                last_sequence=number,
                wall=listed[0].anchor + time,
                monotonic=time,
                event=told,
            )
            beats.append(beat)
    yield from sorted([*events, *beats], key=lambda one: one.anchor + one.monotonic)


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 8))]
)
def test_whenever_heartbeats_are_let_go_every_later_ledger_is_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "THIN_FROM", 10)
    random = Random(seed)  # noqa: S311
    told = simulate(made_up_plan(seed), seed=seed)
    events = list(beating(list(told.events), random))
    lean, whole = Timeline(told.run), Timeline(told.run)
    while events:
        count = random.randint(1, 1 + len(events) // 2)
        some, events = events[:count], events[count:]
        random.shuffle(some)
        now = max(one.anchor + one.monotonic for one in some) + 1
        lean.add(some)
        whole.add(some)
        assert report(lean.ledger(now)) == report(whole.ledger(now))
        lean.thin(now - random.choice([0, 60 * SECOND]))
        later = now + random.choice([0, 30 * SECOND])
        assert report(lean.ledger(later)) == report(whole.ledger(later))
        assert lean.ledger(later).intervals() == whole.ledger(later).intervals()
    assert lean.num_records < whole.num_records


def test_the_first_and_the_last_heartbeat_of_a_rank_stay_and_some_of_a_long_time() -> None:
    minute = 60 * SECOND
    beats = [(number * minute, rank) for number in range(181) for rank in (0, 1)]
    gone = set(untold(beats))
    kept = [
        time // minute for place, (time, rank) in enumerate(beats) if place not in gone and rank
    ]
    assert kept == [0, 59, 118, 177, 180]


def test_what_stays_of_heartbeats_is_never_further_apart_than_told_unless_they_were() -> None:
    random = Random(1)  # noqa: S311
    times = sorted(random.randrange(50 * APART) for _ in range(400))
    gone = set(untold([(time, 0) for time in times]))
    kept = [time for place, time in enumerate(times) if place not in gone]
    assert len(kept) < 200
    for before, after in pairwise(kept):
        between = [time for time in times if before < time < after]
        assert not between or after - before < APART


def block(told: Sequence[Envelope]) -> Block:
    """Return records of one producer and kind as the collector has them."""
    one = told[0]
    kind = type(one.event)

    def column(values: list[Any]) -> Column:
        same = all(value == values[0] for value in values)
        return Column(values[0], None) if same else Column(None, values)

    return Block(
        producer={name: getattr(one, name) for name in wire.PRODUCER_FIELDS},
        kind=kind,
        count=len(told),
        record={
            name: column([getattr(each, name) for each in told])
            for name in ("first_sequence", "attempt", "rank", "wall", "monotonic")
        },
        fields={
            name: column([getattr(each.event, name) for each in told]) for name in wire.specs(kind)
        },
    )


def test_of_a_block_of_heartbeats_its_first_and_its_last_are_left() -> None:
    beats = [record(number, Heartbeat(last_step=number)) for number in range(200, 250)]
    parts = [block(beats)]
    assert list(expanded(parts)) == beats
    assert list(expanded(thinned(parts, ANCHOR + 300 * SECOND))) == [beats[0], beats[-1]]
    assert thinned(parts, ANCHOR + 220 * SECOND) == parts


def test_of_other_blocks_and_of_heartbeats_without_an_attempt_all_are_left() -> None:
    lost = [replace(record(n, Heartbeat(last_step=n)), attempt=None) for n in range(200, 250)]
    words = [record(n, Note(text=f"{n}"), producer="cd" * 16) for n in range(200, 250)]
    parts = [block(lost), block(words), steps(1, 20, producer="ef" * 16)]
    left = thinned(parts, ANCHOR + 300 * SECOND)
    assert sum(map(num_records, left)) == sum(map(num_records, parts)) == 120
