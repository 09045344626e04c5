"""Each condition of a live run on the timeline that makes it true, and on one that does not."""

import pytest

from headway.conditions import conditions
from headway.conditions.waiting import waits
from headway.ledger import ledger
from headway.metrics import METRICS
from headway.report import report
from loops import CHAIN
from timeline import at, timeline


def told(text, until, target=0.9):
    """Return the conditions of a timeline at a second, by name and labels after the run's."""
    found = ledger(timeline(text), at(until))
    return {
        (name, *labels): value for name, labels, value in conditions(found, report(found), target)
    }


HEALTHY = """
0        allocation 4
0        attempt A launcher world=1
0-100    steps 1-100
100      scheduled c100
102      finalized c100
102-200  steps 101-198
200      scheduled c198
203      finalized c198
203-300  steps 199-295
"""


def test_a_healthy_run_has_nothing_to_tell():
    found = told(HEALTHY, 301)
    assert found["headway_repeated_failures",] == 0
    assert found["headway_recovery_time_ratio",] == 0
    assert found["headway_invalid_recoveries",] == 0
    assert found["headway_suspected_false_alarms",] == 0
    assert found["headway_steps_below_newest_checkpoint",] == 0
    assert found["headway_live_dropped_events",] == 0
    assert found["headway_progress_silence_ratio",] == pytest.approx(1 / 900)
    assert found["headway_checkpoint_interval_ratio",] == pytest.approx(98 / 100)


def test_a_run_that_is_over_has_no_conditions():
    assert told(HEALTHY + "301 run_ended completed", 400) == {}


def test_every_condition_is_a_published_metric_with_the_labels_that_it_gives():
    everything = [told(HEALTHY, 301), told(LOOP, 96), told(TORN, 1300), told(HOURS, 7200)]
    for name, *labels in {key for found in everything for key in found}:
        assert METRICS[name].labels[0] == "run"
        assert len(METRICS[name].labels) == 1 + len(labels)


LOOP = "0 allocation 4" + CHAIN


def test_recoveries_that_break_alike_are_counted_and_named():
    found = told(LOOP, 96)
    assert found["headway_repeated_failures",] >= 2
    (incident,) = [key for key in found if key[0] == "headway_open_incident_gpu_seconds"]
    assert incident[2:] == ("killed", "node-a", "0")
    assert found[incident] > 0


ALIKE = """
{0} fault exception exception=ValueError message='bad sample 17'
{1} exit code=1
"""
MENDED = (
    ALIKE.format(400, 401)
    + """
420      attempt B launcher world=1
422      resumed 198 from=c198
422-900  steps 199-670
900      scheduled c670
902      finalized c670
902-1000 steps 671-760
"""
)
"""What broke once, and went on until a checkpoint lasted."""


def test_what_broke_alike_before_the_run_had_recovered_does_not_count():
    again = MENDED + ALIKE.format(1000, 1001)
    assert told(HEALTHY + again, 1002)["headway_repeated_failures",] == 1
    at_once = MENDED.replace("422-900  steps 199-670", "422-450  steps 199-220").split("900 ")[0]
    broken = "450 fault exception exception=ValueError message='bad sample 17'\n451 exit code=1"
    assert told(HEALTHY + at_once + broken, 452)["headway_repeated_failures",] == 2


AGAIN = "{0} attempt {1} launcher world=1\n{0} resumed 198 from=c198\n{0}-{2} steps 199-200\n"


def test_a_break_like_one_that_was_mended_does_not_make_another_one_beside_it_a_repetition():
    twice = ALIKE.format(1000, 1001) + "1020 attempt C launcher world=1\n1030 exit signal=9\n"
    text = (HEALTHY + MENDED + twice).replace("allocation 4", "allocation 4 nodes=1")
    assert told(text, 1031)["headway_repeated_failures",] == 1


