"""The agent's three modes with real processes: parent, sidecar, and a daemon of the whole node.

What the machine does not allow (another process namespace, another user) is skipped and says so.
"""

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from agent_process import AgentProcess, agent_process, clean_environment
from arrivals import steps_in, wait_until
from headway.events import AttemptStarted, Envelope, RankExited
from headway.exporter import Recorder
from headway.exporter.agent.agent import Agent
from headway.exporter.node.metrics import NodeMetrics
from headway.exporter.spooling.reader import spools
from headway.settings import AgentSettings, RecorderSettings
from otlp_endpoint import OtlpEndpoint
from spooled_rank import Rank
from training_process import PROGRAM

pytestmark = pytest.mark.slow

TRAINER, AGENT, GROUP = 61001, 61002, 61003
"""Users and a group that nobody has."""
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def unshare() -> list[str]:
    """Return the command that starts another in a process namespace of its own, or none."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = ["unshare", *user, "--pid", "--fork", "--mount-proc", "--kill-child"]
    if shutil.which("unshare") is None:
        return []
    tried = subprocess.run([*command, "true"], capture_output=True, check=False)
    return command if tried.returncode == 0 else []


def exits_in(envelopes: list[Envelope]) -> list[RankExited]:
    return [item.event for item in envelopes if isinstance(item.event, RankExited)]


def metrics_of(agent: AgentProcess) -> str:
    return httpx.get(agent.address + "/metrics", trust_env=False).text


def as_user(user: int, group: int, work: Callable[[], None]) -> None:
    """Do something in a child process of another user and wait for its end."""
    child = os.fork()
    if not child:
        status = 1
        try:
            os.setgroups([])
            os.setgid(group)
            os.setuid(user)
            work()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_parent_the_agent_holds_the_launcher(endpoint: OtlpEndpoint, tmp_path: Path) -> None:
    program = PROGRAM.replace("sys.stdin", "['steps 40']")
    ended = subprocess.run(
        [sys.executable, "-m", "headway", "run", "--", sys.executable, "-c", program],
        env=clean_environment(
            HEADWAY_SPOOL=str(tmp_path),
            HEADWAY_ENDPOINT=endpoint.address,
            HEADWAY_AGENT_PORT="0",
            HEADWAY_RUN="llama",
            HEADWAY_RUN_ID="7",
        ),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "no agent" not in ended.stderr
    assert len(steps_in(endpoint.arrived)) == 40
    assert spools(tmp_path) == []


def test_sidecar_a_rank_lives_and_dies_though_its_process_id_means_another_process_here(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    apart = unshare()
    if not apart:
        pytest.skip("this machine allows no process namespace of one's own")
    with agent_process(tmp_path, endpoint.address) as agent:
        training = subprocess.Popen(
            [*apart, sys.executable, "-c", PROGRAM],
            env=clean_environment(
                HEADWAY_RUN="llama", HEADWAY_RUN_ID="7", HEADWAY_SPOOL=str(tmp_path)
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with training:
            assert training.stdin is not None
            training.stdin.write("steps 25\n")
            training.stdin.flush()
            wait_until(lambda: len(steps_in(endpoint.arrived)) == 25)
            begun = [item.event for item in endpoint.arrived]
            (attempt,) = (event for event in begun if isinstance(event, AttemptStarted))
            assert attempt.process_id == 1  # which is the host's init here
            assert 'headway_node_ranks{run="llama-7"} 1.0' in metrics_of(agent)
            assert exits_in(endpoint.arrived) == []
            training.kill()
        wait_until(lambda: exits_in(endpoint.arrived) == [RankExited(by="unknown", process_id=1)])
        wait_until(lambda: not spools(tmp_path))
        assert "headway_node_ranks{" not in metrics_of(agent)


def test_sidecar_the_agents_own_namespace_may_hold_a_process_of_a_dead_ranks_number(
    endpoint: OtlpEndpoint, tmp_path: Path
) -> None:
    """The rank's process id is this test's own, which lives on when the rank is dead."""

    def train() -> None:
        os.getpid = lambda: parent
        recorder = Recorder("llama", settings=RecorderSettings(spool=tmp_path, run_id="7"))
        recorder.resumed(completed=0)
        with recorder.step(1):
            pass
        os._exit(0)  # without a word, as a kill would

    parent = os.getpid()
    as_user(os.getuid(), os.getgid(), train) if os.geteuid() == 0 else _forked(train)
    with agent_process(tmp_path, endpoint.address):
        wait_until(lambda: not spools(tmp_path))
    assert exits_in(endpoint.arrived) == [RankExited(by="unknown", process_id=parent)]


def _forked(work: Callable[[], None]) -> None:
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(1)
    os.waitpid(child, 0)


@pytest.fixture
def imported(endpoint: OtlpEndpoint, tmp_path: Path) -> None:
    """Load all that an agent needs: another user may not read this Python's own folder."""
    rank = Rank(tmp_path / "first")
    rank.steps(1)
    rank.close()
    shipping(tmp_path / "first", endpoint)
    endpoint.accepted.clear()


