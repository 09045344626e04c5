"""What a run is told about its node's clock, and what is not worth it."""

from pathlib import Path

import pytest

from headway.events import Clock
from headway.exporter.node.clock_meter import Reading
from headway.exporter.node.clock_news import LEAST_CHANGE, SCATTER, ClockNews, Offset, is_news
from headway.exporter.spooling.layout import Producer

SECOND = 10**9
MILLISECOND = 10**6
ZERO = 1_700_000_000 * SECOND


def offset(offset: int, error: int = 0) -> Offset:
    return Offset(offset=offset, error=error)


@pytest.mark.parametrize(
    ("measured", "told", "news"),
    [
        # The first time: only what is beyond the error, and beyond the scatter of anchors.
        (offset(0), None, False),
        (offset(SCATTER), None, False),
        (offset(SCATTER + 1), None, True),
        (offset(-SCATTER - 1), None, True),
        (offset(SECOND, SECOND), None, False),
        (offset(SECOND + 1, SECOND), None, True),
        (offset(-SECOND - 1, SECOND), None, True),
        # Again: only what both errors together cannot explain, and 100 ms at least.
        (offset(SECOND), offset(SECOND), False),
        (offset(SECOND + LEAST_CHANGE), offset(SECOND), False),
        (offset(SECOND + LEAST_CHANGE + 1), offset(SECOND), True),
        (offset(SECOND - LEAST_CHANGE - 1), offset(SECOND), True),
        (offset(2 * SECOND, 600 * MILLISECOND), offset(SECOND, 400 * MILLISECOND), False),
        (offset(2 * SECOND + 1, 600 * MILLISECOND), offset(SECOND, 400 * MILLISECOND), True),
        # A clock that was put right is news after one that was wrong.
        (offset(0), offset(600 * SECOND), True),
        (offset(-300 * SECOND), offset(300 * SECOND), True),
    ],
)
def test_news_is_what_the_errors_cannot_explain(
    measured: Offset, told: Offset | None, news: bool
) -> None:
    assert is_news(measured, told) is news


def rank(anchor: int = 0, *, run: str = "a-1", node: str = "n1", boot: str = "b1") -> Producer:
    return Producer(
        producer=f"{anchor % 2**64:032x}",
        anchor=ZERO + anchor,
        run=run,
        rank=0,
        node=node,
        boot_id=boot,
        process_id=1,
    )


def reading(offset: int, error: int = MILLISECOND) -> Reading:
    """Return what is measured when a clock that began at `ZERO` is off by `offset`."""
    return Reading(zero=ZERO + offset, error=error)


class Told:
    """Keeps what was recorded."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str | None, int]] = []

    def __call__(self, rank: Producer, event: Clock) -> None:
        self.events.append((rank.run, rank.node, event.offset))


def test_each_run_hears_once_by_its_own_ranks_clock(tmp_path: Path) -> None:
    told, news = Told(), ClockNews(tmp_path, "b1")
    ranks = [rank(), rank(5), rank(9), rank(-60 * SECOND, run="b-2")]
    for _ in range(3):
        news.tell(ranks, reading(600 * SECOND), told)
    assert told.events == [
        ("a-1", "n1", 600 * SECOND - 5),
        ("b-2", "n1", 660 * SECOND),
    ]


def test_one_rank_that_read_its_clocks_late_does_not_speak_for_the_node(tmp_path: Path) -> None:
    told, news = Told(), ClockNews(tmp_path, "b1")
    news.tell([rank(), rank(1), rank(300 * MILLISECOND)], reading(0), told)
    assert told.events == []


def test_a_clock_that_is_right_is_shown_and_not_told(tmp_path: Path) -> None:
    told, news = Told(), ClockNews(tmp_path, "b1")
    news.tell([rank()], reading(2 * MILLISECOND), told)
    assert told.events == []
    assert news.offsets == {"n1": offset(2 * MILLISECOND, MILLISECOND)}


def test_a_run_that_ended_before_the_first_reading_hears_of_it(tmp_path: Path) -> None:
    told, news = Told(), ClockNews(tmp_path, "b1")
    news.tell([rank()], None, told)
    news.tell([], None, told)
    news.tell([], reading(60 * SECOND), told)
    news.tell([], reading(90 * SECOND), told)
    assert told.events == [("a-1", "n1", 60 * SECOND)]


def test_spools_of_an_earlier_boot_have_another_monotonic_clock(tmp_path: Path) -> None:
    told, news = Told(), ClockNews(tmp_path, "b2")
    news.tell([rank(boot="b1")], reading(60 * SECOND), told)
    assert told.events == []


def test_the_next_agent_goes_on_from_there(tmp_path: Path) -> None:
    told = Told()
    ClockNews(tmp_path, "b1").tell([rank()], reading(60 * SECOND), told)
    ClockNews(tmp_path, "b1").tell([rank()], reading(60 * SECOND + MILLISECOND), told)
    assert len(told.events) == 1
    ClockNews(tmp_path, "b1").tell([rank()], reading(0), told)
    assert told.events[1:] == [("a-1", "n1", 0)]


def test_what_was_told_of_an_earlier_boot_is_forgotten(tmp_path: Path) -> None:
    told = Told()
    ClockNews(tmp_path, "b1").tell([rank()], reading(60 * SECOND), told)
    ClockNews(tmp_path, "b2").tell([rank(boot="b2")], reading(0), told)
    assert len(told.events) == 1
    ClockNews(tmp_path, "b3").tell([rank(boot="b3")], reading(60 * SECOND), told)
    assert len(told.events) == 2


def test_an_unreadable_memory_costs_a_second_telling(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = Told()
    ClockNews(tmp_path, "b1").tell([rank()], reading(60 * SECOND), told)
    for content in ('{"boot_id": "b1", "told": [[1', "[]", '{"boot_id": "b1", "told": [[1, 2]]}'):
        (tmp_path / "clocks.json").write_text(content)
        ClockNews(tmp_path, "b1").tell([rank()], reading(60 * SECOND), told)
    assert len(told.events) == 4
    assert caplog.text.count("offsets are told again") == 3


def test_a_full_disk_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", no_room)
    told, news = Told(), ClockNews(tmp_path, "b1")
    news.tell([rank(run="a-1"), rank(run="b-2")], reading(60 * SECOND), told)
    assert len(told.events) == 2
    assert caplog.text.count("a restart tells offsets twice") == 1