@pytest.mark.parametrize(("nodes", "times"), [(1, 1), (2, 2)])
def test_that_the_only_node_of_a_run_is_the_same_each_time_says_nothing(nodes, times):
    text = HEALTHY.replace("allocation 4", f"allocation 4 nodes={nodes}")
    text += (
        "400 exit signal=9\n420 attempt B launcher world=1\n430 fault exception exception=OSError"
    )
    text += "\n431 exit code=1\n"
    assert told(text, 432)["headway_repeated_failures",] == times


def test_stops_that_were_announced_are_no_failures_that_repeat():
    stop = "{0} stop preemption\n{1} exit signal=15\n"
    again = "{0} attempt {1} launcher world=1\n{0} resumed 198 from=c198\n{0}-{2} steps 199-200\n"
    stopped = HEALTHY + stop.format(400, 401) + again.format(420, "B", 450) + stop.format(450, 451)
    assert told(stopped, 452)["headway_repeated_failures",] == 0
    fault = "{0} fault exception exception=OSError\n{1} exit code=1\n"
    once = stopped + again.format(460, "C", 470) + fault.format(470, 471)
    assert (
        told(once, 472)["headway_repeated_failures",] == 1
    )  # from one checkpoint for the 3rd time
    twice = once + again.format(480, "D", 490) + fault.format(490, 491)
    assert told(twice, 492)["headway_repeated_failures",] == 2


def test_time_without_recovery_counts_from_the_last_step_and_not_below_ten_minutes():
    assert told(LOOP, 96)["headway_recovery_time_ratio",] < 0.1
    assert told(LOOP, 1895)["headway_recovery_time_ratio",] == pytest.approx(3)
    again = LOOP + "1895 attempt E launcher world=1\n1896 resumed 50\n1896-1900 steps 51-54"
    assert told(again, 1901)["headway_recovery_time_ratio",] == 0


def test_a_layer_without_any_restarts_by_its_settings_has_used_none_up():
    assert ("headway_restarts_left", "launcher") not in told(
        HEALTHY + "1 budget launcher 0 limit=0", 301
    )
    assert (
        told(HEALTHY + "1 budget launcher 0 limit=3", 301)["headway_restarts_left", "launcher"] == 0
    )


def test_the_last_restarts_are_those_of_the_outermost_layer_that_tells_of_its_own():
    told_of = HEALTHY + "1 budget launcher 7 limit=9\n1 budget in_process 0 limit=5"
    found = told(told_of, 301)
    assert found["headway_restarts_left", "in_process"] == 0
    assert found["headway_last_restarts_left", "launcher"] == 7
    assert ("headway_last_restarts_left", "in_process") not in found


def test_an_outer_layer_that_starts_the_run_again_gives_the_inner_ones_new_restarts():
    spent = LOOP.replace("95     fault", "91 budget launcher 0 limit=3\n95     fault")
    assert told(spent, 96)["headway_restarts_left", "launcher"] == 0
    again = "\n300 attempt E {} world=1\n302 resumed 50 from=c50\n302-310 steps 51-58"
    inner = told(spent + again.format("launcher"), 311)
    assert inner["headway_restarts_left", "launcher"] == 0
    outer = told(spent + again.format("scheduler"), 311)
    assert ("headway_restarts_left", "launcher") not in outer


CHANGED = """
0        allocation 4
0        attempt A launcher world=1
0-100    steps 1-100
100      scheduled c100
102      finalized c100
102-200  steps 101-198
200      scheduled c198
203      finalized c198
203-300  steps 199-295
300      scheduled c295
303      finalized c295
303-305  steps 296-297
305      exit signal=15
310      attempt B scheduler world=1
312      resumed 295 from=c295
312-1312 steps 296-1295
1312     scheduled c1295
1320     finalized c1295
1320-2312 steps 1296-2287
2312     scheduled c2287
2320     finalized c2287
2320-3312 steps 2288-3279
3312     scheduled c3279
3320     finalized c3279
3320-4220 steps 3280-4179
"""


def test_what_is_usual_for_checkpoints_is_what_the_newest_attempt_does():
    found = told(CHANGED, 4221)
    assert found["headway_checkpoint_interval_ratio",] == pytest.approx(901 / 1000, abs=0.01)
    before = told(CHANGED, 402)
    assert before["headway_checkpoint_interval_ratio",] == pytest.approx(0.9, abs=0.01)


