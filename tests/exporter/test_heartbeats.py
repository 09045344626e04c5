"""What the rank monitor is told: heartbeats, sections it knows, and nothing it would die from."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headway.events import Misuse, RestartBudget
from headway.exporter.nvrx.budgets import launcher_budget, record_launcher_budget
from headway.exporter.nvrx.heartbeats import Heartbeats
from headway.exporter.recording.recorder import Recorder
from recording import of, record

UNDER_LAUNCHER = {"FT_RANK_MONITOR_IPC_SOCKET": "/tmp/monitor.socket"}  # noqa: S108


class Client:
    """Behaves as NVRx's client does, and keeps what it was asked to send."""

    def __init__(
        self,
        sections: dict[str, float | None],
        heartbeat: float | None = 15.0,
        initial: float | None = None,
    ) -> None:
        self.sent: list[str] = []
        self.is_initialized = False
        self.fails: set[str] = set()
        self.hb_timeouts: Any = None
        self.section_timeouts: Any = None
        self._sections, self._heartbeat, self._initial = sections, heartbeat, initial

    def init_workload_monitoring(self) -> None:
        assert not self.is_initialized
        self._say("init")
        self.is_initialized = True
        self.hb_timeouts = SimpleNamespace(initial=self._initial, subsequent=self._heartbeat)
        self.section_timeouts = SimpleNamespace(section=self._sections, out_of_section=20.0)

    def shutdown_workload_monitoring(self) -> None:
        self._say("shutdown")
        self.is_initialized = False

    def start_section(self, name: str) -> None:
        assert name in self._sections  # from anything else the monitor of 0.4.1 dies
        self._say(f"start {name}")

    def end_section(self, name: str) -> None:
        self._say(f"end {name}")

    def send_heartbeat(self) -> None:
        self._say("heartbeat")

    def _say(self, what: str) -> None:
        if what in self.fails:
            raise RuntimeError(f"could not {what}")
        self.sent.append(what)


class Clock:
    """A monotonic clock in ns that moves when told to."""

    def __init__(self) -> None:
        self.now = 10**12

    def __call__(self) -> int:
        return self.now


def beating(recorder: Recorder, client: Client, clock: Clock | None = None) -> Heartbeats:
    """Start heartbeats with a client, a second after each other."""
    heartbeats = Heartbeats(
        recorder,
        environment=UNDER_LAUNCHER,
        make_client=lambda: client,
        clock=clock or Clock(),
    )
    heartbeats.start()
    return heartbeats


def test_phases_are_sections_where_the_launcher_names_them(tmp_path: Path) -> None:
    recorder, client = record(tmp_path), Client({"step": 6.0, "evaluation": 30.0}, heartbeat=None)
    beating(recorder, client)

    recorder.resumed(completed=0)
    with recorder.phase("checkpoint_load"):
        pass
    with recorder.step(1):
        pass
    with pytest.raises(ValueError, match="broken"), recorder.phase("evaluation"):
        raise ValueError("broken")

    expected = ["init", "start step", "end step", "start evaluation", "end evaluation"]
    assert client.sent == expected


def test_phases_that_are_open_already_become_sections_at_once(tmp_path: Path) -> None:
    recorder, client = record(tmp_path), Client({"startup": 60.0, "model": 60.0})
    with recorder.phase("startup"):
        beating(recorder, client)
        assert client.sent == ["init", "start startup"]
    assert client.sent[2:] == ["end startup"]


def test_each_completed_step_is_a_heartbeat_but_short_steps_share_one(tmp_path: Path) -> None:
    recorder, client, clock = record(tmp_path), Client({}), Clock()
    beating(recorder, client, clock)
    recorder.resumed(completed=0)

    for number in range(1, 41):
        with recorder.step(number):
            clock.now += 30_000_000
    assert client.sent.count("heartbeat") == 10

    for number in range(41, 44):
        with recorder.step(number):
            clock.now += 10**9
    assert client.sent.count("heartbeat") == 13
    clock.now += 10**9
    with pytest.raises(ValueError, match="broken"), recorder.step(44):
        raise ValueError("broken")
    assert client.sent.count("heartbeat") == 13


def test_without_heartbeat_timeouts_none_is_sent(tmp_path: Path) -> None:
    recorder, client = record(tmp_path), Client({}, heartbeat=None)
    beating(recorder, client)
    with recorder.step(1):
        pass

    assert client.sent == ["init"]


