"""Windows, cells and months of a fleet's time."""

from datetime import UTC, datetime

import pytest

from headway.fleet.spans import DAY, HOUR, MINUTE, WIDTHS, Span, cells, last, months, width_for


def utc(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


NOON = utc("2026-11-29 12:07:31")


def test_the_last_day_begins_at_five_minutes_and_the_last_week_at_an_hour() -> None:
    day, before = last(DAY, NOON)
    assert day == Span(utc("2026-11-28 12:05:00"), NOON + 1)
    assert before == Span(utc("2026-11-27 12:05:00"), day.start)
    week, _ = last(7 * DAY, NOON)
    assert week.start == utc("2026-11-22 12:00:00")


def test_the_newest_moment_is_part_of_the_window_and_the_first_after_it_is_not() -> None:
    span, _ = last(HOUR, NOON)
    assert span.holds(NOON)
    assert not span.holds(NOON + 1)


@pytest.mark.parametrize(
    ("start", "end", "met"),
    [(0, 10, False), (0, 11, True), (15, 15, True), (19, 30, True), (20, 30, False), (5, 50, True)],
)
def test_a_run_is_met_where_it_lived_in_the_window(start: int, end: int, met: bool) -> None:
    assert Span(10, 20).meets(start, end) is met


@pytest.mark.parametrize(
    ("length", "width"),
    [(HOUR, MINUTE), (DAY, 30 * MINUTE), (7 * DAY, 2 * HOUR), (30 * DAY, 12 * HOUR)],
)
def test_cells_are_as_small_as_fit(length: int, width: int) -> None:
    span = Span(NOON // HOUR * HOUR, NOON // HOUR * HOUR + length)
    assert width_for(span, 90) == width
    assert len(cells(span, width)) <= 90


def test_even_a_thousand_years_fit_into_few_cells() -> None:
    span = Span(0, 365_000 * DAY)
    width = width_for(span, 50)
    assert width % WIDTHS[-1] == 0
    assert len(cells(span, width)) <= 50


def test_cells_begin_at_whole_multiples_and_cover_the_window() -> None:
    found = cells(Span(NOON, NOON + HOUR), 30 * MINUTE)
    assert found == [utc(f"2026-11-29 {time}") for time in ("12:00", "12:30", "13:00")]
    assert cells(Span(NOON, NOON), HOUR) == []


def test_months_are_those_of_the_calendar() -> None:
    found = list(months(Span(utc("2026-11-29 12:00"), utc("2027-02-01 00:00"))))
    assert [name for name, _ in found] == ["2026-11", "2026-12", "2027-01"]
    assert found[1][1] == Span(utc("2026-12-01"), utc("2027-01-01"))
    assert found[0][1].start == utc("2026-11-29 12:00")
    assert found[-1][1].end == utc("2027-02-01")
