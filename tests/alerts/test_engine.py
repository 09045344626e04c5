"""The embedded engine from the gauge to the receiver: once per incident, whatever happens."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from alert_receiver import AlertReceiver, alert_receiver
from headway.alerts.desk import Desk
from headway.alerts.engine import Engine
from headway.alerts.evaluation import Sample
from headway.alerts.site import site
from headway.storage.alert_book import AlertBook

pytestmark = pytest.mark.slow

NOW = 1_790_000_000.0
LOOP, REPEATED, INVALID, GAP = (
    "headway_attempts_without_durable_step",
    "headway_repeated_failures",
    "headway_invalid_recoveries",
    "headway_window_goodput_gap_ratio",
)
INFO = Sample(
    metric="headway_run_info",
    labels={"run": "llama", "run_name": "llama", "team": "llm", "cluster": "east", "owner": "ada"},
    value=1,
)
INCIDENT = Sample(
    metric="headway_open_incident_gpu_seconds",
    labels={
        "run": "llama",
        "incident": "abc",
        "cause": "exception",
        "suspect_node": "n7",
        "suspect_rank": "12",
    },
    value=36_000,
)


class World:
    """A collector's metrics, a clock and a receiver around an engine that may be started again."""

    def __init__(self, folder: Path, receiver: AlertReceiver, routes: str = "") -> None:
        self.now = NOW
        self.samples: list[Sample] | None = [INFO]
        self.receiver = receiver
        self.path = folder / "alerts.sqlite"
        self.site = site(
            'default = "hook"\n[receivers.hook]\nkind = "webhook"\n'
            f'url = "{receiver.address}/hook"\n'
            f'[receivers.boss]\nkind = "webhook"\nurl = "{receiver.address}/boss"\n' + routes
        )
        self.restart()

    def restart(self) -> None:
        """Start the engine as a new process would."""
        self.book = AlertBook(self.path)
        self.engine = Engine(
            self.book, self.site, lambda: self.samples, lambda: self.now, "http://board"
        )
        self.desk = Desk(self.engine, self.book, self.site, lambda: self.now)

    def stop(self) -> None:
        self.engine.stop()
        self.book.close()

    def see(self, **values: float) -> None:
        """Let the metrics be these from now on, beside the run and its open incident."""
        self.samples = [INFO, INCIDENT] + [
            Sample(
                metric=metric,
                labels={"run": "llama", **({"window": "1h"} if metric == GAP else {})},
                value=value,
            )
            for metric, value in values.items()
        ]

    def run(self, seconds: float, step: float = 2.0) -> None:
        """Let time pass, with an evaluation and the sending of what is due every `step` seconds."""
        end = self.now + seconds
        while self.now <= end:
            self.engine.turn()
            self.settle()
            self.now += step

    def settle(self) -> None:
        """Send until nothing that is due waits."""
        for _ in range(1_000):
            self.engine.deliver()
            if not self.book.due(self.now):
                return
            time.sleep(0.005)
        raise AssertionError("notices that are due are not sent")

    @property
    def told(self) -> list[tuple[str, str, list[str]]]:
        """What arrived: path, status, the rules that fire."""
        return [
            (
                path,
                body["status"],
                sorted(
                    one["labels"]["alertname"]
                    for one in body["alerts"]
                    if one["status"] == "firing"
                ),
            )
            for path, _, body in self.receiver.taken
        ]


@pytest.fixture
def receiver() -> Iterator[AlertReceiver]:
    with alert_receiver() as served:
        yield served


@pytest.fixture
def world(tmp_path: Path, receiver: AlertReceiver) -> Iterator[World]:
    found = World(tmp_path, receiver)
    yield found
    found.stop()


