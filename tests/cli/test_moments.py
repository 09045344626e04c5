"""Moments and stretches as people type them."""

import pytest

from headway.cli.moments import moment, stretch

SECOND = 10**9
NOW = 1_790_000_000 * SECOND


@pytest.mark.parametrize(
    ("given", "before"), [("90s", 90), ("15m", 900), ("24h", 86_400), ("1.5d", 129_600)]
)
def test_a_time_ago_counts_from_now(given: str, before: int) -> None:
    assert moment(given, NOW) == NOW - before * SECOND


@pytest.mark.parametrize(
    "given", ["2026-09-21T14:13:20", "2026-09-21T16:13:20+02:00", "2026-09-21T14:13:20Z"]
)
def test_an_iso_time_has_a_zone_or_means_utc(given: str) -> None:
    assert moment(given, 0) == NOW


@pytest.mark.parametrize("given", ["", "yesterday", "24", "-3h", "3w", "14:00"])
def test_anything_else_is_refused_with_the_forms_that_work(given: str) -> None:
    with pytest.raises(ValueError, match=r"cannot read the time .* write 90s, 15m, 24h, 7d"):
        moment(given, NOW)


def test_a_stretch_has_two_ends_in_order() -> None:
    assert stretch("5h/4h", NOW) == (NOW - 18_000 * SECOND, NOW - 14_400 * SECOND)
    with pytest.raises(ValueError, match="write FROM/TO"):
        stretch("5h", NOW)
    with pytest.raises(ValueError, match="ends before it begins"):
        stretch("4h/5h", NOW)