def test_a_save_as_the_run_stops_does_not_make_the_usual_time_between_two_shorter():
    text = """
0         allocation 4
0         attempt A launcher world=1
0-1000    steps 1-1000
1000      scheduled c1000
1002      finalized c1000
1002-2000 steps 1001-1998
2000      scheduled c1998
2002      finalized c1998
2002-2100 steps 1999-2096
2100      stop preemption
2100      scheduled c2096
2102      finalized c2096
2105      exit signal=15
3000      attempt B scheduler world=1
3002      resumed 2096 from=c2096
3002-3800 steps 2097-2894
"""
    found = told(text, 3801)["headway_checkpoint_interval_ratio",]
    assert found == pytest.approx(0.8, abs=0.01)


def test_the_age_of_a_checkpoint_counts_while_the_newest_attempt_trains():
    assert told(CHANGED, 311)["headway_checkpoint_interval_ratio",] == 0, "it starts"
    assert told(CHANGED, 362)["headway_checkpoint_interval_ratio",] == pytest.approx(0.5, abs=0.01)
    assert told(CHANGED + "4221 exit signal=9", 9000)["headway_checkpoint_interval_ratio",] == 0


TORN = """
0         allocation 4
0         attempt A launcher world=1
0-400     steps 1-400
400       scheduled c400
401       finalized c400
401-700   steps 401-700
700       scheduled c700
701       finalized c700
701-800   steps 701-800
800       exit signal=9
817       attempt B launcher world=1
841-849   load_failed c700
849-858   phase checkpoint_load
858       resumed 400 from=c400
860-900   steps 401-440
"""


OVERLOOKED = TORN.replace("841-849   load_failed c700\n", "")


def test_a_state_below_the_newest_claimed_checkpoint_tells_until_it_is_passed():
    assert told(OVERLOOKED, 901)["headway_steps_below_newest_checkpoint",] == 300
    passed = OVERLOOKED + "900-1300 steps 441-841"
    assert told(passed, 1301)["headway_steps_below_newest_checkpoint",] == 0


def test_a_checkpoint_that_could_not_be_read_was_not_overlooked():
    found = told(TORN, 901)
    assert found["headway_steps_below_newest_checkpoint",] == 0
    assert found["headway_unreadable_checkpoints",] == 1
    assert told(OVERLOOKED, 901)["headway_unreadable_checkpoints",] == 0


def test_a_copy_in_memory_that_went_with_its_node_is_no_checkpoint_that_was_passed_over():
    lost = OVERLOOKED.replace("finalized c700", "finalized c700 tier=memory")
    assert told(lost, 901)["headway_steps_below_newest_checkpoint",] == 0


def test_a_normal_rollback_is_not_below_the_newest_checkpoint():
    assert told(LOOP, 96)["headway_steps_below_newest_checkpoint",] == 0


@pytest.mark.parametrize(("until", "ratio"), [(750, 0.5), (1200, 1.0), (2100, 2.0)])
def test_silence_is_measured_from_the_last_completion(until, ratio):
    assert told(HEALTHY, until)["headway_progress_silence_ratio",] == pytest.approx(ratio)


def test_a_hang_is_left_to_a_watchdog_for_half_as_long_again_as_it_takes():
    watched = HEALTHY + "1 configured timeouts=process_group:1200,launcher.section_timeout.setup:5"
    found = told(watched, 300 + 1800)
    assert found["headway_progress_silence_ratio",] == pytest.approx(1)


def test_nobody_waits_for_more_than_an_hour_for_a_watchdog_that_is_set_to_hours():
    watched = HEALTHY + "1 configured timeouts=process_group:14400"
    found = told(watched, 300 + 3600)
    assert found["headway_progress_silence_ratio",] == pytest.approx(1)


