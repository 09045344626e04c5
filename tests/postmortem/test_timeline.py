"""The timeline merges all sources in order of time, says who told what, and stays short."""

import pytest

from headway.events import CAUSES, CheckpointLoadFailed
from headway.postmortem.composing import postmortem
from headway.postmortem.happenings import words_of
from headway.postmortem.model import Told
from headway.postmortem.numbering import absent_ranks_in_words, ranks_in_words
from headway.postmortem.timeline import MOST
from postmortems import answers, words, written
from timeline import at, timeline
from worked_example import KILLED

MANY = """
0        allocation 1000
0        attempt A launcher world=1000 rank=0..999
0-100    steps 1-100 rank=0..999
100      scheduled c100
100      finalized c100
700      fault heartbeat_timeout rank=0..999 ran_for=600 timeout=600 message="Waited 600 seconds."
701      launcher stop_workers
702      exit rank=0..999 signal=9 by=launcher
710      attempt B launcher world=1000 rank=0..999
720      resumed 100 from=c100 rank=0..999
720-800  steps 101-180 rank=0..999
"""


def test_all_that_happened_stands_in_order_of_time_with_who_told_it() -> None:
    assert words(written()) == [
        "rank: checkpoint c500 is complete: 500 steps",
        "ledger: step 574 is done, the last before the fault",
        "headway run: process is gone: signal 9 (SIGKILL), nobody saw by whom",
        "launcher: stops what is left of the processes",
        *["headway run: process is gone: signal 15 (SIGTERM), ended by the launcher"] * 3,
        "rank: attempt 2: process starts",
        "rank: attempt 2: checkpoint load",
        "rank: attempt 2: resumes from checkpoint c500: 500 steps done",
        "ledger: step 501 is done: training goes on",
        "ledger: caught up: the 74 steps rolled back are done again",
        "ledger: the incident closes: the attempt holds",
    ]


def test_the_first_fault_and_what_decides_are_marked() -> None:
    found = written()
    (first,) = (line for line in found.timeline if line.first_fault)
    assert (first.time, first.about) == (at(574), "rank 3 on node-a")
    assert first.decides
    assert first.record == "rank3/576"


def test_a_hang_opens_before_anybody_sees_it_and_the_timeline_says_so() -> None:
    text = KILLED.replace(
        "574      exit rank=3 signal=9",
        "634      fault heartbeat_timeout rank=3 ran_for=60 timeout=60",
    )
    found = written(text)
    assert found.opened == at(574)
    opening = (
        "the incident opens: by its own word the first fault, seen 1 min 0 s later, began here"
    )
    assert f"ledger: {opening}" in words(found)


def test_a_fault_that_does_not_say_since_when_opens_where_steps_ended() -> None:
    text = KILLED.replace("574      exit rank=3 signal=9", "576 fault host_oom rank=3")
    opening = "the incident opens: the first fault was seen 2.0 s later, and no step was done since"
    assert f"ledger: {opening}" in words(written(text))


def test_an_exception_without_a_message_ends_in_no_colon() -> None:
    event = CheckpointLoadFailed(checkpoint="c5", step=5, reason="rank 0: EOFError: ")
    assert words_of(event) == "checkpoint c5 could not be read back: rank 0: EOFError"


def test_kernel_driver_people_programs_and_alerts_are_told_apart() -> None:
    said = {
        "time": at(600),
        "author": "Ada",
        "about": "incident",
        "subject": "i",
        "action": "acknowledged",
        "text": None,
        "cause": None,
        "labels": [],
        "labels_removed": [],
    }
    notice = Told(
        time=at(590),
        receiver="oncall",
        status="firing",
        headline="run hangs",
        why="it fires",
        state="delivered",
        answer=None,
        acknowledged_by=None,
        acknowledged_at=None,
    )
    text = KILLED + "573 xid 79 0000:cb:00\n573 health nic unhealthy detail=down\n"
    found = written(text, said=[said], notices=[notice])
    told = words(found)
    assert "GPU driver: Xid 79 on 0000:cb:00" in told
    assert "agent: health check nic: unhealthy (down)" in told
    assert "person: took charge" in told
    assert "alerts: firing: run hangs" in told
    assert [line.time for line in found.timeline] == sorted(line.time for line in found.timeline)


def test_what_a_check_says_again_and_a_check_that_holds_are_no_news() -> None:
    text = KILLED + "570 health nic healthy\n580 health nic healthy\n590 health gpu disabled\n"
    assert not any("health check" in line for line in words(written(text)))