def test_a_loop_is_told_once_with_suspect_stake_and_links_and_once_when_it_is_over(
    world: World,
) -> None:
    world.see(**{LOOP: 3})
    world.run(600)
    world.see(**{LOOP: 0})
    world.run(600)
    assert world.told == [("/hook", "firing", ["RestartLoop"]), ("/hook", "resolved", [])]
    first, last = world.receiver.bodies(2)
    assert first["groupKey"] == last["groupKey"]
    (alert,) = first["alerts"]
    assert alert["labels"] == {
        "alertname": "RestartLoop",
        "run": "llama",
        "team": "llm",
        "cluster": "east",
        "owner": "ada",
        "cause": "exception",
        "severity": "page",
        "area": "training",
        "subject": "run llama",
    }
    annotations = alert["annotations"]
    assert annotations["summary"].startswith("3 attempts of run llama since a durable checkpoint")
    assert annotations["stake"] == "10.0 GPU-hours so far"
    assert annotations["suspect"] == "exception, node n7, rank 12"
    assert annotations["incident_url"] == "http://board/incident?incident=abc"
    assert annotations["run_url"] == "http://board/run?run=llama"
    assert alert["startsAt"] == "2026-09-21T14:13:20.000Z"
    assert alert["endsAt"] == "0001-01-01T00:00:00Z"
    assert [one["status"] for one in last["alerts"]] == ["resolved"]


def test_an_alert_is_told_within_ten_seconds(world: World) -> None:
    world.see(**{LOOP: 3})
    world.run(10)
    assert len(world.told) == 1


def test_more_rules_about_one_run_are_one_notice_that_is_kept_up_to_date(world: World) -> None:
    world.see(**{LOOP: 3})
    world.run(100)
    world.see(**{LOOP: 4, INVALID: 1})
    world.run(100)
    assert world.told == [
        ("/hook", "firing", ["RestartLoop"]),
        ("/hook", "firing", ["RecoveryNotValid", "RestartLoop"]),
    ]
    assert len({body["groupKey"] for body in world.receiver.bodies(2)}) == 1


def test_what_becomes_graver_is_told_at_once_under_the_same_key(world: World) -> None:
    world.see(**{GAP: 0.5})
    world.run(1_000)
    assert world.told == [("/hook", "firing", ["TrainingGoodputLow"])]
    world.see(**{GAP: 0.5, REPEATED: 2})
    world.run(4)
    # the graver rule says more about the same run, so the weaker one is not told beside it
    assert world.told[1:] == [("/hook", "firing", ["PersistentFault"])]
    assert len({body["groupKey"] for body in world.receiver.bodies(2)}) == 1


def test_a_restart_in_the_middle_tells_nobody_again(world: World) -> None:
    world.see(**{LOOP: 3})
    world.run(60)
    world.stop()
    world.now += 60
    world.restart()
    world.samples = None  # its ledgers are being rebuilt
    world.run(30)
    world.see(**{LOOP: 3})
    world.run(60)
    assert world.told == [("/hook", "firing", ["RestartLoop"])]
    world.see(**{LOOP: 0})
    world.run(400)
    assert [status for _, status, _ in world.told] == ["firing", "resolved"]


def test_a_notice_that_was_decided_but_not_sent_is_sent_after_the_restart(world: World) -> None:
    world.see(**{LOOP: 3})
    world.receiver.answers = [503] * 3
    world.run(4)
    assert world.told == []
    world.stop()
    world.restart()
    world.run(60)
    assert world.told == [("/hook", "firing", ["RestartLoop"])]
    (row,) = world.desk.deliveries(10, None)
    assert (row["state"], row["answer"], row["tries"]) == ("delivered", "HTTP 200", 4)


def test_a_receiver_that_refuses_is_named_and_asked_again(world: World) -> None:
    world.receiver.answers = [400] * 100
    world.see(**{LOOP: 3})
    world.run(120)
    (row,) = world.desk.deliveries(10, None)
    assert row["state"] == "refused"
    assert row["tries"] > 5
    assert row["answer"].startswith("HTTP 400")


def test_it_is_repeated_until_somebody_takes_it(world: World) -> None:
    world.see(**{LOOP: 3})
    world.run(4 * 3600 + 300, step=240)
    assert len(world.told) == 2
    (group,) = world.desk.state()["groups"]
    assert world.desk.acknowledge(group["key"], "ada")
    world.run(9 * 3600, step=240)
    assert len(world.told) == 2
    (group,) = world.desk.state()["groups"]
    assert group["acknowledged_by"] == "ada"
    assert not world.desk.acknowledge("headway-nothing", "ada")


ESCALATING = """
[[routes]]
match = ['severity="page"']
receiver = "hook"
escalate_to = "boss"
escalate_after = 600
"""


