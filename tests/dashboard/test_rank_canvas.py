"""What the canvas of ranks is given: rows, marks and times that JavaScript can hold."""

import json
from typing import Any

import pytest

from headway.course.rank_lanes import LEFT
from headway.dashboard.rank_canvas import MOST_MARKS, picture, text

MS = 10**6


def answer(rows: int = 2) -> dict[str, Any]:
    return {
        "start": 1_790_000_000_000 * MS,
        "end": 1_790_000_100_000 * MS,
        "columns": 50,
        "names": ["productive", "stalled", "custom:profiling", LEFT],
        "lanes": [[50, 0], [20, 0, 30, 3]],
        "rows": [
            {"ranks": [rank], "node": "node-a", "lane": rank % 2, "steps": True, "times": {}}
            for rank in range(rows)
        ],
    }


def incident(number: int, opened: int, recovered: int | None, rank: int | None) -> dict[str, Any]:
    begin = answer()["start"]
    return {
        "incident": f"id {number}",
        "number": number,
        "cause": "gpu_fault",
        "opened": begin + opened * MS,
        "recovered": None if recovered is None else begin + recovered * MS,
        "suspect_rank": rank,
    }


@pytest.mark.parametrize(
    ("opened", "recovered", "expected"),
    [
        (10_000, 20_000, (5.0, 10.0)),
        (10_000, None, (5.0, 50.0)),
        (-5_000, 20_000, (0.0, 10.0)),
        (90_000, 150_000, (45.0, 50.0)),
        (-9_000, -5_000, None),
        (101_000, None, None),
    ],
)
def test_incidents_are_marked_where_they_lie_in_what_is_shown(
    opened: int, recovered: int | None, expected: tuple[float, float] | None
) -> None:
    marks = picture(answer(), [incident(1, opened, recovered, 1)], "UTC", zoomed=False)["marks"]

    assert [(mark["from"], mark["to"]) for mark in marks] == (
        [] if expected is None else [expected]
    )


def test_a_mark_names_its_incident_and_the_row_of_its_suspect() -> None:
    known, unknown = (
        picture(answer(), [incident(7, 1_000, None, rank)], "UTC", zoomed=False)["marks"][0]
        for rank in (1, None)
    )

    assert known["address"] == "incident?incident=id%207"
    assert (known["text"], known["row"]) == ("Incident 7: GPU fault, rank 1 suspected.", 1)
    assert (unknown["text"], unknown["row"]) == ("Incident 7: GPU fault.", None)


def test_everything_is_json_and_every_time_is_exact_in_a_float() -> None:
    found = picture(answer(), [incident(1, 1_000, None, None)], "Europe/Paris", zoomed=True)

    again = json.loads(json.dumps(found))
    assert again["begin"] == 1_790_000_000_000
    assert again["end"] - again["begin"] == 100_000
    assert again["zone"] == "Europe/Paris"
    assert [kind["colour"] is None for kind in again["kinds"]] == [False, False, False, True]


@pytest.mark.parametrize(("rows", "height"), [(1, 18), (42, 10), (1_000, 1)])
def test_many_rows_are_lower_but_never_less_than_a_pixel(rows: int, height: int) -> None:
    assert picture(answer(rows), [], "UTC", zoomed=False)["height"] == height


def test_of_very_many_incidents_the_newest_are_marked() -> None:
    many = [incident(number, number, None, None) for number in range(MOST_MARKS + 10)]

    marks = picture(answer(), many, "UTC", zoomed=False)["marks"]

    assert len(marks) == MOST_MARKS
    assert marks[-1]["text"] == f"Incident {MOST_MARKS + 9}: GPU fault."


@pytest.mark.parametrize(
    ("ranks", "node", "steps", "expected"),
    [
        ([3], "node-a", True, "Rank 3 on node-a"),
        ([3], None, True, "Rank 3"),
        ([0, 1, 2], "node-a", True, "Ranks 0 to 2 on node-a"),
        ([0, 8, 9], None, True, "3 ranks"),
        ([3], None, False, "Rank 3, which recorded no steps: as its group"),
    ],
)
def test_a_row_says_whose_it_is(
    ranks: list[int], node: str | None, steps: bool, expected: str
) -> None:
    assert text({"ranks": ranks, "node": node, "steps": steps}) == expected
