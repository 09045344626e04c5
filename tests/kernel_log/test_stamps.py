"""Months of many languages, and moments of stamps that do not say everything."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from headway.kernel_log.months import month_number
from headway.kernel_log.stamps import Clock, read_stamps

SECOND = 10**9


def at(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp()) * SECOND


# Abbreviations as `date +%b` prints them in each locale, in lower case, without the point.
YEARS = {
    "en": "jan feb mar apr may jun jul aug sep oct nov dec",
    "de": "jan feb m\u00e4r apr mai jun jul aug sep okt nov dez",
    "fr": "janv f\u00e9vr mars avr mai juin juil ao\u00fbt sept oct nov d\u00e9c",
    "es": "ene feb mar abr may jun jul ago sep oct nov dic",
    "it": "gen feb mar apr mag giu lug ago set ott nov dic",
    "pt": "jan fev mar abr mai jun jul ago set out nov dez",
    "nl": "jan feb mrt apr mei jun jul aug sep okt nov dec",
    "pl": "sty lut mar kwi maj cze lip sie wrz pa\u017a lis gru",
    "cs": "led \u00fano b\u0159e dub kv\u011b \u010den \u010dec srp z\u00e1\u0159 "
    "\u0159\u00edj lis pro",
    "fi": "tammi helmi maalis huhti touko kes\u00e4 hein\u00e4 elo syys loka marras joulu",
    "hu": "jan febr m\u00e1rc \u00e1pr m\u00e1j j\u00fan j\u00fal aug szept okt nov dec",
    "ro": "ian feb mar apr mai iun iul aug sep oct nov dec",
    "tr": "oca \u015fub mar nis may haz tem a\u011fu eyl eki kas ara",
    "et": "jaan veebr m\u00e4rts apr mai juuni juuli aug sept okt nov dets",
    "no": "jan feb mars apr mai juni juli aug sep okt nov des",
    "ru": "\u044f\u043d\u0432 \u0444\u0435\u0432 \u043c\u0430\u0440 \u0430\u043f\u0440 "
    "\u043c\u0430\u0439 \u0438\u044e\u043d \u0438\u044e\u043b \u0430\u0432\u0433 "
    "\u0441\u0435\u043d \u043e\u043a\u0442 \u043d\u043e\u044f \u0434\u0435\u043a",
    "uk": "\u0441\u0456\u0447 \u043b\u044e\u0442 \u0431\u0435\u0440 \u043a\u0432\u0456 "
    "\u0442\u0440\u0430 \u0447\u0435\u0440 \u043b\u0438\u043f \u0441\u0435\u0440 "
    "\u0432\u0435\u0440 \u0436\u043e\u0432 \u043b\u0438\u0441 \u0433\u0440\u0443",
    "ja": " ".join(f"{number}\u6708" for number in range(1, 13)),
    "ko": " ".join(f"{number}\uc6d4" for number in range(1, 13)),
    "full": "January february March april May June july AUGUST September october Nov. december",
}


@pytest.mark.parametrize("language", YEARS)
def test_the_months_of_a_language_are_known(language: str) -> None:
    words = YEARS[language].split()

    assert [month_number(word) for word in words] == list(range(1, 13))
    assert [month_number(word.upper()) for word in words] == list(range(1, 13))


@pytest.mark.parametrize("word", ["", "ab", "kernel", "node", "13\u6708", "\u6708", "xyz"])
def test_other_words_are_no_months(word: str) -> None:
    assert month_number(word) is None


def moments(clock: Clock, *prefixes: str) -> list[int | None]:
    return [clock.moment(read_stamps(prefix)[0]) for prefix in prefixes]


def test_years_that_stamps_do_not_say_go_on_over_new_year() -> None:
    found = moments(
        Clock(year=2025),
        "Dec 31 23:59:59 n kernel: ",
        "Jan  1 00:00:01 n kernel: ",
        "Dec 31 23:59:59 n kernel: ",  # written late by another processor
        "Jul  4 10:00:00 n kernel: ",
        "Mar  3 10:00:00 n kernel: ",
    )

    assert found == [
        at("2025-12-31T23:59:59Z"),
        at("2026-01-01T00:00:01Z"),
        at("2025-12-31T23:59:59Z"),
        at("2026-07-04T10:00:00Z"),
        at("2027-03-03T10:00:00Z"),
    ]


def test_without_a_year_the_newest_that_can_have_been_written_counts() -> None:
    clock = Clock(latest=at("2026-02-10T00:00:00Z"))

    found = moments(clock, "Nov 30 10:00:00 n kernel: ", "Feb  9 10:00:00 n kernel: ")

    assert found == [at("2025-11-30T10:00:00Z"), at("2026-02-09T10:00:00Z")]


def test_without_anything_to_go_by_the_time_stays_unknown() -> None:
    assert moments(Clock(), "Nov 30 10:00:00 n kernel: ", "[  12.5] ", "") == [None, None, None]


def test_a_stamp_without_a_year_is_put_beside_one_that_is_known() -> None:
    found = moments(Clock(), "2026-01-02T00:00:00Z ", "Dec 30 10:00:00 n kernel: ")

    assert found[1] == at("2025-12-30T10:00:00Z")


def test_the_29th_of_february_of_no_leap_year_is_unknown() -> None:
    clock = Clock(year=2025)

    assert moments(clock, "Feb 29 10:00:00 n kernel: ") == [None]
    assert moments(Clock(year=2028), "Feb 29 10:00:00 ") == [at("2028-02-29T10:00:00Z")]


def test_stamps_without_a_zone_are_of_the_given_one() -> None:
    zone = timezone(timedelta(hours=-7))

    found = moments(
        Clock(zone=zone, year=2026), "[Fri Aug 30 11:43:09 2024] ", "Sep  8 10:00:01 n kernel: "
    )

    assert found == [at("2024-08-30T18:43:09Z"), at("2026-09-08T17:00:01Z")]


def test_the_kernels_own_stamp_is_finer_where_the_boot_is_known() -> None:
    both = "Dec  2 10:43:35 n kernel: [240314.528856] "

    assert moments(Clock(boot=at("2026-01-01T00:00:00Z"), year=2026), both) == [
        at("2026-01-01T00:00:00Z") + 240_314_528_856_000
    ]
    assert moments(Clock(year=2026), both) == [at("2026-12-02T10:43:35Z")]


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-13-01T10:00:00Z ",
        "2026-09-31T10:00:00Z ",
        "Sep 31 10:00:00 ",
        "Sep 08 25:00:00 ",
        "0000-01-01T00:00:00Z ",
        "13 08 10:00:00 ",
    ],
)
def test_a_date_that_is_none_is_no_stamp(prefix: str) -> None:
    assert moments(Clock(year=2026), prefix) == [None]


def test_a_leap_second_is_the_second_before_it() -> None:
    assert moments(Clock(), "2016-12-31T23:59:60Z ") == [at("2016-12-31T23:59:59Z")]


def test_an_extreme_stamp_does_not_raise() -> None:
    for zone in (UTC, timezone(timedelta(hours=23))):
        moments(Clock(zone=zone), "9999-12-31T23:59:59 ", "0001-01-01T00:00:00 ", "Sep 8 10:00:01 ")