@pytest.mark.parametrize(("taken", "bosses"), [(False, 2), (True, 0)])
def test_a_page_that_nobody_takes_goes_further_up(
    tmp_path: Path, receiver: AlertReceiver, taken: bool, bosses: int
) -> None:
    world = World(tmp_path, receiver, ESCALATING)
    world.see(**{LOOP: 3})
    world.run(300)
    if taken:
        (group,) = world.desk.state()["groups"]
        world.desk.acknowledge(group["key"], "ada")
    world.run(900)
    world.see(**{LOOP: 0})
    world.run(400)
    world.stop()
    assert [path for path, _, _ in world.told].count("/boss") == bosses
    assert [path for path, _, _ in world.told].count("/hook") == 2


def test_a_silence_keeps_it_quiet_says_whose_it_is_and_ends(world: World) -> None:
    made = world.desk.silence(['run="llama"'], "ada", "moving racks", None, NOW + 300)
    world.see(**{LOOP: 3})
    world.run(200)
    assert world.told == []
    (alert,) = world.desk.state()["alerts"]
    assert alert["hidden"] == f"silence {made['silence']} of ada: moving racks"
    world.run(200)
    assert world.told == [("/hook", "firing", ["RestartLoop"])]
    assert [one["state"] for one in world.desk.silences()] == ["over"]


def test_a_silence_after_the_page_does_not_keep_it_open_for_ever(world: World) -> None:
    world.see(**{LOOP: 3})
    world.run(60)
    world.desk.silence(['run="llama"'], "ada", "known", None, NOW + 10_000)
    world.run(60)
    world.see(**{LOOP: 0})
    world.run(400)
    assert [status for _, status, _ in world.told] == ["firing", "resolved"]


@pytest.mark.parametrize(
    ("matchers", "owner", "reason", "ends", "words"),
    [
        (["run"], "ada", "x", NOW + 60, "is no matcher"),
        ([], "ada", "x", NOW + 60, "without matchers"),
        (['run="a"'], "", "x", NOW + 60, "an owner and a reason"),
        (['run="a"'], "ada", "", NOW + 60, "an owner and a reason"),
        (['run="a"'], "ada", "x", NOW - 60, "over before it begins"),
    ],
)
def test_a_silence_that_makes_no_sense_is_refused(
    world: World, matchers: list[str], owner: str, reason: str, ends: float, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        world.desk.silence(matchers, owner, reason, None, ends)
    assert world.desk.silences() == []


def test_who_would_be_told_is_said_with_the_reason(tmp_path: Path, receiver: AlertReceiver) -> None:
    world = World(tmp_path, receiver, ESCALATING)
    (page,) = world.desk.route({"severity": "page"})
    (other,) = world.desk.route({"severity": "ticket"})
    world.stop()
    assert (page["receiver"], page["because"]) == ("hook", 'severity="page"')
    assert (page["escalate_to"], page["escalate_after_s"]) == ("boss", 600)
    assert other["because"] == "no route takes it, so the default receiver has it"


def test_a_trial_goes_the_whole_way_and_leaves_nothing_open(world: World) -> None:
    (way,) = world.desk.test({"team": "llm", "severity": "page"})
    world.settle()
    world.engine.deliver()
    assert way["receiver"] == "hook"
    first, last = world.receiver.bodies(2)
    assert first["alerts"][0]["annotations"]["summary"].startswith("A test of Headway's alerts")
    assert (first["status"], last["status"]) == ("firing", "resolved")
    assert world.desk.state()["groups"] == []


def test_maintenance_keeps_a_route_quiet_and_no_longer(
    tmp_path: Path, receiver: AlertReceiver
) -> None:
    routes = """
[maintenance.move]
begin = 2026-09-21T14:00:00Z
end = 2026-09-21T14:20:00Z
[[routes]]
match = ['run="llama"']
mute = ["move"]
"""
    world = World(tmp_path, receiver, routes)
    world.see(**{LOOP: 3})
    world.run(300)
    assert world.told == []
    (alert,) = world.desk.state()["alerts"]
    assert alert["hidden"] == "maintenance move"
    world.run(300)
    assert world.told == [("/hook", "firing", ["RestartLoop"])]
    world.stop()