def test_of_the_saves_before_the_fault_only_the_last_is_told() -> None:
    text = KILLED + "400 scheduled c400\n400 finalized c400\n"
    assert [line for line in words(written(text)) if "complete" in line] == [
        "rank: checkpoint c500 is complete: 500 steps"
    ]


def test_the_last_save_is_told_however_old_it_is() -> None:
    text = KILLED.replace("500      finalized c500", "9        finalized c9")
    told = [line for line in written(text).timeline if line.words.startswith("checkpoint c9")]
    assert [line.time for line in told] == [at(9)]


def test_an_observation_without_a_record_in_reach_is_told_by_the_ledger() -> None:
    found = answers(timeline(KILLED), 754)
    (observed,) = (one for one in found.incident["observations"] if one["rank"] == 3)
    observed["events"] = [{"producer": "elsewhere", "sequence": 1}]
    assert "ledger: ended by signal 9 on rank 3" in words(postmortem(found))


@pytest.mark.slow
def test_a_thousand_ranks_that_say_the_same_are_one_line() -> None:
    found = written(MANY, 800)
    told = [line for line in found.timeline if "heartbeat timeout" in line.words]
    assert [(line.count, line.about) for line in told if not line.first_fault] == [
        (999, "ranks 1-999 on node-a, node-b, node-c and 5 more")
    ]
    assert len(found.timeline) < 20
    assert any("950 more observations" in gap for gap in found.gaps)


def test_of_more_lines_than_there_is_room_the_middle_goes_but_for_what_is_marked() -> None:
    notes = "\n".join(f"{575 + place / 10} note remark-{place}" for place in range(400))
    found = written(f"{KILLED}\n{notes}")
    assert found.num_lines > 400
    assert MOST <= len(found.timeline) <= MOST + 2
    assert any(line.first_fault for line in found.timeline)
    assert found.timeline[-1].words == "the incident closes: the attempt holds"


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([], ""),
        ([3], "rank 3"),
        ([0, 1, 2], "ranks 0-2"),
        ([0, 2], "ranks 0, 2"),
        ([0, 2, 4, 6, 8, 9], "ranks 0, 2, 4, 6 and 2 more"),
    ],
)
def test_ranks_are_told_as_stretches(ranks: list[int], expected: str) -> None:
    assert ranks_in_words(ranks) == expected


@pytest.mark.parametrize(
    ("present", "world", "expected"),
    [
        ([0, 1, 3], 4, "rank 2"),
        ([1, 2], 4, "ranks 0, 3"),
        ([], 2, "ranks 0-1"),
        ([0, 2, 4, 6, 8], 12, "ranks 1, 3, 5, 7 and 3 more"),
        ([5, 1], 2**62, "ranks 0, 2-4, 6-4611686018427387903"),
    ],
)
def test_absent_ranks_are_told_without_counting_through_them(
    present: list[int], world: int, expected: str
) -> None:
    assert absent_ranks_in_words(present, world) == expected


def test_a_start_that_was_killed_lasted_until_then_and_one_that_lives_goes_on() -> None:
    again = """
    642   attempt B launcher world=4 rank=0..3
    646   phase warmup rank=0..3
    700   fault heartbeat_timeout rank=0..3 ran_for=50 timeout=50
    701   exit rank=0..3 signal=9 by=launcher
    710   attempt C launcher world=4 rank=0..3
    715   phase warmup rank=0..3
    """
    found = written(KILLED.split("642 ")[0] + again, 800)
    told = {line.words: line for line in found.timeline if "warmup" in line.words}
    cut, live = told["attempt 2: warmup, cut short"], told["attempt 3: warmup, which goes on"]
    assert (cut.time, cut.until) == (at(646), at(701))
    assert (live.time, live.until) == (at(715), at(800))


def test_what_a_dead_peer_looks_like_is_marked_as_an_echo() -> None:
    echo = "580 fault exception rank=1 exception=ConnectionResetError"
    text = KILLED.replace("634      launcher", f"{echo}\n634 launcher")
    (line,) = (one for one in written(text).timeline if "ConnectionResetError" in one.words)
    assert (line.evidence, line.echo, line.first_fault) == (True, True, False)


def test_an_attempt_inside_the_process_starts_no_process() -> None:
    text = KILLED.replace("642      attempt B launcher", "642      attempt B in_process")
    told = words(written(text))
    assert "rank: attempt 2: begins inside the same process" in told
    assert not any("attempt 2: process" in line for line in told)


def test_no_cause_is_without_a_word() -> None:
    assert all(written(incident={"cause": cause}).questions for cause in CAUSES)
