"""People read the same numbers everywhere."""

from datetime import timedelta, timezone

import pytest

from headway.wording import count, counted, duration, percent, ratio_range, when

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("ns", "words"),
    [
        (None, "unknown"),
        (0, "0 s"),
        (999, "< 1 ms"),
        (-999, "< 1 ms"),
        (-3_000_000, "-3 ms"),
        (340_000_000, "340 ms"),
        (999_600_000, "1.0 s"),
        (3_440_000_000, "3.4 s"),
        (9_960_000_000, "10 s"),
        (59_600_000_000, "1 min 0 s"),
        (133 * SECOND, "2 min 13 s"),
        (3_599_700_000_000, "1 h 0 min"),
        (5 * 3600 * SECOND + 720 * SECOND, "5 h 12 min"),
        (86_399 * SECOND, "1 d 0 h"),
        (100 * 3600 * SECOND, "4 d 4 h"),
        (-2 * SECOND, "-2.0 s"),
    ],
)
def test_a_duration_reads_in_at_most_two_units(ns: int | None, words: str) -> None:
    assert duration(ns) == words


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (None, "unknown"),
        (0.0, "0.0 %"),
        (0.0001, "< 0.1 %"),
        (0.7957, "79.6 %"),
        (0.99999, "> 99.9 %"),
        (1.0, "100.0 %"),
    ],
)
def test_only_nothing_reads_as_zero_and_only_everything_as_a_hundred_percent(
    ratio: float | None, words: str
) -> None:
    assert percent(ratio) == words


def test_a_range_shows_both_ends_only_where_they_read_differently() -> None:
    assert ratio_range(0.612, 0.713) == "61.2 to 71.3 %"
    assert ratio_range(0.7131, 0.7134) == "71.3 %"
    assert ratio_range(None, 0.5) == "unknown"


def test_numbers_carry_their_noun() -> None:
    assert count(12345) == "12,345"
    assert counted(1, "step") == "1 step"
    assert counted(0, "step") == "0 steps"
    assert counted(2, "entry", "entries") == "2 entries"
    assert counted(None, "step") == "unknown steps"


def test_a_time_names_its_zone() -> None:
    moment = 1_764_434_048 * SECOND + 999
    assert when(moment) == "2025-11-29 16:34:08 UTC"
    assert when(moment, timezone(timedelta(hours=2), "EET")) == "2025-11-29 18:34:08 EET"
    assert when(None) == "unknown"
