"""Search finds words of any script, ranks rare ones first, and reads questions as people ask."""

import random

import pytest

from headway.search import Document, Question, document, found, question_of, terms_of


def doc(title: str, *lines: str, time: int = 0) -> Document:
    return document("note", None, "run", title, time, title, lines)


def titles(documents: list[Document], asked: str) -> list[str]:
    return [hit.document.title for hit in found(documents, question_of(asked))]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("NCCL_timeout=30", " nccl timeout 30"),
        ("Stra\u00dfe \u1e9e", " strasse ss"),
        ("\uff21\uff22 \ufb01n", " ab fin"),
        ("caf\u00e9 cafe\u0301", " caf\u00e9 caf\u00e9"),
        ("\u7ffb\u8a33\u30e2\u30c7\u30eb-7b", " \u7ffb\u8a33\u30e2\u30c7\u30eb 7b"),
        ("\U0001f680 '%;--", ""),
    ],
)
def test_words_are_taken_apart_in_any_script(text: str, terms: str) -> None:
    assert terms_of(text) == terms


@pytest.mark.parametrize(
    ("asked", "words", "phrases"),
    [
        (
            "what happened the last time we changed the heartbeat timeout",
            ("heartbeat", "timeout"),
            (),
        ),
        ('"rank 3" hangs', ("hang",), (" rank 3",)),
        ("\u201crank 3\u201d", (), (" rank 3",)),
        ('a lone " quote', ("lone", "quote"), ()),
        ("what was it", ("what", "was", "it"), ()),
        ("losses loss", ("losse", "loss"), ()),
        ("it's 5% -- 'x' OR 1=1", ("s", "5", "x", "1"), ()),
        ("  \t", (), ()),
    ],
)
def test_a_question_is_its_telling_words_and_what_stands_in_quotes(
    asked: str, words: tuple[str, ...], phrases: tuple[str, ...]
) -> None:
    assert question_of(asked) == Question(words=words, phrases=phrases)


def test_a_word_is_found_where_a_word_begins_with_it_whatever_its_case() -> None:
    known = [doc("Timeouts raised"), doc("runtime"), doc("\u0420\u0435\u0447\u044c"), doc("x")]
    assert titles(known, "timeout") == ["Timeouts raised"]
    assert titles(known, "TIMEOUTS") == ["Timeouts raised"]
    assert titles(known, "\u0440\u0435\u0447") == ["\u0420\u0435\u0447\u044c"]


def test_in_scripts_without_spaces_a_word_is_found_wherever_it_stands() -> None:
    known = [doc("\u7ffb\u8a33\u30e2\u30c7\u30eb"), doc("model")]
    assert titles(known, "\u30e2\u30c7\u30eb") == ["\u7ffb\u8a33\u30e2\u30c7\u30eb"]


def test_rare_words_weigh_more_and_titles_twice() -> None:
    known = [
        *(doc(f"restart {number}", "timeout", time=number) for number in range(9)),
        doc("switch", "heartbeat timeout"),
        doc("heartbeat timeout"),
    ]
    assert titles(known, "heartbeat timeout") == ["heartbeat timeout", "switch"]


def test_the_newest_of_equals_comes_first() -> None:
    known = [doc("timeout", str(time), time=time) for time in (5, 9, 7)]
    hits = found(known, question_of("timeout"))
    assert [hit.document.time for hit in hits] == [9, 7, 5]


def test_what_stands_in_quotes_must_be_there_as_it_is() -> None:
    known = [doc("rank 3 hung"), doc("rank 30 hung"), doc("3 rank"), doc("hung rank 3")]
    assert titles(known, '"rank 3"') == ["hung rank 3", "rank 3 hung"]
    assert titles(known, '"rank 3" nothing') == []


def test_in_scripts_without_spaces_what_stands_in_quotes_is_found_within_words() -> None:
    known = [doc("\u5b66\u7fd2\u304c\u505c\u6b62"), doc("\u505c 7 \u6b62"), doc("\u505c")]
    assert titles(known, '"\u505c\u6b62"') == ["\u5b66\u7fd2\u304c\u505c\u6b62"]
    (hit,) = found(
        [doc("title", "none", "\u5b66\u7fd2\u304c\u505c\u6b62")], question_of('"\u505c\u6b62"')
    )
    assert hit.line == "\u5b66\u7fd2\u304c\u505c\u6b62"


def test_the_line_that_says_most_is_shown() -> None:
    known = doc("rank 3 died", "exit code 1", "NCCL watchdog timeout on rank 3", "peers left")
    (hit,) = found([known], question_of("watchdog timeout"))
    assert hit.line == "NCCL watchdog timeout on rank 3"


def test_very_long_texts_are_cut_and_every_text_can_be_asked() -> None:
    long = doc("t", *["word " * 10_000] * 500)
    assert len(long.terms) < 250_000
    draw = random.Random(3)  # noqa: S311
    for _ in range(100):
        text = "".join(chr(draw.randrange(1, 0xD7FF)) for _ in range(draw.randrange(40)))
        question = question_of(text)
        if not question.is_empty:
            found([doc(text)], question)


@pytest.mark.parametrize("seed", range(20))
def test_a_document_is_found_by_each_word_of_its_own(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311
    words = [
        "".join(draw.choice("abcdefghij\u00e9\u0436\u7ffb") for _ in range(6)) for _ in range(8)
    ]
    known = [doc(" ".join(draw.sample(words, 4))) for _ in range(6)]
    for word in words:
        holders = {one.title for one in known if word in one.title}
        assert set(titles(known, word)) == holders
