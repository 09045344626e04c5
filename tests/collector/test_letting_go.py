"""Ledgers that hold no events while nobody asks say what those that hold all of them say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest

from headway.collector import ledgers
from headway.collector.ledgers import Ledgers
from headway.events import (
    CheckpointFinalized,
    CheckpointScheduled,
    Envelope,
    GpuXid,
    Heartbeat,
    NodeMemory,
    RunEnded,
    RunStarted,
)
from headway.expiry import Expiry
from headway.ledger.intake import occurred
from headway.ledger.segments import FrozenSegment
from headway.simulate import simulate
from made_up_plans import made_up_plan
from records import ANCHOR, SECOND, record, steps


def is_reading(event: Envelope, stays: Mapping[str, tuple[int, int]]) -> bool:
    if event.run is not None or event.node not in stays:
        return False
    since, until = stays[event.node]
    return isinstance(event.event, NodeMemory) and since <= occurred(event) <= until


class Stored:
    """What was stored, as the store gives it back."""

    def __init__(self) -> None:
        self.events: list[Envelope] = []
        self.num_reads = 0

    def __call__(
        self, run: str, stays: Mapping[str, tuple[int, int]]
    ) -> tuple[Sequence[FrozenSegment], Iterator[Envelope]]:
        self.num_reads += 1
        return (), (event for event in self.events if event.run == run or is_reading(event, stays))


class Both:
    """Ledgers that hold nothing for long, beside ledgers that hold everything."""

    def __init__(self, now: int, limit: int = 0) -> None:
        self.now = now
        self.stored = Stored()
        self.lean = Ledgers(lambda: self.now, self.stored, limit)
        self.whole = Ledgers(lambda: self.now)

    def add(self, envelopes: Sequence[Envelope]) -> None:
        self.stored.events += envelopes
        self.lean.add(envelopes)
        self.whole.add(envelopes)

    def agree(self, run: str) -> bool:
        # Within a second a ledger that took long is not computed again, on a busy machine any.
        self.now += 2 * SECOND
        lean, whole = self.lean.snapshot(run), self.whole.snapshot(run)
        return (lean.report, lean.ledger.intervals()) == (whole.report, whole.ledger.intervals())


NOW = ANCHOR + 3600 * SECOND


def about_node(second: int) -> Envelope:
    told = GpuXid(code=79, device="0000:3b:00.0")
    return replace(record(second, told, producer="ef" * 16, run=None), rank=None, attempt=None)


def test_a_run_that_was_let_go_is_read_again_with_what_came_since() -> None:
    both = Both(NOW)
    both.add([steps(1, 50, run="gpt-1"), steps(1, 50, run="llama-1")])
    assert both.agree("llama-1")
    assert both.agree("gpt-1")
    both.add([steps(51, 60, run="llama-1"), about_node(55)])
    both.add([about_node(58)])
    reads = both.stored.num_reads
    assert both.agree("llama-1")
    assert both.stored.num_reads == reads + 1
    assert both.lean.snapshot("llama-1").report["steps"]["highest"] == 60


def test_a_snapshot_outlives_the_events_it_came_from() -> None:
    both = Both(NOW)
    both.add([steps(1, 50, run="gpt-1"), steps(1, 50, run="llama-1")])
    before = both.lean.snapshot("gpt-1")
    both.lean.snapshot("llama-1")
    both.add([steps(51, 60, run="llama-1")])
    assert before.held is None
    reads = both.stored.num_reads
    assert both.lean.snapshot("gpt-1").report == both.whole.snapshot("gpt-1").report
    assert both.stored.num_reads == reads
    assert before.ledger.intervals() == both.whole.snapshot("gpt-1").ledger.intervals()


def test_the_run_that_was_asked_for_last_stays() -> None:
    both = Both(NOW)
    both.add([steps(1, 50, run="gpt-1"), steps(1, 50, run="llama-1")])
    both.lean.snapshot("gpt-1")
    both.lean.snapshot("llama-1")
    reads = both.stored.num_reads
    both.add([steps(51, 60, run="llama-1")])
    both.lean.snapshot("llama-1")
    assert both.stored.num_reads == reads


def test_below_its_limit_nothing_is_let_go() -> None:
    both = Both(NOW, limit=10**9)
    both.add([steps(1, 50, run="gpt-1"), steps(1, 50, run="llama-1")])
    assert both.agree("gpt-1")
    assert both.agree("llama-1")
    assert both.stored.num_reads == 0


def test_what_is_let_go_while_all_is_read_is_computed_before_and_not_read_again_for_it() -> None:
    stored, left = Stored(), []
    lean = Ledgers(lambda: NOW, stored)

    def compute(run: str) -> None:
        left.append(run)
        lean.compute(run)

    for run in ("gpt-1", "llama-1", "qwen-1"):
        ended = record(60, RunEnded(reason="completed"), run=run)
        lean.add([steps(1, 50, run=run), ended], compute)
    assert left == ["gpt-1", "llama-1"]
    for run in left:
        assert lean.compute(run).report["steps"]["highest"] == 50
        assert lean.compute(run).held is None
    assert stored.num_reads == 0


def test_what_only_the_store_has_of_a_nodes_memory_reaches_its_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledgers, "MOST_READINGS", 5)
    both = Both(NOW, limit=10**9)
    readings = [
        replace(about_node(second), event=NodeMemory(available=1_000 - second), producer="fe" * 16)
        for second in range(1, 301)
    ]
    both.add(readings[:200])
    saved = [
        record(100, CheckpointScheduled(checkpoint="c", step=99), producer="cd" * 16),
        record(150, CheckpointFinalized(checkpoint="c", step=99), producer="cd" * 16),
    ]
    both.add([steps(1, 300), *saved])
    assert both.agree("llama-1")
    (checkpoint,) = both.lean.snapshot("llama-1").ledger.checkpoints
    assert checkpoint.lowest_memory == 850
    assert both.stored.num_reads == 1
    for reading in readings[200:]:
        both.add([reading])
        assert both.agree("llama-1")
    assert both.stored.num_reads == 1


def test_a_long_life_of_heartbeats_takes_little() -> None:
    both = Both(NOW + 86_400 * SECOND, limit=10**9)
    beats = [record(n, Heartbeat(last_step=n), producer="cd" * 16) for n in range(1, 5_000)]
    both.add([record(0, RunStarted(run_name="llama"), producer="ef" * 16)])
    for begin in range(0, len(beats), 500):
        both.add(beats[begin : begin + 500])
        assert both.agree("llama-1")
    ledger = next(iter(both.lean._runs.values()))
    assert ledger.weight < 1_500 * 700


def test_where_raw_records_expired_the_run_is_read_again_whenever_that_was() -> None:
    both = Both(NOW, limit=10**9)
    both.add([steps(1, 50, run="llama-1")])
    assert both.agree("llama-1")
    both.lean.expire("llama-1", Expiry(removed=(), kept=(), segments=(), same=True))
    assert both.agree("llama-1")
    assert both.stored.num_reads == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_let_go_and_when_the_reports_are_the_same(seed: int) -> None:
    random = Random(seed)  # noqa: S311
    told = [simulate(made_up_plan(2 * seed + number), seed=number) for number in (0, 1)]
    both = Both(max(one.end for one in told) + 60 * SECOND, limit=random.choice([0, 100_000]))
    left = [list(one.events) for one in told]
    while any(left):
        events = random.choice([each for each in left if each])
        count = random.randint(1, 1 + len(events) // 3)
        both.add(events[:count])
        del events[:count]
        if random.random() < 0.5:
            assert both.agree(
                random.choice([one.run for one in told if one.run in both.lean.runs()])
            )
    assert all(both.agree(one.run) for one in told)
    assert both.stored.num_reads > 0
