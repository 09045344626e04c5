"""Windows, exclusions, other libraries' formulas and the time to the target."""

from itertools import pairwise

import pytest

from headway.formulas import alternatives
from headway.ledger import ledger
from headway.windows import HOUR, arrival, sliding, window
from reckoning import in_seconds
from timeline import SECOND, at, timeline

OUTAGE = """
    0        allocation 8
    0        attempt A launcher
    0        configured target=1000
    0-100    steps 1-100
    100      scheduled c100
    100      finalized c100
    100-150  steps 101-150
    150      exit code=1 by=itself
    150      allocation 0
    250      allocation 8
    260      attempt B launcher
    270      resumed 100 from=c100
    270-370  steps 101-200
    """


def test_a_window_cuts_intervals_at_its_edges_with_all_later_knowledge():
    book = ledger(timeline(OUTAGE), at(370))
    part = window(book, at(90.5), at(155))
    assert in_seconds(part.categories) == {"productive": 9.5, "rolled_back": 50, "down": 5}
    assert part.elapsed == round(64.5 * SECOND)
    assert part.training_goodput.low == pytest.approx(9.5 / 64.5)


def test_windows_side_by_side_add_up_to_the_whole():
    book = ledger(timeline(OUTAGE), at(370))
    edges = [0, 33.3, 149.999, 151, 261.5, 300.25, 370]
    parts = [window(book, at(a), at(b)).categories for a, b in pairwise(edges)]
    summed = {name: sum(part[name] for part in parts) for name in book.categories}
    assert summed == dict(book.categories)


def test_planned_maintenance_leaves_numerator_and_denominator():
    book = ledger(timeline(OUTAGE), at(370))
    part = window(book, at(0), at(370), excluded=[(at(150), at(260)), (at(200), at(270))])
    assert part.elapsed == 250 * SECOND
    assert part.training_goodput.low == pytest.approx(200 / 250)
    assert [(a, b) for a, b in part.excluded] == [(at(150), at(270))]


def test_sliding_windows_end_at_the_end_of_the_run():
    book = ledger(timeline(OUTAGE), at(370))
    parts = sliding(book, 100 * SECOND, 50 * SECOND)
    assert parts[-1].end == at(370)
    assert in_seconds(parts[-1].categories) == {"productive": 100}
    assert all(part.elapsed <= 100 * SECOND for part in parts)


def test_a_window_that_ends_before_it_starts_is_refused():
    book = ledger(timeline(OUTAGE), at(370))
    with pytest.raises(ValueError, match="cannot end"):
        window(book, at(10), at(5))
    with pytest.raises(ValueError, match="positive"):
        sliding(book, 0, 1)


def test_other_denominators_stand_beside_ours_with_their_formulas():
    figures = {f.name: f for f in alternatives(ledger(timeline(OUTAGE), at(370)), SECOND)}
    assert figures["all_wall_time"].ratio == pytest.approx(200 / 370)
    assert figures["without_rescheduling"].ratio == pytest.approx(200 / (370 - 110))
    assert figures["reference_step"].ratio == pytest.approx(200 / 370)
    assert figures["without_rescheduling"].formula == "productive / (elapsed - down)"


def test_the_arrival_is_a_range_from_surviving_steps_with_faults_included():
    expected = arrival(ledger(timeline(OUTAGE), at(370)))
    assert expected.steps_left == 800
    slow, fast = sorted(expected.rates)
    # 200 surviving steps in 370 s; the recent part is the whole of so short a run
    assert slow == fast == pytest.approx(200 / 370 * HOUR / SECOND)
    assert expected.low == expected.high == at(370) + round(800 * 370 / 200 * SECOND)


def test_without_progress_the_latest_arrival_is_unknown():
    events = timeline(
        """
        0          configured target=100
        0          attempt A launcher
        0-10       steps 1-10
        10         exit code=1 by=itself
        """
    )
    expected = arrival(ledger(events, at(3 * 3600)))
    assert expected.high is None
    assert expected.low is not None


def test_a_run_that_ended_or_has_no_target_has_no_arrival():
    assert arrival(ledger(timeline("0 attempt A launcher\n0-5 steps 1-5"), at(5))) is None