@pytest.mark.parametrize(
    ("phases", "until", "ratio"),
    [
        ("300 phase evaluation", 1200, 0.5),
        ("300 phase evaluation", 2100, 1.0),
        ("300-1500 phase evaluation\n1500 phase evaluation", 2700, 0.5),
        ("300-320 phase checkpoint_save\n320 phase checkpoint_save", 1220, 1.0),
        ("300 phase step", 1200, 1.0),
    ],
    ids=["first, at work", "first, hung", "as long as before", "hung save", "hung step"],
)
def test_a_phase_that_says_so_may_take_twice_as_long_as_it_ever_did(phases, until, ratio):
    found = told(HEALTHY + phases, until)
    assert found["headway_progress_silence_ratio",] == pytest.approx(ratio, abs=0.01)


def test_a_phase_that_the_next_step_closed_gives_no_more_time():
    text = HEALTHY + "300 phase evaluation\n310-400 steps 296-385"
    assert told(text, 1300)["headway_progress_silence_ratio",] == pytest.approx(1, abs=0.01)


def test_a_run_that_recovers_is_not_silent():
    assert told(LOOP, 1860)["headway_progress_silence_ratio",] == 0


HOURS = """
0          allocation 4
0          attempt A launcher world=1
0-3600     steps 1-3600
3600       scheduled c1
3601       finalized c1
3601-5400  steps 3601-5399
5400       exit signal=9
5460       attempt B launcher world=1
5500       resumed 3600 from=c1
5500-7200  steps 3601-5300
"""


def test_the_newest_hour_is_judged_by_what_its_time_became():
    found = told(HOURS, 5900)
    # of the hour 1800 s were rolled back and 100 stalled or restarting, of its last quarter 400
    # and 100
    gap = found["headway_window_goodput_gap_ratio", "1h"]
    assert gap == pytest.approx(400 / 900, abs=0.01)
    lost = found["headway_window_infrastructure_loss_ratio", "1h"]
    assert lost == pytest.approx(100 / 3600, abs=0.002)
    burn = found["headway_goodput_burn_ratio", "1h"]
    assert burn == pytest.approx((1900 / 3600) / 0.1, abs=0.1)
    assert told(HOURS, 5900, target=0.5)["headway_goodput_burn_ratio", "1h"] == pytest.approx(
        burn / 5
    )
    assert ("headway_goodput_burn_ratio", "24h") not in found, "younger than half a day"


def test_an_hour_that_was_lost_is_past_once_its_newest_quarter_is_good():
    found = told(HOURS, 7200)
    assert found["headway_window_goodput_gap_ratio", "1h"] == pytest.approx(0, abs=0.01)
    assert found["headway_goodput_burn_ratio", "1h"] == pytest.approx(0, abs=0.01)


STOPPED = """
0          allocation 4
0          attempt A launcher world=1
0-3600     steps 1-3600
3600       scheduled c1
3601       finalized c1
3601-5400  steps 3601-5399
5400       stop preemption
5401       scheduled c2
5402       finalized c2
5410       exit code=0
"""


def test_waiting_for_machines_after_an_announced_stop_is_nobodys_loss():
    stopped = told(STOPPED, 9000)
    assert stopped["headway_recovery_time_ratio",] == 0
    assert ("headway_goodput_burn_ratio", "1h") not in stopped, "nothing of it is left to judge"
    starts = "\n9000 attempt B scheduler world=1\n"
    assert told(STOPPED + starts, 9300)["headway_recovery_time_ratio",] == pytest.approx(0.5)
    queued = starts + "9100 exit code=1\n9110 allocation 0\n"
    assert told(STOPPED + queued, 12_000)["headway_recovery_time_ratio",] == 0
    lost = STOPPED.replace("5400       stop preemption\n", "").replace("code=0", "signal=9")
    assert told(lost, 9000)["headway_recovery_time_ratio",] > 5
    assert told(lost, 9000)["headway_goodput_burn_ratio", "1h"] == pytest.approx(10)


def test_a_wait_that_began_more_than_a_day_ago_is_nobodys_loss_either():
    starts = "77410 attempt B scheduler world=1\n77420 resumed 5399 from=c2\n"
    found = told(STOPPED + starts + "77420-95500 steps 5400-23479", 95_501)
    assert ("headway_goodput_burn_ratio", "24h") not in found, "too little of it is left to judge"


