"""The agent as a process: its first line, its port, its signals and its refusals."""

import json
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry

from agent_process import AgentProcess, agent_process
from headway.events import Envelope, RankExited, Steps
from headway.exporter.node.metrics_server import MetricsServer
from headway.exporter.spooling.reader import spools
from headway.metrics import METRICS
from otlp_endpoint import OtlpEndpoint, otlp_endpoint
from training_process import TrainingProcess

pytestmark = pytest.mark.slow


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.01)


def metrics_of(agent: AgentProcess) -> str:
    return httpx.get(agent.address + "/metrics", trust_env=False).text


def steps_in(envelopes: list[Envelope]) -> int:
    return sum(
        item.last_sequence - item.first_sequence + 1
        for item in envelopes
        if isinstance(item.event, Steps)
    )


def test_sigterm_flushes_what_was_recorded_and_exits_0(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    training = TrainingProcess(tmp_path)
    with agent_process(tmp_path, endpoint.address, "--interval", "60") as agent:
        training.steps(500)
        status, errors = agent.stop()
    training.kill()
    assert status == 0, errors
    assert steps_in(endpoint.arrived) == 500
    assert not (tmp_path / "agent.json").exists()


def test_a_recorder_that_starts_after_the_agent_has_nothing_to_complain_about(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    with agent_process(tmp_path, endpoint.address):
        training = TrainingProcess(tmp_path)
        training.steps(1)
        assert "no agent" not in training.exit()


def test_ctrl_c_is_a_stop_too(endpoint: OtlpEndpoint, tmp_path: Path) -> None:
    with agent_process(tmp_path, endpoint.address) as agent:
        agent.process.send_signal(signal.SIGINT)
        assert agent.wait()[0] == 0


def test_the_metrics_are_all_there_from_the_start_and_survive_a_rank(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    with agent_process(tmp_path, endpoint.address) as agent:
        text = metrics_of(agent)
        for name in (name for name in METRICS if name.startswith("headway_agent_")):
            assert f"\n{name} 0.0\n" in text
            assert f"# HELP {name} {METRICS[name].description}" in text
        assert "_created" not in text
        training = TrainingProcess(tmp_path)
        training.steps(100)
        training.exit()
        wait_until(lambda: not spools(tmp_path))
        assert "headway_agent_shipped_records_total 10" in metrics_of(agent)
        wait_until(lambda: "headway_agent_spool_bytes 0.0" in metrics_of(agent))


def test_a_busy_port_that_was_given_is_refused_with_who_has_it(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        with agent_process(tmp_path, endpoint.address, "--port", str(port)) as agent:
            status, errors = agent.wait()
    assert status == 2
    assert f"port {port} of '127.0.0.1' is held by process {os.getpid()} (" in errors
    assert "choose another with --port" in errors


def test_a_busy_port_that_nobody_gave_is_replaced_and_mentioned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        server = MetricsServer(CollectorRegistry(), "127.0.0.1", port)
    server.close()
    assert not server.address.endswith(f":{port}")
    assert f"port {port} of '127.0.0.1' is held by process" in caplog.text
    assert f"so the metrics are on port {server.address.rpartition(':')[2]}" in caplog.text


def test_a_second_agent_on_the_same_spools_refuses(endpoint: OtlpEndpoint, tmp_path: Path) -> None:
    with agent_process(tmp_path, endpoint.address) as first:
        with agent_process(tmp_path, endpoint.address) as second:
            status, errors = second.wait()
        assert status == 2
        assert errors.startswith("headway agent: another agent ships the spools in")
        assert "Traceback" not in errors
        assert first.stop()[0] == 0


def test_a_folder_that_is_none_is_refused(endpoint: OtlpEndpoint, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with agent_process(tmp_path / "file", endpoint.address) as agent:
        status, errors = agent.wait()
    assert status == 2
    assert "cannot use the spool folder" in errors
    assert "--spool" in errors


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--endpoint", "127.0.0.1:8750", "like http://collector:8750, got '127.0.0.1:8750'"),
        ("--interval", "0", "more than 0 seconds, got 0.0"),
        ("--batch", "0", "at least 1 record, got 0"),
        ("--host", "no-such-host.invalid", "name another address with --host"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(
    tmp_path: Path, option: str, value: str, words: str
) -> None:
    with agent_process(tmp_path, "http://127.0.0.1:1", option, value) as agent:
        status, errors = agent.wait()
    assert status == 2
    assert words in errors
    assert "Traceback" not in errors


def test_without_a_collector_the_spool_is_kept_and_one_line_says_so(tmp_path: Path) -> None:
    with otlp_endpoint() as gone:
        address = gone.address
    training = TrainingProcess(tmp_path)
    training.steps(10)
    training.exit()
    with agent_process(tmp_path, address) as agent:
        wait_until(lambda: "export_failures_total 0.0" not in metrics_of(agent))
        wait_until(lambda: "export_failures_total 1.0" not in metrics_of(agent))
        status, errors = agent.stop()
    assert status == 0
    assert errors.count("no collector answers") == 1
    assert "the next agent ships the rest" in errors
    assert len(spools(tmp_path)) == 1
    with otlp_endpoint() as back, agent_process(tmp_path, back.address):
        wait_until(lambda: not spools(tmp_path))
        assert steps_in(back.arrived) == 10


def test_the_death_of_a_rank_is_told_within_a_look(endpoint: OtlpEndpoint, tmp_path: Path) -> None:
    with agent_process(tmp_path, endpoint.address) as agent:
        training = TrainingProcess(tmp_path, rank=3)
        training.steps(10)
        training.kill()
        wait_until(lambda: not spools(tmp_path))
        agent.stop()
    exits = [item for item in endpoint.arrived if isinstance(item.event, RankExited)]
    assert [(item.run, item.rank) for item in exits] == [("llama-7", 3)]
    assert steps_in(endpoint.arrived) == 10
    assert json.loads((tmp_path / "positions.json").read_text())["exits_told"] == []
