"""What holds for every ledger, tried on random runs: sums, order, batching, knowledge."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest

from headway.events import Allocation, Steps
from headway.ledger import Timeline, ledger
from headway.wire import trim
from ledger_laws import drawn, told


def seeds(fast, all_of_them):
    """Return some seeds for every run of the tests and more for the slow ones."""
    more = (pytest.param(seed, marks=pytest.mark.slow) for seed in range(fast, all_of_them))
    return [*range(fast), *more]


SEEDS = seeds(20, 120)
FEW = seeds(5, 40)
CLOCKLESS = frozenset({"clock", "absurd"})


@pytest.mark.parametrize("seed", SEEDS)
def test_the_parts_sum_to_the_whole_and_so_do_any_windows(seed):
    envelopes, as_of, rng = drawn(seed)
    book = ledger(envelopes, as_of)
    assert sum(book.categories.values()) == book.elapsed
    assert all(amount >= 0 for amount in book.categories.values())
    for category, parts in book.parts.items():
        assert sum(parts.values()) <= book.categories[category]
    cuts = sorted(rng.randint(book.start, book.closed_at) for _ in range(6))
    summed = Counter()
    for begin, end in pairwise([book.start, *cuts, book.closed_at]):
        window = book.amounts(begin, end)
        assert sum(window.values()) == end - begin
        summed.update(window)
    assert +summed == +book.amounts(book.start, book.closed_at)


@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_tile_the_run_without_gap_or_overlap(seed):
    envelopes, as_of, _ = drawn(seed)
    book = ledger(envelopes, as_of)
    reached = book.start
    amounts = Counter()
    for interval in book.intervals():
        assert interval.start == reached
        assert sum(interval.amounts.values()) == interval.end - interval.start
        amounts.update(interval.amounts)
        reached = interval.end
    assert reached == book.closed_at
    assert +amounts == +Counter(book.categories)


@pytest.mark.parametrize("seed", SEEDS)
def test_ratios_lie_between_nothing_and_everything(seed):
    envelopes, as_of, _ = drawn(seed)
    book = ledger(envelopes, as_of)
    for ratio in (book.training_goodput, book.infrastructure_goodput):
        if ratio.low is not None:
            assert 0 <= ratio.low <= ratio.high <= 1


@pytest.mark.parametrize("seed", SEEDS)
def test_order_and_repetition_change_nothing(seed):
    envelopes, as_of, rng = drawn(seed)
    again = [*envelopes, *rng.choices(envelopes, k=10)]
    rng.shuffle(again)
    assert told(ledger(again, as_of)) == told(ledger(envelopes, as_of))


def split(envelope, rng):
    """Cut a block of steps into pieces that overlap."""
    first, last = envelope.first_sequence, envelope.last_sequence
    if not isinstance(envelope.event, Steps) or first == last:
        return [envelope]
    cut = rng.randint(first, last - 1)
    return [trim(envelope, first, rng.randint(cut, last)), trim(envelope, cut + 1, last)]


def merged(envelopes):
    """Join blocks of steps that follow each other."""
    found = []
    for envelope in envelopes:
        before = found[-1] if found else None
        if (
            before is not None
            and isinstance(envelope.event, Steps)
            and isinstance(before.event, Steps)
            and envelope.producer == before.producer
            and envelope.attempt == before.attempt
            and envelope.first_sequence == before.last_sequence + 1
            and envelope.event.first_step
            == before.event.first_step + before.last_sequence - before.first_sequence + 1
        ):
            packed = before.event.packed + envelope.event.packed
            event = replace(before.event, packed=packed)
            found[-1] = replace(envelope, first_sequence=before.first_sequence, event=event)
        else:
            found.append(envelope)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_batching_is_transport_and_changes_nothing(seed):
    envelopes, as_of, rng = drawn(seed)
    pieces = [part for envelope in envelopes for part in split(envelope, rng)]
    rng.shuffle(pieces)
    expected = told(ledger(envelopes, as_of))
    assert told(ledger(pieces, as_of)) == expected
    pieces.sort(key=lambda part: (part.producer, part.first_sequence, part.last_sequence))
    assert told(ledger([*merged(pieces), *pieces], as_of)) == expected


def arrivals(seed):
    """Envelopes as they might arrive: mostly in the order of time, some late."""
    envelopes, _, rng = drawn(seed)
    late = {id(envelope): rng.choice((0, 0, 0, 60, 3600)) * 10**9 for envelope in envelopes}
    envelopes.sort(key=lambda e: e.anchor + e.monotonic + late[id(e)])
    return envelopes, rng


@pytest.mark.slow
@pytest.mark.parametrize("seed", FEW)
def test_asking_in_between_never_changes_a_later_answer(seed):
    envelopes, rng = arrivals(seed)
    asked = Timeline("run")
    for number, envelope in enumerate(envelopes, start=1):
        asked.add([envelope])
        as_of = envelope.anchor + envelope.monotonic + rng.choice((0, 0, 600, -5)) * 10**9
        fresh = Timeline("run")
        fresh.add(envelopes[:number])
        assert told(asked.ledger(as_of)) == told(fresh.ledger(as_of))


@pytest.mark.parametrize("seed", FEW)
def test_a_ledger_once_given_out_stays_as_it_was(seed):
    envelopes, _ = arrivals(seed)
    timeline = Timeline("run")
    kept = []
    for envelope in envelopes:
        timeline.add([envelope])
        book = timeline.ledger(envelope.anchor + envelope.monotonic)
        kept.append((book, book.intervals(), book.steps))
    for book, intervals, steps in kept:
        assert book.intervals() == intervals
        assert book.steps == steps


@pytest.mark.parametrize("seed", SEEDS)
def test_the_highest_step_never_falls_as_time_goes_on(seed):
    envelopes, as_of, rng = drawn(seed, CLOCKLESS)
    timeline = Timeline("run")
    timeline.add(envelopes)
    start = timeline.ledger(as_of).start
    times = sorted(rng.randint(start, max(start, as_of)) for _ in range(12))
    highest = [timeline.ledger(time).steps.highest for time in times]
    assert highest == sorted(highest)


@pytest.mark.parametrize("seed", SEEDS)
def test_gpu_time_is_the_time_weighted_by_the_gpus_held(seed):
    envelopes, as_of, _ = drawn(seed)
    book = ledger(envelopes, as_of)
    spent = book.gpu_time()
    assert all(amount >= 0 for amount in spent.values())
    told_last = {
        event.time: event.envelope.event.gpus_held
        for event in book.book.facts
        if isinstance(event.envelope.event, Allocation) and event.time <= as_of
    }
    held = sorted(told_last.items())
    if not held or held[0][0] > book.start:
        return
    ends = [time for time, _ in held[1:]] + [book.closed_at]
    whole = sum(
        gpus * (min(end, book.closed_at) - max(begin, book.start))
        for (begin, gpus), end in zip(held, ends, strict=True)
        if min(end, book.closed_at) > max(begin, book.start)
    )
    assert sum(spent.values()) == whole
