"""What nodes tell of themselves: taken in any order, and never a change of where the time went."""

from dataclasses import replace

import pytest

from headway import events as e
from headway.incidents import gpu_losses, incidents
from headway.ledger import Timeline, ledger
from ledger_laws import drawn, told
from records import SECOND
from timeline import at, timeline


def of_nodes(envelopes, rng):
    """Return made-up events of the nodes of a run, some long before and long after it."""
    nodes = sorted({one.node for one in envelopes if one.node is not None} or {"node-a"})
    first = min(one.anchor + one.monotonic for one in envelopes)
    last = max(one.anchor + one.monotonic for one in envelopes)
    month = 30 * 86_400 * SECOND
    kinds = [
        lambda: e.GpuPresent(index=rng.randrange(4), device=f"GPU-{rng.randrange(6)}",
                             pci_address=f"0000:{rng.randrange(4)}b:00.0"),
        lambda: e.GpuXid(code=rng.choice((13, 45, 79, 95)), device=f"0000:{rng.randrange(4)}b:00"),
        lambda: e.GpuSxid(code=20034, device="0000:05:00", fatal=True),
        lambda: e.GpuFault(kind="lost", device=f"GPU-{rng.randrange(6)}"),
        lambda: e.GpuSample(device="GPU-1"),
        lambda: e.Health(check="nvlink", state="unhealthy"),
        lambda: e.NodeMemory(available=rng.randrange(10**9)),
        lambda: e.Fault(kind=rng.choice(("lost_node", "host_oom", "exception"))),
    ]  # fmt: skip
    return [
        replace(
            envelopes[0],
            producer=f"node {number % 3}",
            first_sequence=number,
            last_sequence=number,
            run=None,
            rank=None,
            attempt=None,
            node=rng.choice(nodes),
            anchor=rng.randint(first - 3 * month, last + month),
            monotonic=0,
            event=rng.choice(kinds)(),
        )
        for number in range(40)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_no_event_of_a_node_moves_a_nanosecond_of_the_ledger(seed):
    envelopes, as_of, rng = drawn(seed)
    plain = ledger(envelopes, as_of)
    mixed = [*envelopes, *of_nodes(envelopes, rng)]
    rng.shuffle(mixed)
    full = ledger(mixed, as_of)
    expected = told(plain)
    found = told(full)
    # what they say of memory stands beside a save, and takes no time
    memory = {"lowest_memory": None, "highest_pressure": None}
    for one in (expected, found):
        one["checkpoints"] = [replace(save, **memory) for save in one["checkpoints"]]
    assert found == expected
    assert (full.first_event, full.last_event) == (plain.first_event, plain.last_event)


@pytest.mark.parametrize("seed", range(6))
def test_incidents_and_losses_do_not_depend_on_the_order_or_on_earlier_questions(seed):
    envelopes, as_of, rng = drawn(seed)
    mixed = [*envelopes, *of_nodes(envelopes, rng)]
    expected = ledger(mixed, as_of)
    rng.shuffle(mixed)
    asked = Timeline(expected.run)
    for start in range(0, len(mixed), 10):
        asked.add(mixed[start : start + 10])
        incidents(asked.ledger(as_of))
    late = asked.ledger(as_of)
    assert incidents(late) == incidents(expected)
    assert told(late) == told(expected)
    assert gpu_losses(late, incidents(late)) == gpu_losses(expected, incidents(expected))


def test_a_node_alone_makes_no_run():
    book = ledger(timeline("1 gpu 0 GPU-a 0000:1b:00.0\n2 xid 79 GPU-a"), at(100))
    assert (book.elapsed, book.state, incidents(book)) == (0, "running", [])


def test_a_node_that_is_heard_does_not_keep_a_run_from_being_abandoned():
    text = "0 allocation 4\n0 attempt A launcher rank=0..3\n0-100 steps 1-100 rank=0..3\n"
    heard = "".join(f"{hour * 3600} xid 13 GPU-a\n" for hour in range(1, 30))
    book = ledger(timeline(text + heard), at(30 * 3600))
    assert (book.state, book.end) == ("abandoned", at(100))


def test_a_fault_of_a_node_is_no_fault_of_the_attempt_that_runs_there():
    text = "0 attempt A launcher rank=0\n0-100 steps 1-100\n"
    book = ledger(timeline(text + "100.5 node_fault lost_node"), at(130))
    assert book.attempts[0].ended_by is None
    assert incidents(book) == []


def test_what_a_node_says_of_its_memory_reaches_a_save_however_late():
    text = "0 attempt A launcher rank=0\n0-100 steps 1-100\n50 scheduled c50\n60 finalized c50\n"
    (memory,) = timeline("1 gpu 0 GPU-a 0000:1b:00.0")
    memory = replace(memory, monotonic=55 * SECOND, event=e.NodeMemory(available=7, pressure=0.5))
    asked = Timeline("run")
    asked.add(timeline(text))
    asked.ledger(at(130))
    asked.add([memory])
    (save,) = asked.ledger(at(130)).checkpoints
    assert (save.lowest_memory, save.highest_pressure) == (7, 0.5)
