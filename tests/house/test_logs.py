"""What services log: lines for people or one object a line, never a secret."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from headway.logs import configure
from headway.settings import CollectorSettings, SettingError, load

WORD = "s3cretWord99"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)


def log(stream: io.StringIO, **settings: str) -> None:
    configure(CollectorSettings(**settings), stream)  # type: ignore[arg-type]  # both are texts
    logger = logging.getLogger("headway.example")
    logger.debug("a detail")
    logger.warning("cannot reach https://me:%s@host\nnow", WORD)
    try:
        raise ValueError(f"api_key={WORD}")
    except ValueError:
        logger.exception("it failed")


def test_as_text_a_line_has_time_level_name_and_message(stream: io.StringIO) -> None:
    log(stream)

    said = stream.getvalue()
    assert "WARNING headway.example: cannot reach https://[masked]@host" in said
    assert "ValueError: api_key=[masked]" in said
    assert "a detail" not in said
    assert WORD not in said


def test_as_json_every_line_is_one_object(stream: io.StringIO) -> None:
    log(stream, log_format="json", log_level="debug")

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [line["level"] for line in lines] == ["debug", "warning", "error"]
    assert {line["logger"] for line in lines} == {"headway.example"}
    assert lines[1]["message"] == "cannot reach https://[masked]@host\nnow"
    assert lines[1]["time"].endswith("Z")
    assert "exception" not in lines[1]
    assert lines[2]["exception"].endswith("ValueError: api_key=[masked]")


def test_the_level_is_the_first_that_is_logged(stream: io.StringIO) -> None:
    log(stream, log_level="error")

    assert "cannot reach" not in stream.getvalue()
    assert "it failed" in stream.getvalue()


@pytest.mark.parametrize(
    ("variable", "value", "known"),
    [
        ("HEADWAY_LOG_FORMAT", "xml", "one of text, json"),
        ("HEADWAY_COLLECTOR_LOG_LEVEL", "loud", "one of debug, info, warning, error"),
    ],
)
def test_a_word_that_is_no_choice_is_refused_with_the_choices(
    variable: str, value: str, known: str
) -> None:
    with pytest.raises(SettingError, match=f"{known}, got '{value}' from {variable}"):
        load(CollectorSettings, {}, {variable: value})
