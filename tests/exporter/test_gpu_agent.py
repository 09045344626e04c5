"""The real agent with a real helper on the fake driver: nothing else waits for a GPU that hangs."""

import time
from pathlib import Path
from typing import TypeVar

import pytest

from agent_process import AgentProcess, agent_process
from gpu_scenario import XID, Scenario
from headway.events import Event, GpuFault, GpuPresent, GpuSample, GpuXid, Health, Steps
from headway.exporter.identity import boot_id
from otlp_endpoint import OtlpEndpoint, otlp_endpoint
from training_process import TrainingProcess

pytestmark = pytest.mark.slow

FAST = ("--gpus", "yes", "--gpu-interval", "0.1", "--gpu-deadline", "3", "--steps-interval", "0")


E = TypeVar("E", bound=Event)


def of(endpoint: OtlpEndpoint, kind: type[E]) -> list[E]:
    return [item.event for item in endpoint.accepted if isinstance(item.event, kind)]


def wait_for(endpoint: OtlpEndpoint, kind: type[Event], agent: AgentProcess, more: int = 1) -> None:
    deadline = time.monotonic() + 60
    wanted = len(of(endpoint, kind)) + more
    while len(of(endpoint, kind)) < wanted:
        assert time.monotonic() < deadline, f"no {kind.__name__}"
        assert agent.process.poll() is None
        time.sleep(0.01)


def test_what_the_driver_says_is_recorded_about_the_node_and_shipped(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path / "gpus.json")
    with otlp_endpoint() as endpoint:
        variables = scenario.environment
        spool = tmp_path / "spool"
        with agent_process(spool, endpoint.address, *FAST, variables=variables) as agent:
            wait_for(endpoint, GpuSample, agent)
            scenario.reports(1, XID, 79)
            wait_for(endpoint, GpuSample, agent, more=10)  # by then it was reported
            assert agent.stop()[0] == 0
        assert [item for item in of(endpoint, GpuXid) if item.code == 79]  # waiting or not
        found = [item for item in endpoint.accepted if isinstance(item.event, GpuPresent)]
        assert [(item.run, item.rank, item.boot_id) for item in found] == 2 * [
            (None, None, boot_id())
        ]
        assert len({item.producer for item in found}) == 1


def test_an_xid_that_the_kernels_log_tells_of_is_recorded_once_with_its_line(
    tmp_path: Path,
) -> None:
    scenario = Scenario(tmp_path / "gpus.json")
    log = tmp_path / "kern.log"
    log.touch()
    options = (*FAST, "--kernel-log", str(log))
    with otlp_endpoint() as endpoint:
        variables = scenario.environment
        spool = tmp_path / "spool"
        with agent_process(spool, endpoint.address, *options, variables=variables) as agent:
            wait_for(endpoint, GpuSample, agent)
            scenario.reports(1, XID, 79)
            seconds = time.clock_gettime(time.CLOCK_MONOTONIC)
            with log.open("a") as file:
                file.write(f"[{seconds:.6f}] NVRM: Xid (PCI:0000:1c:00): 79, GPU has fallen off\n")
            scenario.reports(0, XID, 48)  # of which the log says nothing
            wait_for(endpoint, GpuSample, agent, more=10)
            assert agent.stop()[0] == 0
        found = sorted((xid.code, xid.device, xid.line is None) for xid in of(endpoint, GpuXid))
    assert found == [(48, scenario.content["gpus"][0]["uuid"], True), (79, "0000:1c:00", False)]


def test_a_driver_that_hangs_holds_up_nothing_else(tmp_path: Path) -> None:
    scenario = Scenario(tmp_path / "gpus.json")
    spool = tmp_path / "spool"
    with otlp_endpoint() as endpoint:
        variables = scenario.environment
        with agent_process(spool, endpoint.address, *FAST, variables=variables) as agent:
            wait_for(endpoint, GpuSample, agent)
            training = TrainingProcess(spool)
            scenario.breaks(0, hang="everything")
            scenario.breaks(1, hang="everything")
            shipped = 0
            rounds = 0
            while not of(endpoint, GpuFault):
                rounds += 1
                # Steps recorded while a question hangs arrive before the deadline has passed.
                training.steps(10)
                asked = time.monotonic()
                while len(of(endpoint, Steps)) == shipped:
                    assert time.monotonic() < asked + 60
                    time.sleep(0.01)
                shipped = len(of(endpoint, Steps))
            training.kill()
            assert agent.stop()[0] == 0
    assert rounds > 1, "nothing was shipped while the question hung"
    (fault,) = set(of(endpoint, GpuFault))
    assert isinstance(fault, GpuFault)
    assert (fault.kind, fault.message) == ("query_hung", "the driver did not answer for 3 s")


def test_without_a_gpu_the_agent_says_so_once(tmp_path: Path) -> None:
    with otlp_endpoint() as endpoint, agent_process(tmp_path, endpoint.address, *FAST) as agent:
        wait_for(endpoint, Health, agent)
        status, errors = agent.stop()
    (health,) = of(endpoint, Health)
    assert isinstance(health, Health)
    assert (health.check, health.state) == ("gpu", "disabled")
    assert "no NVIDIA driver here" in (health.detail or "")
    assert (status, errors.count("GPU")) == (0, 0)


def test_an_agent_that_is_killed_takes_its_helper_along_even_when_that_hangs(
    tmp_path: Path,
) -> None:
    scenario = Scenario(tmp_path / "gpus.json")
    with otlp_endpoint() as endpoint:
        options = (*FAST[:-4], "--gpu-deadline", "600")
        variables = scenario.environment
        spool = tmp_path / "spool"
        with agent_process(spool, endpoint.address, *options, variables=variables) as agent:
            wait_for(endpoint, GpuSample, agent)
            scenario.breaks(0, hang="everything")
            process_id = agent.process.pid
            children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text()
            helper = Path("/proc") / children.strip()
            assert helper.exists()
            agent.kill()
    deadline = time.monotonic() + 30
    while helper.exists() and "(zombie)" not in (helper / "status").read_text():
        assert time.monotonic() < deadline, "the helper outlived its agent"
        time.sleep(0.01)


@pytest.mark.parametrize("name", ["gpu-interval", "gpu-deadline", "nic-interval"])
def test_a_time_that_cannot_work_is_refused(tmp_path: Path, name: str) -> None:
    with agent_process(tmp_path, "http://127.0.0.1:1", f"--{name}", "0") as agent:
        status, errors = agent.wait()
    assert status == 2
    assert f"{name.replace('-', '_')} must be more than 0 seconds, got 0.0" in errors
