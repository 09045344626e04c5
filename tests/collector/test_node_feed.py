"""Events of nodes reach the ledgers of the runs that had ranks there, in whatever order they come,
live and when the ledgers are rebuilt."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from headway.collector.ledgers import Ledgers
from headway.collector.node_feed import NodeFeed
from headway.events import (
    Envelope,
    Event,
    GpuPresent,
    GpuSample,
    GpuXid,
    Heartbeat,
    NodeMemory,
    Note,
)
from headway.ledger.intake import DAY
from headway.storage.store import EventStore
from incident_collector import broken, running
from otlp_requests import body
from records import ANCHOR, SECOND, record

XID = GpuXid(code=79, device="0000:cb:00")
ALIVE = Heartbeat()


def of_node(
    second: int, event: Event = XID, node: str = "n1", producer: str = "ee" * 16
) -> Envelope:
    """Return an event that a node's agent recorded at a second; its number is the second."""
    one = record(second, event, producer=producer, run=None)
    return replace(one, attempt=None, rank=None, node=node)


def of_rank(second: int, run: str = "llama-1", node: str = "n1") -> Envelope:
    """Return a sign of a rank at a second."""
    return replace(record(second, ALIVE, run=run, producer=run), node=node)


def fed(*batches: list[Envelope]) -> dict[str, list[Envelope]]:
    """Return what each run got in all."""
    feed = NodeFeed()
    found: dict[str, list[Envelope]] = {}
    for batch in batches:
        for run, group in feed.add(batch).by_run.items():
            found.setdefault(run, []).extend(group)
    return {run: sorted(group, key=lambda one: one.monotonic) for run, group in found.items()}


def test_an_event_of_a_node_reaches_every_run_with_ranks_there_and_no_other() -> None:
    got = fed(
        [of_rank(5), of_rank(6, "llama-2"), of_rank(7, "llama-3", node="n2")],
        [of_node(8), of_node(9, node="n3")],
    )
    assert got == {"llama-1": [of_node(8)], "llama-2": [of_node(8)], "llama-3": []}


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_arrival_changes_nothing_and_nothing_is_given_twice(seed: int) -> None:
    day = DAY // SECOND
    events = [of_node(second) for second in (1, 50, 60 + day, 61 + day, 3 * day)]
    events += [of_rank(second) for second in (10, 40, 60)]
    events += [of_rank(2 * day, "llama-2")]
    random.Random(seed).shuffle(events)  # noqa: S311
    cut = seed % len(events)
    got = fed(events[:cut], *([one] for one in events[cut:]))
    assert got["llama-1"] == [of_node(second) for second in (1, 50, 60 + day)]
    assert got["llama-2"] == [of_node(second) for second in (1, 50, 60 + day, 61 + day, 3 * day)]


def test_samples_and_notes_of_a_node_stay_out() -> None:
    got = fed([of_rank(5)], [of_node(6, GpuSample(device="GPU-d")), of_node(7, Note(text="x"))])
    assert not got.get("llama-1")
    assert fed([of_rank(5)], [of_node(6, NodeMemory(available=1))])["llama-1"]


def test_of_a_nodes_memory_the_newest_is_kept_and_who_needs_more_is_told_so() -> None:
    feed = NodeFeed(most_readings=10)
    readings = [of_node(second, NodeMemory(available=1)) for second in range(7_200, 7_300)]
    random.Random(1).shuffle(readings)  # noqa: S311
    for reading in readings:
        feed.add([reading, of_node(reading.first_sequence, producer="dd" * 16)])
    late = feed.add([of_rank(20_000)])
    told = [one.monotonic // SECOND for one in late.by_run["llama-1"]]
    assert told == list(range(7_200, 7_300))
    early = feed.add([of_rank(7_250, "llama-2")])
    told = [
        one.monotonic // SECOND
        for one in early.by_run["llama-2"]
        if isinstance(one.event, NodeMemory)
    ]
    assert told == list(range(7_300 - len(told), 7_300))
    assert 10 <= len(told) < 20
    assert (late.lacking, early.lacking) == (frozenset(), {"llama-2"})
    assert feed.stays("llama-2")["n1"].since <= 7_200 * SECOND + ANCHOR
    assert len(feed.rare("n1")) == 100


def test_a_node_is_no_sign_of_its_run_and_makes_none() -> None:
    ledgers = Ledgers(lambda: ANCHOR + 100 * SECOND)
    ledgers.add([of_node(1), of_node(2)])
    assert ledgers.snapshots() == []
    ledgers.add(broken("llama-1", "ab" * 16))
    before = ledgers.snapshot("llama-1")
    ledgers.add([of_node(90)])
    after = ledgers.snapshot("llama-1")
    assert after.version != before.version
    assert after.newest == before.newest
    assert after.report["categories"] == before.report["categories"]


LISTED = GpuPresent(index=0, device="GPU-d", pci_address="0000:cb:00.0")


@pytest.mark.slow
@pytest.mark.parametrize("first", ["node", "run"])
def test_a_gpu_is_blamed_live_and_after_a_restart_whichever_came_first(
    tmp_path: Path, first: str
) -> None:
    path = tmp_path / "events.duckdb"
    told = [of_node(1, LISTED), of_node(13)]
    run = broken("llama-1", "ab" * 16)
    batches = [told, run] if first == "node" else [run, told]
    with running(path, batches[0]) as collector:
        headers = {"content-type": "application/x-protobuf"}
        for batch in (batches[1], told):
            assert collector.http.post("/v1/logs", content=body(batch), headers=headers).is_success
        (live,) = collector.client.incidents()
        assert (live["cause"], live["suspect_gpu"]) == ("gpu_fault", "GPU-d")
    store = EventStore.open(path)
    assert [one.event for one in store.envelopes()].count(XID) == 1
    store.close()
    with running(path, []) as collector:
        (again,) = collector.client.incidents()
        for what in ("incident", "opened", "cause", "rule", "suspect_gpu", "observations"):
            assert again[what] == live[what]
