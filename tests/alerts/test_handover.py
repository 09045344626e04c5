"""Alerts that a real Alertmanager takes over: told, silenced there, and over there."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from alert_receiver import AlertReceiver, alert_receiver
from alertmanager_process import PATIENCE, alertmanager
from headway.alerts.alertmanager import configuration
from headway.alerts.desk import Desk
from headway.alerts.engine import Engine
from headway.alerts.evaluation import Sample
from headway.alerts.handover import Handover
from headway.alerts.site import site
from headway.storage.alert_book import AlertBook
from ports import free_port

pytestmark = pytest.mark.slow

LOOP = Sample(metric="headway_attempts_without_durable_step", labels={"run": "llama"}, value=3.0)
CALM = Sample(metric=LOOP.metric, labels=LOOP.labels, value=0.0)


class World:
    """An engine over one series that hands over to an address; time moves as the test says."""

    def __init__(self, folder: Path, address: str) -> None:
        self.samples = [LOOP]
        self.now = time.time()
        self.book = AlertBook(folder / "alerts.sqlite")
        told = site('[receivers.log]\nkind = "log"\n[rules.RestartLoop]\nkeep = 0')
        self.engine = Engine(
            self.book,
            told,
            lambda: self.samples,
            lambda: self.now,
            "http://board",
            handover=Handover(address, "http://board"),
        )
        self.desk = Desk(self.engine, self.book, told, lambda: self.now)


@pytest.fixture
def receiver() -> Iterator[AlertReceiver]:
    with alert_receiver() as served:
        yield served


def in_alertmanager(address: str) -> list[Any]:
    return list(httpx.get(f"{address}/api/v2/alerts", trust_env=False).json())


def test_alertmanager_routes_sends_and_resolves_what_is_handed_over(
    tmp_path: Path, receiver: AlertReceiver
) -> None:
    routes = site(
        f'group_wait = 1\ngroup_interval = 1\n[receivers.hook]\nkind = "webhook"\n'
        f'url = "{receiver.address}/hook"'
    )
    with alertmanager(tmp_path, configuration(routes)) as address:
        world = World(tmp_path, address)
        world.engine.turn()
        (first,) = receiver.bodies(1)
        assert first["status"] == "firing"
        assert first["groupLabels"] == {"subject": "run llama"}
        (alert,) = first["alerts"]
        assert alert["labels"]["alertname"] == "RestartLoop"
        assert alert["annotations"]["summary"].startswith("3 attempts of run llama")
        (known,) = in_alertmanager(address)
        assert known["status"]["state"] == "active"

        world.samples = [CALM]
        world.engine.turn()
        *_, last = receiver.bodies(2)
        assert last["status"] == "resolved"
    assert world.desk.state()["alertmanager"] == {"address": address, "failure": None}
    assert world.desk.deliveries(10, None) == []
    world.book.close()


def test_an_alertmanager_that_is_away_is_said_and_told_once_it_is_back(tmp_path: Path) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    world = World(tmp_path, address)
    world.engine.turn()
    failure = world.desk.state()["alertmanager"]["failure"]
    assert failure == f"Alertmanager at {address} cannot be reached: ConnectError"
    world.book.close()


def test_a_password_in_the_address_of_alertmanager_is_shown_to_nobody(tmp_path: Path) -> None:
    world = World(tmp_path, "http://ada:hush@127.0.0.1:9/path")
    world.engine.turn()
    shown = world.desk.state()["alertmanager"]
    assert shown["address"] == "http://127.0.0.1:9/path"
    assert shown["failure"].startswith("Alertmanager at http://127.0.0.1:9/path cannot")
    world.book.close()


def test_what_was_over_while_it_was_away_is_said_when_it_is_back(tmp_path: Path) -> None:
    handover = Handover("http://127.0.0.1:9", "http://board")
    world = World(tmp_path, "http://127.0.0.1:9")
    world.engine._handover = handover
    world.engine.turn()
    world.samples = [CALM]
    world.engine.turn()  # the only look that sees it resolved
    with alertmanager(tmp_path, configuration(site('[receivers.log]\nkind = "log"'))) as address:
        handover.address = address
        world.engine.turn()
        assert handover.failure is None
        deadline = time.monotonic() + PATIENCE
        while in_alertmanager(address) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert in_alertmanager(address) == []
    world.book.close()


def test_a_test_goes_to_alertmanager_which_alone_decides_who_is_told(
    tmp_path: Path, receiver: AlertReceiver
) -> None:
    routes = site(
        'default = "log"\ngroup_wait = 1\n[receivers.log]\nkind = "log"\n'
        f'[receivers.hook]\nkind = "webhook"\nurl = "{receiver.address}/hook"\n'
        '[[routes]]\nmatch = [\'team="llm"\']\nreceiver = "hook"'
    )
    with alertmanager(tmp_path, configuration(routes)) as address:
        world = World(tmp_path, address)
        (way,) = world.desk.test({"team": "llm"})
        (told,) = receiver.bodies(1)
        assert told["commonLabels"]["alertname"] == "HeadwayTest"
        assert (way["receiver"], way["kind"]) == (address, "alertmanager")
        assert world.desk.route({"team": "llm"}) == [way]
        with pytest.raises(ValueError, match=r"amtool silence add --alertmanager\.url=http"):
            world.desk.silence(['team="llm"'], "ada", "moving", None, world.now + 3600)
    with pytest.raises(ValueError, match="cannot be reached: ConnectError"):
        world.desk.test({"team": "llm"})
    world.book.close()
