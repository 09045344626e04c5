"""The numbers of results, and what of them differs between two configurations."""

import pytest

from headway.comparison.results import MOST_NUMBERS, compared_results, numbers_of


def test_numbers_are_known_by_their_place() -> None:
    content = {"a": 1, "b": {"c": [2.5, {"d": -3}], "name": "x"}, "on": True, "none": None}
    assert numbers_of(content) == {"a": 1.0, "b.c.0": 2.5, "b.c.1.d": -3.0}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400, "7", True])
def test_what_is_no_number_is_left_out(value: object) -> None:
    assert numbers_of({"x": value}) == {}


def test_no_more_numbers_are_kept_than_people_read() -> None:
    assert len(numbers_of([*range(MOST_NUMBERS + 9)])) == MOST_NUMBERS


def test_results_of_one_title_are_compared_by_their_medians() -> None:
    one = [("ingest", {"rate": 10.0 + n, "bar": 5.0}) for n in range(9)]
    other = [("ingest", {"rate": 30.0 + n, "bar": 5.0, "more": 1.0}) for n in range(9)]
    found = {item.title: item for item in compared_results([*one, ("drill", {"rate": 1.0})], other)}

    assert set(found) == {"ingest: rate", "ingest: bar"}
    rate = found["ingest: rate"]
    assert (rate.one.low, rate.other.low, rate.difference.low) == (14.0, 34.0, -20.0)
    assert rate.finding == "distinct"
    assert found["ingest: bar"].finding == "equal"


def test_a_single_result_on_each_side_is_told_as_measured() -> None:
    (found,) = compared_results([("b", {"x": 1.0})], [("b", {"x": 2.0})])
    assert (found.finding, found.difference.low) == ("measured", -1.0)
    (found,) = compared_results([("b", {"x": 1.0})] * 2, [("b", {"x": 2.0})])
    assert found.finding == "too_few"
