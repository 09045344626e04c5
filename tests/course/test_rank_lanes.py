"""What each rank did, drawn as text: one letter per column, one line per rank."""

import pytest

from headway.course.rank_lanes import LEFT, RankLanes, rank_lanes, run_lengths
from headway.ledger import Ledger, ledger
from timeline import at, timeline

LETTERS = {
    "productive": "#",
    "rolled_back": "x",
    "checkpoint_save": "s",
    "checkpoint_load": "l",
    "data_wait": "w",
    "evaluation": "e",
    "startup": "u",
    "stalled": "!",
    "restart": "r",
    "down": "_",
    "unattributed": "?",
    LEFT: ".",
}


def read(text: str, as_of: float) -> Ledger:
    return ledger(timeline(text), at(as_of))


def drawn(found: RankLanes) -> list[str]:
    return ["".join(LETTERS[found.names[code]] for code in row) for row in found.codes.tolist()]


BROKEN = """
    0       allocation 2
    0       attempt A launcher world=2 rank=0..1
    0-10    phase model rank=0..1
    10-40   steps 1-30 rank=0..1
    30      finalized c20 20
    40      fault exception rank=1
    41      exit rank=1 code=1 by=itself
    50      launcher stop_workers
    52      exit rank=0 signal=15 by=launcher
    60      attempt B launcher world=2 rank=0..1
    60-65   phase checkpoint_load rank=0..1
    65      resumed 20 from=c20 rank=0..1
    65-105  steps 21-60 rank=0..1
    105     run_ended completed
    105     exit code=0
    105     exit code=0 rank=1
"""


def test_the_rank_that_broke_is_seen_to_leave_before_the_others() -> None:
    found = rank_lanes(read(BROKEN, 105), columns=21)

    assert drawn(found) == [
        "uu####xx!!rrl########",
        "uu####xx..rrl########",
    ]


def test_what_a_rank_did_is_measured_to_the_nanosecond() -> None:
    found = rank_lanes(read(BROKEN, 105), columns=7)

    broke = found.lanes[1]
    assert broke.ranks == (1,)
    assert broke.times[LEFT] == 11 * 10**9
    assert broke.times["rolled_back"] == 10 * 10**9
    for lane in found.lanes:
        assert sum(lane.times.values()) == 105 * 10**9


def test_a_rank_that_never_left_its_save_is_named_by_it() -> None:
    hang = """
    0       attempt A launcher world=2 rank=0..1
    0-20    steps 1-20 rank=0..1
    20      phase checkpoint_save rank=1
    80      fault hang rank=1
    90      launcher stop_workers
    100     exit signal=9 by=launcher
    100     exit signal=9 by=launcher rank=1
    """
    first, second = drawn(rank_lanes(read(hang, 100), columns=10))

    assert (first[2:8], second[2:]) == ("!!!!!!", "ssssssss")
    assert first[:2] == second[:2]


def test_a_short_loss_stays_visible_where_most_of_a_column_is_not_one() -> None:
    text = """
    0       attempt A launcher world=1
    0-100   steps 1-100
    100     finalized c100 100
    100     fault exception
    101     launcher stop_workers
    102     exit code=1 by=itself
    120     attempt B launcher world=1
    120     resumed 100 from=c100
    120-220 steps 101-200
    220     run_ended completed
    """
    (row,) = drawn(rank_lanes(read(text, 220), columns=3))

    assert row == "#r#"


def test_a_rank_without_records_of_its_steps_is_drawn_as_its_group() -> None:
    text = """
    0       attempt A launcher world=2 rank=0..1
    0-50    steps 1-50
    50-100  phase evaluation
    100     run_ended completed
    """
    found = rank_lanes(read(text, 100), columns=10)

    assert drawn(found) == ["#####eeeee"] * 2
    assert [lane.steps for lane in found.lanes] == [True, False]


@pytest.mark.parametrize(
    ("rows", "by_node", "ranks"),
    [
        (10, False, [(0,), (1,), (2,), (3,), (4,), (5,)]),
        (3, False, [(0, 1), (2, 3), (4, 5)]),
        (10, True, [(0, 1, 2, 3), (4, 5)]),
        (1, True, [(0, 1, 2, 3, 4, 5)]),
    ],
)
def test_rows_hold_neighbours_or_the_ranks_of_a_node(
    rows: int, by_node: bool, ranks: list[tuple[int, ...]]
) -> None:
    text = """
    0       attempt A launcher world=6 rank=0..5
    0-50    steps 1-50 rank=0..5
    """
    found = rank_lanes(read(text, 50), rows=rows, by_node=by_node)

    assert [lane.ranks for lane in found.lanes] == ranks
    for lane in found.lanes:
        assert sum(lane.times.values()) == 50 * 10**9 * len(lane.ranks)


def test_a_part_of_a_run_is_cut_at_its_edges() -> None:
    found = rank_lanes(read(BROKEN, 105), at(35), at(65), columns=6)

    assert (found.start, found.end) == (at(35), at(65))
    assert drawn(found) == ["x!!rrl", "x..rrl"]


@pytest.mark.parametrize("text", ["", "0 run_started demo"])
def test_a_run_without_ranks_has_no_lanes(text: str) -> None:
    found = rank_lanes(read(text, 10), columns=5)

    assert found.lanes == []
    assert run_lengths(found.codes) == []


def test_rows_are_told_as_lengths_and_codes() -> None:
    found = rank_lanes(read(BROKEN, 105), columns=21)

    for row, told in zip(found.codes.tolist(), run_lengths(found.codes), strict=True):
        lengths, codes = told[::2], told[1::2]
        again = [code for length, code in zip(lengths, codes, strict=True) for _ in range(length)]
        assert again == row


def test_ranks_that_leave_together_have_left_nobody_behind() -> None:
    text = """
    0       attempt A scheduler world=2 rank=0..1
    0-50    steps 1-50 rank=0..1
    40      finalized c40 40
    50      fault exception rank=1
    52      exit code=1 rank=0..1
    90      launcher stop_workers
    100     attempt B launcher world=2 rank=0..1
    100     resumed 40 from=c40 rank=0..1
    100-150 steps 41-90 rank=0..1
    150     run_ended completed
    """
    found = rank_lanes(read(text, 150), columns=15)

    assert all(LEFT not in lane.times for lane in found.lanes)
