"""A kernel's line beside a real recorder, agent and collector: the GPU is named and charged."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_process import agent_process
from collector_process import collector_process
from headway.events import Fault, RankDevice
from headway.settings import ClientSettings
from headway.storage.client import CollectorClient
from recording import record

_DEADLINE = 30.0
GPU = "GPU-5fdc1d72-3a4c-4b63-9d34-0d1c3e5a7f10"


def until(ask: Callable[[], Any], is_right: Callable[[Any], bool]) -> Any:
    """Ask until the answer is right."""
    end = time.monotonic() + _DEADLINE
    while not is_right(found := ask()):
        assert time.monotonic() < end, found
        time.sleep(0.1)
    return found


def write(log: Path, line: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{datetime.now(UTC).isoformat()} node-1 kernel: NVRM: {line}\n")


@pytest.mark.slow
def test_a_line_of_the_kernel_beside_a_fault_names_the_gpu_and_charges_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, spool, database = tmp_path / "kern.log", tmp_path / "spool", tmp_path / "events.duckdb"
    log.touch()
    monkeypatch.setenv("NODE_NAME", "node-1")
    with (
        collector_process(database) as collector,
        agent_process(
            spool,
            collector.address,
            "--kernel-log",
            str(log),
            variables={"NODE_NAME": "node-1"},
        ) as agent,
        CollectorClient(ClientSettings(endpoint=collector.address)) as client,
    ):
        assert agent.address, agent.wait()
        recorder = record(spool, rank=0)
        recorder.record(RankDevice(device=GPU, pci_address="00000000:CB:00.0"))
        for number in range(1, 6):
            with recorder.step(number):
                time.sleep(0.01)
        write(log, "Xid (PCI:0000:cb:00): 79, GPU has fallen off the bus.")
        for channel in range(4):
            write(log, f"Xid (PCI:0000:cb:00): 45, pid=7, name=python3, Ch 0000000{channel}")
        recorder.record(Fault(kind="exception", exception="RuntimeError"))
        recorder.close()
        told = until(client.incidents, lambda found: any(one["suspect_gpu"] for one in found))
        (live,) = told
        node = client.node("node-1")
    with (
        collector_process(database) as collector,
        CollectorClient(ClientSettings(endpoint=collector.address)) as client,
    ):
        (again,) = client.incidents()
        report = client.report(again["run"])

    for one in (live, again):
        assert (one["cause"], one["suspect_gpu"]) == ("gpu_fault", GPU)
        assert (one["suspect_rank"], one["suspect_node"]) == (0, "node-1")
    assert [line for line in again["evidence"] if "Xid 45" in line] == [
        f"Xid 45 on {GPU} (4 times), a consequence"
    ]
    (charged,) = report["gpu_losses"]
    assert (charged["device"], charged["incidents"]) == (GPU, [again["incident"]])
    (gpu,) = node["gpus"]
    assert (gpu["device"], gpu["faults"], gpu["incidents"]) == (GPU, 1, [again["incident"]])
