"""A real agent that follows a kernel log, is killed, and leaves nothing out and nothing twice."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_process import agent_process
from headway.events import Envelope, Event, Fault, GpuXid, Health, RankExited
from otlp_endpoint import OtlpEndpoint, otlp_endpoint
from training_process import TrainingProcess

_DEADLINE = 30.0


@pytest.fixture
def collector() -> Iterator[OtlpEndpoint]:
    with otlp_endpoint() as endpoint:
        yield endpoint


def write(log: Path, code: int, device: str) -> None:
    stamp = datetime.now(UTC).isoformat()
    with log.open("a", encoding="utf-8") as file:
        file.write(
            f"{stamp} node-1 kernel: NVRM: Xid (PCI:{device}): {code}, pid=9, name=a, Ch 1\n"
        )


def stored(collector: OtlpEndpoint) -> list[Envelope]:
    """Return what a collector stores: a record that was sent again is the same one."""
    found = {(each.producer, each.first_sequence): each for each in list(collector.accepted)}
    return list(found.values())


def until(collector: OtlpEndpoint, true_of: Callable[[list[Event]], bool]) -> list[Event]:
    end = time.monotonic() + _DEADLINE
    while not true_of(found := [envelope.event for envelope in stored(collector)]):
        assert time.monotonic() < end, found
        time.sleep(0.02)
    return found


def xids(events: list[Event]) -> Counter[str]:
    return Counter(event.device for event in events if isinstance(event, GpuXid))


@pytest.mark.slow
def test_an_agent_killed_again_and_again_ships_each_fault_once(
    tmp_path: Path, collector: OtlpEndpoint
) -> None:
    log, spool = tmp_path / "kern.log", tmp_path / "spool"
    log.touch()
    devices = [f"0000:0{number}:00" for number in range(1, 4)]
    for device in devices:
        write(log, 79, device)
        with agent_process(spool, collector.address, "--kernel-log", str(log)) as agent:
            assert agent.address, agent.wait()
            until(collector, lambda found, device=device: xids(found)[device] > 0)
        log.rename(tmp_path / f"kern.log.{device[-5:-3]}")
        log.touch()
    with agent_process(spool, collector.address, "--kernel-log", str(log)) as agent:
        assert agent.address, agent.wait()
        write(log, 48, "0000:09:00")
        found = until(collector, lambda found: xids(found)["0000:09:00"] > 0)

    assert xids(found) == Counter(dict.fromkeys([*devices, "0000:09:00"], 1))
    envelopes = [each for each in stored(collector) if isinstance(each.event, GpuXid)]
    assert {each.run for each in envelopes} == {None}
    assert all(each.node and each.boot_id for each in envelopes)
    assert all(
        abs(each.anchor + each.monotonic - time.time_ns()) < 120 * 10**9 for each in envelopes
    )


@pytest.mark.slow
def test_an_agent_without_a_kernel_log_says_so(tmp_path: Path, collector: OtlpEndpoint) -> None:
    absent = tmp_path / "kern.log"
    with agent_process(tmp_path / "spool", collector.address, "--kernel-log", str(absent)):
        found = until(collector, lambda found: any(isinstance(each, Health) for each in found))

    assert [event for event in found if isinstance(event, Health)] == [
        Health(check="kernel_log", state="disabled", detail=f"{absent}: there is no such file yet")
    ]


@pytest.mark.slow
def test_a_rank_that_the_kernel_killed_for_memory_is_told_by_the_agent_of_its_node(
    tmp_path: Path, collector: OtlpEndpoint
) -> None:
    log, spool = tmp_path / "kern.log", tmp_path / "spool"
    log.touch()
    with agent_process(spool, collector.address, "--kernel-log", str(log)) as agent:
        assert agent.address, agent.wait()
        ranks = [TrainingProcess(spool, rank=rank, world_size=2) for rank in (0, 1)]
        until(collector, lambda found: sum(each.name == "attempt.started" for each in found) == 2)
        stamp = datetime.now(UTC).isoformat()
        with log.open("a", encoding="utf-8") as file:
            for words in (
                f"oom-kill:constraint=CONSTRAINT_NONE,task=python,pid={ranks[1].process.pid},uid=0",
                f"Out of memory: Killed process {ranks[1].process.pid} (python) total-vm:9kB",
                "Out of memory: Killed process 1 (another) total-vm:9kB",
            ):
                file.write(f"{stamp} node-1 kernel: {words}\n")
        for rank in ranks:  # rank 0 is killed as well, and not for lack of memory
            rank.kill()
        until(collector, lambda found: sum(isinstance(each, RankExited) for each in found) == 2)
        until(collector, lambda found: any(isinstance(each, Fault) for each in found))

    (told,) = [each for each in stored(collector) if isinstance(each.event, Fault)]
    (started,) = [
        each
        for each in stored(collector)
        if each.event.name == "attempt.started" and each.rank == 1
    ]
    assert told.event.kind == "host_oom"
    assert (told.run, told.rank, told.attempt) == (started.run, 1, started.attempt)