def test_a_restart_in_the_process_leaves_the_monitor_and_joins_it_again(tmp_path: Path) -> None:
    recorder, client = record(tmp_path), Client({"step": 6.0, "model": 60.0}, heartbeat=None)
    heartbeats = beating(recorder, client)
    step = recorder.step(1)
    step.__enter__()  # the exception that restarts may leave it open for the monitor

    heartbeats.stop()
    heartbeats.stop()
    with recorder.phase("model"):
        pass
    heartbeats.start()
    heartbeats.start()
    with recorder.step(1):
        pass

    assert client.sent == ["init", "start step", "shutdown", "init", "start step", "end step"]


def test_a_client_that_cannot_leave_is_replaced(tmp_path: Path) -> None:
    clients = [Client({}), Client({})]
    clients[0].fails = {"shutdown"}
    made = iter(clients)
    heartbeats = Heartbeats(
        record(tmp_path), environment=UNDER_LAUNCHER, make_client=lambda: next(made)
    )
    heartbeats.start()
    heartbeats.stop()
    heartbeats.start()

    assert clients[1].sent == ["init"]
    assert of(tmp_path, Misuse) == []


@pytest.mark.parametrize("what", ["init", "heartbeat", "start step", "end step"])
def test_a_monitor_that_does_not_answer_is_reported_once_and_given_up(
    tmp_path: Path, what: str
) -> None:
    recorder, client = record(tmp_path), Client({"step": 6.0})
    client.fails = {what}
    beating(recorder, client)
    recorder.resumed(completed=0)
    for number in (1, 2):
        with recorder.step(number):
            pass

    (misuse,) = of(tmp_path, Misuse)
    assert misuse.kind == "rank_monitor"
    assert f"could not {what}" in str(misuse.detail)
    assert client.is_initialized is False
    assert client.sent.count("start step") <= 1


def test_an_unknown_client_is_reported_and_the_training_goes_on(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    Heartbeats(recorder, environment=UNDER_LAUNCHER, make_client=object).start()
    with recorder.step(1):
        pass

    (misuse,) = of(tmp_path, Misuse)
    assert "init_workload_monitoring" in str(misuse.detail)


def test_without_a_monitor_nothing_is_observed(tmp_path: Path) -> None:
    recorder = record(tmp_path)
    heartbeats = Heartbeats(recorder, environment={}, make_client=lambda: pytest.fail("made"))
    heartbeats.start()
    heartbeats.stop()

    assert type(recorder.step(1)).__name__ == "StepTimer"
    assert heartbeats.timeouts() == {}


def test_a_forked_worker_says_nothing_on_the_connection_of_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, client = record(tmp_path), Client({"step": 6.0})
    heartbeats = beating(recorder, client)
    monkeypatch.setattr(os, "getpid", lambda: -1)  # as it would be there
    with recorder.step(1):
        pass
    heartbeats.stop()

    assert client.sent == ["init"]


def test_the_timeouts_are_told_by_name_in_ns(tmp_path: Path) -> None:
    client = Client({"step": 6.0, "unlimited": None}, heartbeat=1.5, initial=60.0)

    assert beating(record(tmp_path), client).timeouts() == {
        "launcher.initial_heartbeat_timeout": 60 * 10**9,
        "launcher.heartbeat_timeout": 1_500_000_000,
        "launcher.section_timeout.step": 6 * 10**9,
        "launcher.out_of_section_timeout": 20 * 10**9,
    }


@pytest.mark.parametrize(
    ("limit", "count", "remaining"),
    [
        ("3", "0", 3),
        ("3", "2", 1),
        ("0", "0", 0),
        ("2", "5", 0),  # NVRx 0.6 counts cycles, also those that used up no restart
    ],
)
def test_what_the_launcher_has_left_follows_from_its_count(
    limit: str, count: str, remaining: int
) -> None:
    environment = {"TORCHELASTIC_MAX_RESTARTS": limit, "TORCHELASTIC_RESTART_COUNT": count}

    expected = RestartBudget(layer="launcher", remaining=remaining, limit=int(limit))
    assert launcher_budget(environment) == expected


@pytest.mark.parametrize("environment", [{}, {"TORCHELASTIC_MAX_RESTARTS": "3"}])
def test_without_a_launcher_nothing_is_left_or_used_up(environment: dict[str, str]) -> None:
    assert launcher_budget(environment) is None


@pytest.mark.parametrize(("rank", "told"), [("0", 1), ("1", 0)])
def test_one_rank_tells_what_the_launcher_has_left(tmp_path: Path, rank: str, told: int) -> None:
    environment = {
        "TORCHELASTIC_MAX_RESTARTS": "3",
        "TORCHELASTIC_RESTART_COUNT": "1",
        "RANK": rank,
    }
    record_launcher_budget(record(tmp_path), environment)

    assert len(of(tmp_path, RestartBudget)) == told