@pytest.mark.parametrize("recovered", [5300, 5450, None])
def test_no_wait_lasts_beyond_the_recovery_or_ends_before_it_begins(recovered):
    text = STOPPED + "9000 attempt B launcher world=1\n9100 allocation 0\n9200 allocation 4\n"
    stop = {"cause": "preemption", "opened": at(5400)}
    until = None if recovered is None else at(recovered)
    found = list(waits(ledger(timeline(text), at(9300)), {**stop, "recovered": until}))
    assert found[0][0] == at(5400)
    assert all(begin <= end <= max(at(5400), until or at(9300)) for begin, end in found)


def outages(*lengths):
    """Return a run that was down for each of these times in seconds, and is down again."""
    lines = ["0 allocation 4", "0 attempt A0 launcher world=1", "0-90 steps 1-90"]
    time = 100
    for number, length in enumerate(lengths, start=1):
        lines += [
            f"{time} exit signal=9",
            f"{time + length - 2} attempt A{number} launcher world=1",
            f"{time + length - 1} resumed {90 * (number - 1)}",
            f"{time + length - 1}-{time + length + 200}"
            f" steps {90 * (number - 1) + 1}-{90 * number + 20}",
        ]
        time += length + 200
    return "\n".join([*lines, f"{time} exit signal=9"]), time


@pytest.mark.parametrize(
    ("lengths", "usual"),
    [
        ([10_000], 600),
        ([900, 900, 10_000], 2_700),
        ([9_000, 9_000, 9_000], 3_600),
        ([900] * 19 + [2_000] * 2, 2_000),
    ],
    ids=["one is no measure", "an outlier of few", "after an hour anyway", "one in twenty"],
)
def test_what_is_usual_for_a_recovery_is_no_single_accident(lengths, usual):
    text, down = outages(*lengths)
    ratio = told(text, down + 1_000)["headway_recovery_time_ratio",]
    assert ratio == pytest.approx(1_000 / usual, rel=0.02)


def test_a_phase_of_an_earlier_day_is_near_its_timeout_no_more():
    slow = HEALTHY + "1 configured timeouts=process_group:100\n300-390 phase checkpoint_save"
    key = "headway_phase_timeout_ratio", "checkpoint_save", "process_group"
    assert told(slow, 400)[key] == pytest.approx(0.9)
    assert key not in told(slow, 90_000)


def test_a_rank_that_waits_for_its_data_is_slow_by_that_part_of_a_step():
    text = "0 attempt A launcher world=2\n0 attempt A launcher world=2 rank=1\n"
    text += "0-60 steps 1-60 each=1\n0-90 steps 1-60 each=1 wait=0.5 rank=1"
    found = told(text, 91)["headway_straggler_excess_ratio",]
    assert found == pytest.approx(0.5), "though its peers do not wait at all"


def test_a_gpu_that_is_out_of_service_counts_for_an_hour():
    text = HEALTHY + "\n290 gpu 0 GPU-a 0000:cb:00.0 node=node-a\n299 xid 79 0000:cb:00 node=node-a"
    assert told(text, 301)["headway_live_gpu_faults", "node-a"] == 1
    assert told(text, 301 + 3600)["headway_live_gpu_faults", "node-a"] == 0


MOVED = """
290  gpu 0 GPU-a 0000:cb:00.0 node=node-a
299  xid 79 0000:cb:00 node=node-a
300  exit signal=9
310  attempt B scheduler world={world} rank={rank}
312  resumed 198 from=c198 rank={rank}
312-400 steps 199-280 rank={rank}
"""


@pytest.mark.parametrize(
    ("rank", "world", "faults"),
    [(4, 1, 0), (0, 1, 1), (4, 2, 1)],
    ids=["elsewhere", "on the same node", "not all ranks known yet"],
)
def test_a_gpu_that_a_run_no_longer_uses_counts_no_longer(rank, world, faults):
    found = told(HEALTHY + MOVED.format(rank=rank, world=world), 401)
    assert found["headway_live_gpu_faults", "node-a"] == faults
