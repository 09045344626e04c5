"""Answers are asked for once for all viewers, and kept while nobody answers."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from headway.dashboard.answers import AT_ONCE, Answers, hasty, reading
from headway.storage.collector_errors import (
    CollectorError,
    CollectorTimedOut,
    CollectorUnreachable,
    UnknownRun,
)
from headway.storage.connection import Change

PATH = "/api/v1/runs"


class Collector:
    """Answers by version as the collector does, and counts what it sends."""

    def __init__(self) -> None:
        self.content: dict[str, Any] = {"as_of": 7, "runs": []}
        self.version = '"1"'
        self.as_of: int | None = None
        self.error: CollectorError | None = None
        self.bodies = 0
        self.asked: list[str] = []
        self.slow = threading.Event()
        self.slow.set()

    def changed(self, path: str, query: Mapping[str, Any], version: str | None) -> Change:
        self.asked.append(path)
        assert self.slow.wait(10)
        if self.error is not None:
            raise self.error
        if version == self.version:
            return Change(content=None, version=version, as_of=self.as_of)
        self.bodies += 1
        return Change(content=self.content, version=self.version, as_of=self.as_of)

    def close(self) -> None:
        """Nothing is open."""


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def collector() -> Collector:
    return Collector()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def answers(collector: Collector, clock: Clock) -> Answers:
    return Answers(collector, clock)  # type: ignore[arg-type]  # it answers as the client does


def test_an_answer_is_one_object_for_all_viewers_and_asked_for_once_a_second(
    answers: Answers, collector: Collector, clock: Clock
) -> None:
    first = answers.get(PATH, {"limit": 3})

    assert answers.get(PATH, {"limit": 3}) is first
    clock.now += 1.5
    assert answers.get(PATH, {"limit": 3}) is first

    assert len(collector.asked) == 2
    assert collector.bodies == 1


def test_a_new_version_replaces_the_answer(
    answers: Answers, collector: Collector, clock: Clock
) -> None:
    answers.get(PATH, {})
    collector.content, collector.version = {"runs": [1]}, '"2"'
    clock.now += 1.5

    assert answers.get(PATH, {}) == {"runs": [1]}


def test_other_parameters_are_another_question(answers: Answers, collector: Collector) -> None:
    answers.get(PATH, {"limit": 3})
    answers.get(PATH, {"limit": 4})

    assert collector.bodies == 2


def test_viewers_at_the_same_time_wait_for_one_request(
    answers: Answers, collector: Collector
) -> None:
    collector.slow.clear()
    found: list[dict[str, Any]] = []
    viewers = [
        threading.Thread(target=lambda: found.append(answers.get(PATH, {}))) for _ in range(10)
    ]
    for viewer in viewers:
        viewer.start()
    collector.slow.set()
    for viewer in viewers:
        viewer.join()

    assert len(found) == 10
    assert len(collector.asked) == 1


def test_while_nobody_answers_the_last_answer_stands_and_the_reading_says_why(
    answers: Answers, collector: Collector, clock: Clock
) -> None:
    first = answers.get(PATH, {})
    collector.error = CollectorUnreachable("No collector answers.", "Start one.")
    clock.now += 60

    with reading() as found:
        assert answers.get(PATH, {}) is first

    assert found.trouble is collector.error
    assert (found.asked, found.as_of) == (100.0, 7)
    collector.error = None
    clock.now += 1.5
    with reading() as found:
        answers.get(PATH, {})
    assert found.trouble is None


def test_a_collector_that_hangs_is_not_asked_for_each_part_of_a_page(
    answers: Answers, collector: Collector
) -> None:
    collector.error = CollectorUnreachable("No collector answers.", "Start one.")

    for path in ("/api/v1/runs", "/api/v1/fleet", "/api/v1/nodes"):
        with pytest.raises(CollectorUnreachable):
            answers.get(path, {})

    assert collector.asked == ["/api/v1/runs"]


def test_one_question_that_takes_too_long_leaves_the_others_alone(
    answers: Answers, collector: Collector
) -> None:
    collector.error = CollectorTimedOut("No answer in time.", "Ask for less.")
    with pytest.raises(CollectorTimedOut):
        answers.get("/api/v1/slow", {})
    with pytest.raises(CollectorTimedOut):
        answers.get("/api/v1/slow", {})
    collector.error = None

    assert answers.get(PATH, {}) == collector.content
    assert collector.asked == ["/api/v1/slow", PATH]


def test_a_run_that_is_gone_is_not_shown_from_memory(
    answers: Answers, collector: Collector, clock: Clock
) -> None:
    answers.get(PATH, {})
    collector.error = UnknownRun("No run 'x' is known here.", "Open the Fleet page.")
    clock.now += 1.5

    with pytest.raises(UnknownRun):
        answers.get(PATH, {})


def test_an_answer_that_is_confirmed_is_as_fresh_as_its_confirmation(
    answers: Answers, collector: Collector, clock: Clock
) -> None:
    with reading() as made:
        answers.get(PATH, {})
    clock.now += 600
    collector.as_of = 607

    with reading() as confirmed:
        answers.get(PATH, {})

    assert made.as_of == 7
    assert (confirmed.asked, confirmed.as_of) == (700.0, 607)
    assert collector.bodies == 1


def test_a_page_that_is_opened_takes_what_is_known_at_once_and_lets_it_be_renewed(
    answers: Answers, collector: Collector, clock: Clock
) -> None:
    first = answers.get(PATH, {})
    collector.content, collector.version = {"runs": [1]}, '"2"'
    collector.slow.clear()
    clock.now += 6.0

    with hasty(), reading() as found:
        assert answers.get(PATH, {}) is first
    assert found.asked == 100.0

    collector.slow.set()
    answers.close()  # waits for what is under way
    assert answers.get(PATH, {}) == {"runs": [1]}
    assert len(collector.asked) == 2


def test_a_part_that_does_not_look_again_is_asked_for(
    answers: Answers, collector: Collector, clock: Clock
) -> None:
    answers.get(PATH, {})
    collector.content, collector.version = {"runs": [1]}, '"2"'
    clock.now += 6.0

    with hasty(), hasty(False):
        assert answers.get(PATH, {}) == {"runs": [1]}


@pytest.mark.parametrize("seconds", [AT_ONCE, 36_000.0])
def test_what_is_long_known_is_not_taken_at_once(
    answers: Answers, collector: Collector, clock: Clock, seconds: float
) -> None:
    answers.get(PATH, {})
    collector.content, collector.version = {"runs": [1]}, '"2"'
    clock.now += seconds

    with hasty():
        assert answers.get(PATH, {}) == {"runs": [1]}


def test_what_somebody_just_changed_is_not_taken_at_once(
    answers: Answers, collector: Collector
) -> None:
    answers.get(PATH, {})
    collector.content, collector.version = {"runs": [1]}, '"2"'
    answers.doubt()

    with hasty():
        assert answers.get(PATH, {}) == {"runs": [1]}


def test_a_doubt_that_comes_while_the_collector_is_asked_is_not_forgotten(
    answers: Answers, collector: Collector, clock: Clock
) -> None:
    answers.get(PATH, {})
    collector.slow.clear()
    clock.now += 1.5
    asking = threading.Thread(target=lambda: answers.get(PATH, {}))
    asking.start()
    while len(collector.asked) < 2:
        assert asking.is_alive()
    answers.doubt()
    collector.slow.set()
    asking.join()
    collector.content, collector.version = {"runs": [1]}, '"2"'

    assert answers.get(PATH, {}) == {"runs": [1]}