def orphan(folder: Path, *, shared: bool) -> None:
    """Leave a spool behind as a rank does that is killed."""
    Rank(folder, shared=shared).steps(5)
    os._exit(0)


@root_only
def test_daemon_an_agent_of_root_adopts_what_any_user_left_behind(
    endpoint: OtlpEndpoint, tmp_path: Path, imported: None
) -> None:
    folder = reachable(tmp_path, 0o1777)
    as_user(TRAINER, TRAINER, lambda: orphan(folder, shared=False))
    with agent_process(folder, endpoint.address, "--state", str(tmp_path / "state")) as agent:
        wait_until(lambda: not spools(folder))
        assert agent.stop()[0] == 0
    assert len(steps_in(endpoint.arrived)) == 5
    assert len(exits_in(endpoint.arrived)) == 1


@root_only
def test_daemon_a_spool_closed_to_the_agent_is_left_alone_and_named_once(
    endpoint: OtlpEndpoint, tmp_path: Path, imported: None
) -> None:
    folder = reachable(tmp_path, 0o1777)
    as_user(TRAINER, TRAINER, lambda: orphan(folder, shared=False))
    (spool,) = spools(folder)
    said = tmp_path / "said"
    said.touch()
    said.chmod(0o666)

    def ship() -> None:
        logging.getLogger("headway").addHandler(logging.FileHandler(said))
        agent, metrics = shipping(folder, endpoint)
        agent.watch()
        assert metrics.closed_spools == 1
        os._exit(0)

    as_user(AGENT, AGENT, ship)
    assert endpoint.arrived == []
    assert spools(folder) == [spool]
    assert "HEADWAY_RECORDER_SHARED=true" in said.read_text(encoding="utf-8")
    assert said.read_text(encoding="utf-8").count(spool.name) == 1


@root_only
def test_daemon_an_agent_of_the_same_group_takes_a_shared_spool(
    endpoint: OtlpEndpoint, tmp_path: Path, imported: None
) -> None:
    folder = reachable(tmp_path, 0o2770)
    os.chown(folder, 0, GROUP)
    folder.chmod(0o2770)
    umask = os.umask(0o077)  # the strictest; sharing does not hang on it
    try:
        as_user(TRAINER, GROUP, lambda: orphan(folder, shared=True))
    finally:
        os.umask(umask)

    def ship() -> None:
        shipping(folder, endpoint)
        os._exit(0)

    as_user(AGENT, GROUP, ship)
    assert len(steps_in(endpoint.arrived)) == 5
    assert spools(folder) == []


def shipping(folder: Path, endpoint: OtlpEndpoint) -> tuple[Agent, NodeMetrics]:
    """Run an agent for a moment; return it."""
    metrics = NodeMetrics(folder)
    settings = AgentSettings(spool=folder, endpoint=endpoint.address, gpus=False, nics=False)
    agent = Agent(settings, metrics)
    agent.watch()
    agent.stop()
    agent.run()
    return agent, metrics


def reachable(tmp_path: Path, mode: int) -> Path:
    """Return a folder that other users can reach."""
    folder = tmp_path / "spools"
    folder.mkdir()
    folder.chmod(mode)
    while tmp_path != Path(tmp_path.anchor):
        if tmp_path.stat().st_uid == os.getuid():
            tmp_path.chmod(tmp_path.stat().st_mode | 0o055)
        tmp_path = tmp_path.parent
    return folder
