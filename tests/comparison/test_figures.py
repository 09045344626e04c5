"""Two sides with known figures: what differs, and what of it chance explains."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from headway.comparison import words
from headway.comparison.estimates import FINDINGS, Estimate, Figure
from headway.comparison.fairness import doubts
from headway.comparison.figures import compared
from headway.comparison.parts import Stretch
from headway.comparison.sides import Side, side_of
from headway.ledger import Ledger, ledger
from headway.ledger.pieces import Span
from headway.metrics import CATEGORIES
from headway.report import report
from ledger_laws import drawn
from timeline import at, timeline

SECOND = 10**9
QUIET = """
    0       attempt A launcher world=1
    0-100   steps 1-100
    100     run_ended completed
"""
BROKEN = """
    0       attempt A launcher world=1
    0-100   steps 1-100
    100     fault exception
    110     launcher stop_workers
    120     exit code=1 by=itself
    150     attempt B launcher world=1
    150     resumed 0
    150-200 steps 1-50
    200     run_ended completed
"""


class Told(NamedTuple):
    """A run whose ledger is there."""

    ledger: Ledger
    report: Mapping[str, Any]


def stretch(text: str, start: float, end: float, run: str = "r") -> Stretch[Told]:
    found = ledger(timeline(text, run), at(end))
    return Stretch(of=Told(found, report(found)), start=at(start), end=at(end))


def failing(times: int, down: int, run: str = "failing") -> Stretch[Told]:
    """A run that fails after each 100 s of training, rolls 20 s back and is down for a while."""
    lines, time, step = [], 0, 0
    for number in range(times + 1):
        lines.append(f"{time} attempt A{number} launcher world=1")
        if number:
            lines.append(f"{time} resumed {step} from=c{step}")
        lines.append(f"{time}-{time + 100} steps {step + 1}-{step + 100}")
        lines.append(f"{time + 80} finalized c{step + 80} {step + 80}")
        time, step = time + 100, step + 80
        if number < times:
            lines += [f"{time} fault exception", f"{time} exit code=1 by=itself"]
            time += down
    lines.append(f"{time} run_ended completed")
    return stretch("\n".join(lines), 0, time, run)


def figures(one: Side, other: Side) -> dict[str, Figure]:
    return {item.name: item for item in compared(one, other)}


@pytest.fixture(scope="module")
def quiet_and_broken() -> Mapping[str, Figure]:
    return figures(side_of([stretch(QUIET, 0, 100)]), side_of([stretch(BROKEN, 0, 200)]))


def test_figures_stand_side_by_side_with_their_difference(
    quiet_and_broken: Mapping[str, Figure],
) -> None:
    found = quiet_and_broken
    goodput = found["training_goodput"]
    assert (goodput.one.low, goodput.one.high) == (1.0, 1.0)
    assert (goodput.other.low, goodput.other.high) == (0.25, 0.25)
    assert (goodput.difference.low, goodput.difference.high) == (0.75, 0.75)
    assert (goodput.unit, goodput.higher_is_better) == ("ratio", True)
    assert found["step_time"].difference == Estimate(low=0.0, high=0.0)
    assert found["steps_per_hour"].one.low == 3600.0
    assert found["rolled_back_steps"].difference.low == -100
    assert found["elapsed"].difference.low == -100 * SECOND
    assert found["incidents"].other.low == 1
    assert found["recovery"].other.low == 51 * SECOND
    assert found["share:rolled_back"].other == Estimate(low=0.5, high=0.5, ns=100 * SECOND)


def test_a_single_incident_is_too_few_to_tell_it_from_chance(
    quiet_and_broken: Mapping[str, Figure],
) -> None:
    for name in ("training_goodput", "infrastructure_goodput", "share:rolled_back"):
        assert quiet_and_broken[name].finding == "too_few", name
    assert quiet_and_broken["failures"].finding == "chance"
    assert quiet_and_broken["mtbf"].finding == "unknown"
    assert quiet_and_broken["steps_per_hour"].finding == "measured"
    assert quiet_and_broken["share:evaluation"].finding == "equal"
    assert quiet_and_broken["recovery"].finding == "unknown"


def test_the_shares_of_all_categories_sum_to_the_whole(
    quiet_and_broken: Mapping[str, Figure],
) -> None:
    for side in ("one", "other"):
        shares = [
            getattr(item, side) for name, item in quiet_and_broken.items() if "share:" in name
        ]
        assert len(shares) == len(CATEGORIES)
        assert sum(one.low for one in shares) == pytest.approx(1)
    assert sum(one.ns for one in shares) == 200 * SECOND


def test_many_costly_failures_beside_none_are_more_than_chance_explains() -> None:
    bad = failing(12, down=100)
    good = failing(0, down=0, run="good")
    long = Stretch(of=good.of, start=good.start, end=good.end)
    found = figures(side_of([bad]), side_of([long] * 25))

    assert found["training_goodput"].finding == "distinct"
    assert words.verdict(as_object(found["training_goodput"])) == "worse"
    assert found["failures"].finding == "distinct"
    assert found["mtbf"].finding == "unknown"
    assert found["share:down"].finding in ("distinct", "equal")


def test_a_few_failures_more_may_be_chance() -> None:
    found = figures(side_of([failing(9, down=30)]), side_of([failing(7, down=30, run="b")]))

    for name in ("training_goodput", "failures", "mtbf", "gpu_training_goodput"):
        assert found[name].finding == "chance", name
    low, high = (getattr(found["failures"].difference, f"chance_{end}") for end in ("low", "high"))
    assert low < 0 < high


def as_object(figure: Figure) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(figure)


def test_time_without_evidence_leaves_the_sign_open() -> None:
    gap = """
        0       attempt A launcher world=1
        0-50    steps 1-50
        80-100  steps 51-70
        100     run_ended completed
    """
    slow = """
        0       attempt A launcher world=1
        0-80    steps 1-80
        80-100  phase evaluation
        100     run_ended completed
    """
    unknown = side_of([stretch(gap, 0, 100)])
    assert unknown.wall["unattributed"] == 29 * SECOND
    found = figures(unknown, side_of([stretch(slow, 0, 100)]))
    assert (found["training_goodput"].one.low, found["training_goodput"].one.high) == (0.71, 1.0)
    assert found["training_goodput"].finding == "either_sign"
    assert found["share:evaluation"].finding == "either_sign"


@pytest.mark.parametrize("seed", range(12))
def test_a_run_differs_from_itself_in_nothing(seed: int) -> None:
    envelopes, as_of, _ = drawn(seed)
    book = ledger(envelopes, as_of)
    side = side_of([Stretch(of=Told(book, report(book)), start=book.start, end=as_of)])
    for figure in compared(side, side):
        assert figure.one == figure.other
        assert figure.finding in ("equal", "unknown", "either_sign")
        low, high = figure.difference.low, figure.difference.high
        assert low is None or high is None or low <= 0 <= high
        ends = figure.difference.chance_low, figure.difference.chance_high
        assert ends[0] is None or ends[0] <= 0
        assert ends[1] is None or ends[1] >= 0


@pytest.mark.parametrize("seed", range(12))
def test_swapping_the_sides_flips_every_difference(seed: int) -> None:
    sides = []
    for number in (seed, seed + 100):
        envelopes, as_of, _ = drawn(number)
        book = ledger(envelopes, as_of)
        sides.append(side_of([Stretch(of=Told(book, report(book)), start=book.start, end=as_of)]))
    there = figures(sides[1], sides[0])
    for name, here in figures(*sides).items():
        back = there[name].difference
        for end, opposite in (("low", "high"), ("chance_low", "chance_high")):
            value = getattr(here.difference, end)
            mirrored = getattr(back, opposite)
            assert value is None or -value == pytest.approx(mirrored), name
            assert (value is None) == (mirrored is None), name
        assert here.finding == there[name].finding


def test_the_whole_run_has_the_figures_of_its_report() -> None:
    for seed in range(8):
        envelopes, as_of, _ = drawn(seed)
        book = ledger(envelopes, as_of)
        told = report(book)
        side = side_of([Stretch(of=Told(book, told), start=book.start, end=as_of)])
        assert side.wall == told["categories"]
        assert side.gpu == told["gpu_time"]["categories"]
        assert len(side.incidents) == len(told["incidents"])
        assert side.attempts == told["attempts"]
        assert side.steps == told["steps"]["surviving"]


def test_two_halves_together_are_the_whole_and_what_is_left_out_is_said() -> None:
    one = stretch(BROKEN, 0, 200)
    halves = [
        Stretch(of=one.of, start=at(first), end=at(last)) for first, last in ((0, 120), (120, 200))
    ]
    whole, both = side_of([one]), side_of(halves)
    assert both.wall == whole.wall
    assert (both.attempts, len(both.incidents), both.steps) == (2, 1, whole.steps)

    cut = side_of([one], [Span(at(100), at(150))])
    assert (cut.left_out, cut.elapsed) == (50 * SECOND, 150 * SECOND)
    assert cut.incidents == []
    assert any("left out" in doubt for doubt in doubts(cut, whole))


def test_each_run_says_itself_what_its_own_categories_count_as() -> None:
    text = """
        0       attempt A launcher world=1
        0-50    steps 1-50
        50-100  phase custom:warm
        100     run_ended completed
    """
    good = stretch(f"{text}\n0 configured good=custom:warm", 0, 100, "good")
    both = side_of([good, stretch(text, 0, 100, "bad")])
    assert (both.training.low, both.training.high) == (0.75, 0.75)


def test_a_side_without_any_time_has_no_figures() -> None:
    one = stretch(QUIET, 0, 100)
    later = Stretch(of=one.of, start=at(200), end=at(300))
    for empty in (side_of([]), side_of([later])):
        found = figures(empty, side_of([one]))
        assert found["training_goodput"].finding == "unknown"
        assert found["elapsed"].difference.low == -100 * SECOND
        assert "A holds no time of any run." in doubts(empty, side_of([one]))


def test_what_makes_it_unfair_is_said() -> None:
    small = side_of([stretch(QUIET, 0, 100)])
    large = side_of([stretch(QUIET.replace("world=1", "world=8 rank=0..7"), 0, 50, "b")])
    found = " ".join(doubts(small, large))
    assert "A held 1 GPU, B 8 GPUs" in found
    assert "B is not over" in found
    assert "A is not over" not in found
    part = side_of([stretch(QUIET, 50, 100)])
    assert "share 50 s of the same run" in doubts(small, part)[0]
    assert doubts(small, small) == []


@pytest.mark.parametrize(
    ("low", "high", "unit", "said"),
    [
        (0.031, 0.031, "ratio", "+3.1 pp"),
        (-0.02, 0.01, "ratio", "-2.0 to +1.0 pp"),
        (0.0, 0.0, "ratio", "0"),
        (-90 * SECOND, -90 * SECOND, "ns", "-1 min 30 s"),
        (1514.0, 1514.0, "steps", "+1,514"),
        (None, None, "steps", "unknown"),
    ],
)
def test_a_difference_reads_with_its_sign_and_unit(
    low: float | None, high: float | None, unit: str, said: str
) -> None:
    assert words.difference({"low": low, "high": high}, unit) == said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (None, None, ""),
        (-0.01, 0.03, "-1.0 to +3.0 pp"),
        (None, 0.03, "at most +3.0 pp"),
        (-0.01, None, "at least -1.0 pp"),
    ],
)
def test_an_open_end_of_chance_is_said(low: float | None, high: float | None, said: str) -> None:
    assert words.chance({"chance_low": low, "chance_high": high}, "ratio") == said


@pytest.mark.parametrize("finding", FINDINGS)
@pytest.mark.parametrize("better", [True, False, None])
def test_every_finding_has_words(finding: str, better: bool | None) -> None:
    found = {"finding": finding, "higher_is_better": better, "difference": {"low": -1.0}}
    said = words.verdict(found)
    assert said or (finding == "measured" and better is None)
    if finding == "distinct" and better is not None:
        assert said == ("worse" if better else "better")
