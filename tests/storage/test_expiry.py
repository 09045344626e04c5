"""Old steps go, and the report of their run stays as it was."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headway.events import Envelope, Steps, StepsSummary
from headway.expiry import MOVING, Expiry, expiry
from headway.ledger import Ledger, Timeline, ledger
from headway.ledger.segments import FrozenSegment
from headway.report import report
from headway.simulate import simulate
from headway.storage.store import EventStore
from made_up_plans import made_up_plan
from timeline import at, timeline
from uneven_steps import uneven

SECOND = 10**9

LONG = """
0          run_started llama
0          allocation 2
0          attempt A scheduler world=2 rank=0..1
0-10       phase startup rank=0..1
10-510     steps 1-500 rank=0..1 wait=0.125
510        scheduled c500 500 blocking=2 rank=0..1
510-512    phase checkpoint_save rank=0..1
512        finalized c500 500
512-912    steps 501-900 rank=0..1 wait=0.125
914        scheduled c900 900 blocking=2 rank=0..1
912-914    phase checkpoint_save rank=0..1
914        finalized c900 900
914-1214   steps 901-1200 rank=0..1 wait=0.125
"""
"""Checkpoints at the steps 500 and 900, and 300 steps after them."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EventStore]:
    opened = EventStore.open(tmp_path / "events.duckdb")
    yield opened
    opened.close()


def lasting(found: Ledger) -> dict[str, Any]:
    return {name: value for name, value in report(found).items() if name not in MOVING}


def read(events: Sequence[Envelope], segments: Sequence[FrozenSegment], as_of: int) -> Ledger:
    kept = Timeline(events[0].run or "run")
    kept.add_segments(segments)
    kept.add(events)
    return kept.ledger(as_of)


def left(events: Sequence[Envelope], found: Expiry) -> list[Envelope]:
    gone = {(envelope.producer, envelope.first_sequence) for envelope in found.removed}
    stay = [one for one in events if (one.producer, one.first_sequence) not in gone]
    return [*stay, *found.kept]


def num_steps(events: Sequence[Envelope]) -> int:
    return sum(
        one.event.num_steps
        if isinstance(one.event, StepsSummary)
        else one.last_sequence - one.first_sequence + 1
        for one in events
        if isinstance(one.event, Steps | StepsSummary)
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 4, 7, 13, 17, 21])
def test_a_run_of_which_steps_expire_again_and_again_ends_with_the_report_of_the_whole(
    seed: int,
) -> None:
    plan = made_up_plan(seed)
    simulated = simulate(replace(plan, target_step=plan.target_step * 5))
    events = uneven(simulated.events, seed)
    begin = min(one.anchor + one.monotonic for one in events)
    length = simulated.end - begin
    stored: list[Envelope] = []
    segments: list[FrozenSegment] = []
    known = begin - 1
    for part in range(1, 9):
        now = begin + length * part // 8
        stored += [one for one in events if known < one.anchor + one.monotonic <= now]
        known = now
        found = expiry(simulated.run, stored, segments, until=now - length // 16, as_of=now)
        if found is not None:
            assert found.same
            stored, segments = left(stored, found), [*segments, *found.segments]
    assert segments
    assert num_steps(stored) < num_steps(events)
    whole = ledger(events, simulated.end)
    assert lasting(read(stored, segments, simulated.end)) == lasting(whole)


def test_the_store_holds_segments_in_the_place_of_expired_steps(store: EventStore) -> None:
    events = timeline(LONG)
    store.append(events)
    now = at(1214)
    whole = ledger(events, now)
    found = expiry("run", store.keeping.of_run("run"), [], until=now, as_of=now)
    assert found is not None
    assert found.same
    store.keeping.expire("run", found, now)
    assert num_steps(list(store.envelopes())) < 1000
    segments = store.keeping.segments()["run"]
    assert segments == list(found.segments)
    assert [segment.num_steps for segment in segments] == [500, 400]
    assert lasting(read(list(store.envelopes()), segments, now)) == lasting(whole)
    assert store.append(events).num_stored == 0


def test_what_expired_is_not_looked_for_again(store: EventStore) -> None:
    store.append(timeline(LONG))
    now = at(1214)
    found = expiry("run", store.keeping.of_run("run"), [], until=now, as_of=now)
    assert found is not None
    store.keeping.expire("run", found, now)
    again = expiry(
        "run",
        store.keeping.of_run("run"),
        store.keeping.segments()["run"],
        until=now,
        as_of=now,
    )
    assert again is None


def test_a_rollback_to_a_checkpoint_before_the_expired_steps_is_exact() -> None:
    later = LONG + (
        "1214 fault exception rank=1\n1217 launcher stop_workers\n"
        "1222 attempt B launcher world=2 rank=0..1\n1232 resumed 500 c500 rank=0..1\n"
        "1232-1532 steps 501-800 rank=0..1\n"
    )
    events, now = timeline(later), at(1532)
    assert expired(events, at(1214))[0] == lasting(ledger(events, now))


def test_a_rollback_that_cuts_expired_steps_apart_gives_a_range_around_the_truth() -> None:
    later = LONG + (
        "1214 fault exception rank=1\n1217 launcher stop_workers\n"
        "1222 attempt B launcher world=2 rank=0..1\n1232 resumed 700 unheard rank=0..1\n"
        "1232-1332 steps 701-800 rank=0..1\n"
    )
    events = uneven(timeline(later), 1)
    truth = lasting(ledger(events, at(1332)))
    after, _ = expired(events, at(1214))
    assert after["steps"] == truth["steps"]
    for name in ("training_goodput", "infrastructure_goodput"):
        assert after[name]["low"] <= truth[name]["low"] <= after[name]["high"]
    assert after["training_goodput"]["low"] < after["training_goodput"]["high"]
    unsure = after["categories"]["unattributed"] - truth["categories"]["unattributed"]
    assert 0 < unsure < 400 * SECOND
    for name in ("productive", "rolled_back"):
        assert 0 <= truth["categories"][name] - after["categories"][name] <= unsure
    assert sum(after["categories"].values()) == after["elapsed_ns"]


def expired(events: Sequence[Envelope], then: int) -> tuple[dict[str, Any], int]:
    """Return the report of all events where those known at a time had their steps expired."""
    early = [one for one in events if one.anchor + one.monotonic <= then]
    late = [one for one in events if one.anchor + one.monotonic > then]
    found = expiry("run", early, [], until=then, as_of=then)
    assert found is not None
    assert found.same
    now = max(one.anchor + one.monotonic for one in events)
    kept = read([*left(early, found), *late], found.segments, now)
    return lasting(kept), len(found.removed)


def test_growing_on_from_expired_steps_reads_as_the_whole_does() -> None:
    events = timeline(LONG)
    found = expiry("run", events, [], until=at(1100), as_of=at(1214))
    assert found is not None
    kept = Timeline("run")
    kept.add_segments(found.segments)
    kept.add(left(events, found))
    kept.ledger(at(1214))
    more = timeline(LONG + "1214-1414 steps 1201-1400 rank=0..1\n")
    for count in range(len(events), len(more) + 1):
        kept.add(more[:count])
        assert lasting(kept.ledger(at(1414))) == lasting(ledger(more[:count], at(1414)))


def test_a_clock_measured_anew_moves_the_expired_steps_with_the_others() -> None:
    events = timeline(LONG + "1213 node_clock 0\n1215 node_clock 0.25\n1218 note later\n")
    truth = lasting(ledger(events, at(1218)))
    assert truth["start"] == at(0.25)
    assert expired(events, at(1214))[0] == truth
