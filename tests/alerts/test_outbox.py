"""What waits for a receiver is sent in order and not lost, whatever the receiver answers."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest

from headway.alerts.desk import Desk
from headway.alerts.engine import GIVEN_UP, Engine
from headway.alerts.evaluation import Sample
from headway.alerts.notices import Notice
from headway.alerts.receivers import Receiver
from headway.alerts.senders import Outcome
from headway.alerts.site import DEFAULT
from headway.storage.alert_book import AlertBook, BookError

NOW = 1_790_000_000.0
OK = Outcome(state="delivered", answer="HTTP 200")
AWAY = Outcome(state="later", answer="HTTP 503")


def delivered(engine: Engine) -> None:
    """Have an engine send what is due, and wait for it."""
    engine.deliver()
    for job in list(engine._busy.values()):
        job.result(10)


class World:
    """An engine without rules before a receiver that gives these answers, then takes all."""

    def __init__(self, path: Path) -> None:
        self.now = NOW
        self.answers: list[Outcome | Exception] = []
        self.taken: list[str] = []
        self.book = AlertBook(path)
        self.engine = Engine(
            self.book, DEFAULT, lambda: None, lambda: self.now, "http://board", self._send
        )

    def _send(self, notice: Notice, receiver: Receiver, address: str) -> Outcome:
        answer = self.answers.pop(0) if self.answers else OK
        if isinstance(answer, Exception):
            raise answer
        if answer.state == "delivered":
            self.taken.append(f"{notice.key} {notice.status}")
        return answer

    def post(self, key: str, status: str, receiver: str = "log") -> None:
        notice = Notice(
            receiver=receiver,
            key=key,
            subject="run r",
            status="firing" if status == "firing" else "resolved",
            severity="page",
            why="it is tried",
            firing=(),
        )
        self.engine.post([notice])

    def deliver(self) -> None:
        """Send what is due, and wait for it."""
        delivered(self.engine)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    found = World(tmp_path / "alerts.sqlite")
    yield found
    found.engine.stop()
    found.book.close()


def test_what_is_over_is_never_told_before_what_it_ends(world: World) -> None:
    world.answers = [AWAY]
    world.post("a", "firing")
    world.deliver()
    world.post("a", "resolved")
    world.post("b", "firing")
    world.deliver()
    world.deliver()
    assert world.taken == ["b firing"]
    world.now += 1
    world.deliver()
    world.deliver()
    assert world.taken == ["b firing", "a firing", "a resolved"]


@pytest.mark.parametrize(
    "answer",
    [
        Outcome(state="later", answer="HTTP 503", after=86_400.0),
        Outcome(state="later", answer="HTTP 503", after=float("inf")),
        UnicodeEncodeError("ascii", "top-secret", 0, 1, "ordinal not in range"),
    ],
    ids=["come again tomorrow", "come again never", "a token that is no header"],
)
def test_a_notice_waits_five_minutes_at_most_and_says_why(
    world: World, answer: Outcome | Exception
) -> None:
    world.answers = [answer]
    world.post("a", "firing")
    world.deliver()
    (row,) = world.book.deliveries(10)
    assert row["state"] == "waiting"
    assert "top-secret" not in row["answer"]
    assert world.now < row["due"] <= world.now + 300


def test_a_clock_that_was_ahead_holds_back_no_notice_once_it_is_right(world: World) -> None:
    world.now = NOW + 86_400
    world.post("a", "firing")
    world.now = NOW
    world.deliver()
    assert world.taken == ["a firing"]


REFUSED = Outcome(state="refused", answer="HTTP 401: no such token")


def pass_time(world: World, seconds: int) -> None:
    """Deliver what is due for so long, as the engine does."""
    for _ in range(seconds // 300):
        world.deliver()
        world.now += 300


def test_a_page_that_is_refused_for_hours_arrives_once_the_token_is_mended(world: World) -> None:
    world.answers = [REFUSED] * 40
    world.post("a", "firing")
    pass_time(world, 3 * 3600)
    (row,) = world.book.deliveries(10)
    assert (row["state"], row["answer"]) == ("refused", "HTTP 401: no such token")
    assert row["due"] <= world.now + 300, "it is tried every five minutes"
    (waiting,) = world.book.undelivered()
    assert (waiting["receiver"], waiting["notices"], waiting["since"]) == ("log", 1, NOW)
    pass_time(world, 3600)
    assert world.taken == ["a firing"]
    assert world.book.undelivered() == []


def test_a_receiver_that_refuses_for_a_day_is_given_up_and_the_log_says_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.answers = [REFUSED] * 1_000
    world.post("a", "firing")
    pass_time(world, 25 * 3600)
    (row,) = world.book.deliveries(10)
    assert row["state"] == "given up"
    assert row["ended"] == pytest.approx(NOW + GIVEN_UP, abs=600)
    assert world.book.undelivered() == []
    words = [one.getMessage() for one in caplog.records if "refuses" in one.getMessage()]
    assert words == [
        "receiver log refuses: HTTP 401: no such token",
        "receiver log: given up, it refuses: HTTP 401: no such token",
    ]


def test_a_receiver_that_the_site_has_no_more_is_waited_for_no_longer(world: World) -> None:
    world.post("a", "firing", receiver="former")
    world.deliver()
    (row,) = world.book.deliveries(10)
    assert (row["state"], row["answer"]) == ("given up", "the site has no such receiver any more")
    assert world.book.undelivered() == [], "nobody is paged for a receiver that was taken away"


def test_a_receiver_that_asks_to_come_again_is_given_up_never(world: World) -> None:
    world.answers = [Outcome(state="later", answer="HTTP 429", after=60.0)] * 900
    world.post("a", "firing")
    pass_time(world, 49 * 3600)
    (row,) = world.book.deliveries(10)
    assert (row["state"], world.taken) == ("waiting", [])
    pass_time(world, 48 * 3600)
    assert world.taken == ["a firing"]


def test_a_notice_that_is_refused_holds_back_none_after_it_and_is_superseded_by_it(
    world: World,
) -> None:
    world.answers = [REFUSED]
    world.post("a", "firing")
    world.deliver()
    world.post("a", "resolved")
    world.deliver()
    world.now += 300
    world.deliver()
    assert world.taken == ["a resolved"], "what is over is not opened after its end"
    assert [row["state"] for row in world.book.deliveries(10)] == ["delivered", "superseded"]


def test_many_notices_for_one_receiver_take_no_look_each(world: World) -> None:
    for number in range(50):
        world.post(f"run-{number:02d}", "firing")
    world.deliver()
    assert len(world.taken) == 50


def test_a_receiver_that_is_away_delays_what_follows_by_one_try(world: World) -> None:
    world.answers = [AWAY]
    for number in range(3):
        world.post(f"run-{number}", "firing")
    world.deliver()
    assert world.taken == [], "what is away is not asked again at once"
    world.deliver()
    assert world.taken == ["run-1 firing", "run-2 firing"]


def test_a_receiver_that_is_away_for_a_week_is_still_asked_every_five_minutes(world: World) -> None:
    world.post("a", "firing")
    (row,) = world.book.due(world.now)
    world.answers = [AWAY]
    world.engine._try({**row, "tries": 2_000})
    (row,) = world.book.deliveries(10)
    assert row["due"] == world.now + 300


def test_what_was_taken_is_not_sent_again_while_that_cannot_be_written_down(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise BookError("database or disk is full")

    world.post("a", "firing")
    with monkeypatch.context() as patched:
        patched.setattr(world.book, "tried", full)
        for _ in range(3):
            world.engine.deliver()
            for job in list(world.engine._busy.values()):
                job.exception(10)
    world.deliver()
    world.deliver()
    assert world.taken == ["a firing"]
    assert [row["state"] for row in world.book.deliveries(10)] == ["delivered"]


def test_a_book_that_cannot_be_written_keeps_no_page_from_people(tmp_path: Path) -> None:
    failing = Sample(metric="headway_storage_failing", labels={}, value=1)
    samples, now, sent = [failing], NOW, []
    full = True
    refusing = True

    class Full(AlertBook):
        def turn(self, *given: Any) -> None:
            if full:
                raise BookError("database or disk is full")
            super().turn(*given)

    def send(notice: Notice, receiver: Receiver, address: str) -> Outcome:
        if refusing:
            return AWAY
        sent.append((notice.status, notice.severity))
        return OK

    book = Full(tmp_path / "alerts.sqlite")
    engine = Engine(book, DEFAULT, lambda: samples, lambda: now, "http://board", send)

    def looks(number: int) -> None:
        nonlocal now
        for _ in range(number):
            now += 10
            engine.turn()
            delivered(engine)

    looks(10)
    refusing = False
    looks(10)
    assert sent == [("firing", "page")]
    (group,) = engine.current().groups
    assert engine.acknowledge(group.key, "Ada")
    full = False
    looks(3)
    assert sent == [("firing", "page")], "nobody is told again once it can be kept"
    (row,) = book.groups()
    assert (row["severity"], row["acknowledged_by"]) == ("page", "Ada")
    full, samples = True, []
    looks(40)
    assert sent == [("firing", "page"), ("resolved", "page")]
    engine.stop()
    book.close()


def test_a_notice_on_its_way_while_the_disk_gets_room_is_sent_once(tmp_path: Path) -> None:
    full, now, sent = True, NOW, list[str]()
    begun, released = Flag(), Flag()

    class Full(AlertBook):
        def turn(self, *given: Any) -> None:
            if full:
                raise BookError("database or disk is full")
            super().turn(*given)

    def send(notice: Notice, receiver: Receiver, address: str) -> Outcome:
        begun.set()
        assert released.wait(30)
        sent.append(notice.status)
        return OK

    book = Full(tmp_path / "alerts.sqlite")
    failing = Sample(metric="headway_storage_failing", labels={}, value=1)
    engine = Engine(book, DEFAULT, lambda: [failing], lambda: now, "http://board", send)

    def look() -> None:
        nonlocal now
        now += 10
        engine.turn()
        engine.deliver()

    while not engine._busy:
        look()
    assert begun.wait(30)
    full = False
    look()
    released.set()
    for _ in range(3):
        for job in list(engine._busy.values()):
            job.result(30)
        look()
    assert sent == ["firing"]
    assert [row["severity"] for row in book.groups()] == ["page"]
    engine.stop()
    book.close()


def test_a_book_that_cannot_be_read_keeps_no_page_from_people_and_hides_what_is_silenced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    samples = [Sample(metric="headway_storage_failing", labels={}, value=1)]
    now, sent = NOW, list[str]()

    def send(notice: Notice, receiver: Receiver, address: str) -> Outcome:
        sent.append(f"{notice.firing[0].labels['alertname']} {notice.status}")
        return OK

    path = tmp_path / "alerts.sqlite"
    book = AlertBook(path)
    engine = Engine(book, DEFAULT, lambda: samples, lambda: now, "http://board", send)
    desk = Desk(engine, book, DEFAULT, lambda: now)
    desk.silence(["alertname=NoticeUndelivered"], "Ada", "known", None, NOW + 86_400)

    def looks(number: int) -> None:
        nonlocal now
        for _ in range(number):
            now += 10
            engine.turn()
            delivered(engine)

    looks(1)
    assert desk.failure() is None
    with closing(sqlite3.connect(path)) as other:
        for table in ("alerts", "groups", "outbox", "silences"):
            other.execute(f"DROP TABLE {table}")
    samples.append(
        Sample(metric="headway_notice_wait_seconds", labels={"receiver": "log"}, value=9_000)
    )
    looks(20)
    assert sent == ["StorageFailing firing"]
    assert "cannot be" in str(desk.failure())
    (group,) = engine.current().groups
    assert desk.acknowledge(group.key, "Ada")
    looks(1)
    assert engine.current().groups[0].acknowledged_by == "Ada"
    told = [one.getMessage() for one in caplog.records]
    assert len(told) == len(set(told)), "each loss is said once, not at each look"
    engine.stop()
    book.close()


def test_who_refuses_is_said_with_the_answer_and_for_how_long(world: World) -> None:
    desk = Desk(world.engine, world.book, DEFAULT, lambda: world.now)
    assert desk.state()["undelivered"] == []
    assert desk.waits() == {"log": 0.0}
    world.answers = [REFUSED, AWAY]
    world.post("a", "firing")
    world.post("b", "firing")
    world.deliver()
    world.now += 720
    (told,) = desk.state()["undelivered"]
    assert told["words"] == (
        "receiver log refuses 2 notices for 12 min 0 s: HTTP 401: no such token"
    )
    assert desk.waits() == {"log": 720.0}
