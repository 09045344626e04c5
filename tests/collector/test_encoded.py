"""An answer is computed once for each version of its data, whoever asks, and memory has a bound."""

import threading
from collections.abc import Callable

import pytest

from headway.collector.encoded import Encoded, EncodedAnswers, encoded


def saying(words: str) -> Callable[[], Encoded]:
    return lambda: encoded(words.encode(), "text/plain")


def test_an_answer_is_known_while_the_version_of_its_data_is() -> None:
    answers = EncodedAnswers()
    built = answers.build("runs", "v1", saying("two"))
    assert answers.known("runs", "v1") == built
    assert answers.known("runs", "v2") is None
    assert answers.known("fleet", "v1") is None
    later = answers.build("runs", "v2", saying("two"))
    assert later.tag == built.tag
    assert answers.known("runs", "v1") is None


def test_the_answer_asked_for_longest_ago_is_forgotten_first() -> None:
    answers = EncodedAnswers(most_bytes=10, largest=10)
    for question in "abc":
        answers.build(question, "v1", saying("1234"))
        answers.known("a", "v1")
    assert [question for question in "abc" if answers.known(question, "v1")] == ["a", "c"]


def test_of_a_large_answer_only_the_tag_is_kept() -> None:
    answers = EncodedAnswers(largest=3)
    built = answers.build("runs", "v1", saying("1234"))
    kept = answers.known("runs", "v1")
    assert built.body == b"1234"
    assert kept is not None
    assert (kept.body, kept.tag) == (None, built.tag)


def test_who_asks_meanwhile_waits_for_the_one_who_computes() -> None:
    answers, begun, let_go = EncodedAnswers(), threading.Event(), threading.Event()
    found: list[Encoded] = []

    def slowly() -> Encoded:
        begun.set()
        assert let_go.wait(30)
        return encoded(b"slow", "text/plain")

    def never() -> Encoded:
        raise AssertionError("it was computed a second time")

    first = threading.Thread(target=lambda: found.append(answers.build("runs", "v1", slowly)))
    first.start()
    assert begun.wait(30)
    second = threading.Thread(target=lambda: found.append(answers.build("runs", "v1", never)))
    second.start()
    let_go.set()
    first.join()
    second.join()
    assert [one.body for one in found] == [b"slow", b"slow"]


def test_a_failure_is_told_and_tried_again() -> None:
    answers = EncodedAnswers()

    def broken() -> Encoded:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        answers.build("runs", "v1", broken)
    assert answers.build("runs", "v1", saying("well")).body == b"well"
