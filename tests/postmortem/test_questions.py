"""Gaps and open questions are derived from what is known, and nothing is asked that is answered."""

from dataclasses import replace
from typing import Any

from headway.events import RunConfigured
from headway.fleet.totals import Price
from headway.postmortem.composing import postmortem
from headway.postmortem.model import Configurations, Difference
from headway.postmortem.questions import questions
from postmortems import answers, written
from timeline import at, timeline
from worked_example import KILLED

ACKNOWLEDGED = {"acknowledged_by": "Ada", "acknowledged_at": None}


def test_a_rank_that_told_nothing_is_a_gap() -> None:
    text = KILLED.replace(
        "0        attempt A launcher world=4 rank=0..3", "0 attempt A launcher world=6 rank=0..3"
    )
    gaps = written(text).gaps
    assert "Attempt 1: records of 4 of 6 ranks; nothing came from ranks 4-5." in gaps
    gaps = written(text.replace("attempt B launcher world=4", "attempt B launcher world=6")).gaps
    assert "Attempts 1-2: records of 4 of 6 ranks; nothing came from ranks 4-5." in gaps


def test_a_rank_whose_end_nobody_saw_is_a_gap() -> None:
    text = KILLED.replace("640      exit rank=0..2", "640      exit rank=0..1")
    assert "Attempt 1: nobody saw how rank 2 ended." in written(text).gaps


def test_records_that_never_came_are_gaps() -> None:
    found = written(holes=[("ab" * 16, 7, 9), ("cd" * 16, 4, 4)])
    assert "Records 7 to 9 of producer abababab have not arrived." in found.gaps
    assert "Record 4 of producer cdcdcdcd has not arrived." in found.gaps


def test_sources_that_were_absent_or_silent_are_gaps() -> None:
    gaps = written().gaps
    assert "Nobody is known to have read the kernel log of node-a." in gaps
    assert "Nobody is known to have read the GPU driver of node-a." in gaps
    read = KILLED + '1 health kernel_log healthy\n1 health gpu disabled detail="no driver"\n'
    gaps = written(read).gaps
    assert not any("kernel log" in gap for gap in gaps)
    assert "The GPU driver of node-a could not be read: no driver." in gaps


def test_a_clock_that_is_off_is_a_gap() -> None:
    gaps = written(KILLED + "1 clock 3\n").gaps
    assert any("Clock of node node-a is 3.000 s behind" in gap for gap in gaps)


def test_without_a_book_of_alerts_nobody_says_that_nobody_was_told() -> None:
    unread, read = written(notices=None), written(notices=[])
    assert "No book of alerts could be read: whom anybody told is not known here." in unread.gaps
    asked = "Should somebody have been told? No alert about it went out."
    assert asked in read.questions
    assert asked not in unread.questions


def test_a_cause_that_may_be_anybodys_is_asked_about_and_one_that_is_known_is_not() -> None:
    assert any(one.startswith("Why did it happen?") for one in written().questions)
    known = written(KILLED.replace("exit rank=3 signal=9", "fault gpu_oom rank=3"))
    assert not any(one.startswith("Why did it happen?") for one in known.questions)


def test_no_evidence_is_asked_about() -> None:
    unknown: dict[str, Any] = {
        "cause": "unknown",
        "suspect_rank": None,
        "suspect_node": None,
        "observations": [],
        "num_observations": 0,
        "first_fault": None,
        "decided_by": None,
    }
    found = written(incident=unknown)
    assert "What broke? The evidence names no cause." in found.questions
    assert "Whose was it? The evidence accuses no rank, no node and no GPU." in found.questions


def test_an_open_incident_asks_what_will_bring_it_back_and_says_what_is_missing() -> None:
    found = written(KILLED.split("642 ")[0], 700)
    assert found.state == "open"
    assert "What will bring it back? No attempt has held yet." in found.questions
    assert "The incident is still open: what follows is not in this document." in found.gaps
    assert found.recovery.restored is None


def test_whoever_took_charge_is_not_asked_for() -> None:
    asked = "Who follows this up? Nobody has taken charge of the incident."
    assert asked in written().questions
    assert asked not in written(incident=ACKNOWLEDGED).questions


def test_what_the_attempts_recorded_is_compared_with_the_attempt_before() -> None:
    text = KILLED.replace("0-574 ", "1 configured timeouts=heartbeat:10\n0-574 ").replace(
        "646-654", "643 configured timeouts=heartbeat:30\n646-654"
    )
    known = written(text).configuration
    assert (known.broken, known.last, known.told) == (1, 2, True)
    (one,) = known.differences
    assert (one.attempt, one.before_attempt, one.setting) == (2, 1, "Timeouts: heartbeat")
    assert (one.before, one.after) == ("10 s", "30 s")


def test_a_setting_that_the_attempt_that_broke_had_changed_is_asked_about() -> None:
    change = Difference(
        attempt=2, before_attempt=1, setting="Timeouts: heartbeat", before="10 s", after="30 s"
    )
    known = Configurations(broken=2, last=3, differences=(change,), num_differences=1, told=True)
    found = answers(timeline(KILLED), 754)
    asked = questions(found.incident, found.ledger, known, None)
    assert (
        "Did a change of the settings matter? The attempt that broke had changed: "
        "Timeouts: heartbeat."
    ) in asked


def test_a_checkpoint_that_could_not_be_read_is_asked_about_by_its_name() -> None:
    text = KILLED.replace("654      resumed 500 from=c500", "654 resumed 400 from=c400").replace(
        "646-654 ", "648 load_failed c500 rank=0\n646-654 "
    )
    asked = written(text.replace("steps 501-600", "steps 401-500")).questions
    assert (
        "Why could checkpoint c500 not be read back? So training resumed at step 400, below "
        "checkpoint 'c500' of step 500."
    ) in asked


def test_a_group_that_shrank_is_told_once_and_lacks_no_record() -> None:
    text = (
        KILLED.replace("attempt B launcher world=4 rank=0..3", "attempt B in_process world=1")
        .replace("646-654  phase checkpoint_load rank=0..3", "643 configured")
        .replace("from=c500 rank=0..3\n", "from=c500\n")
        .replace("steps 501-600 rank=0..3", "steps 501-600")
    )
    events = [
        replace(one, event=replace(one.event, world_size=1 if one.attempt == "B" else 4))
        if isinstance(one.event, RunConfigured)
        else one
        for one in timeline(text.replace("0-574 ", "1 configured\n0-574 "))
    ]
    found = postmortem(answers(events, 754))
    assert [(one.setting, one.before, one.after) for one in found.configuration.differences] == [
        ("World size", "4 ranks", "1 rank")
    ]
    assert not any("single rank" in gap for gap in found.gaps)


def test_no_question_is_asked_about_a_phase_of_less_than_a_second() -> None:
    short = {"phases": {"detect": 4 * 10**8, "start": 5 * 10**8}}
    assert not any(one.startswith("Could") for one in written(incident=short).questions)


def test_the_cost_is_told_in_steps_time_gpu_hours_and_money() -> None:
    cost = written(price=Price(per_gpu_hour=3.0, currency="EUR")).cost
    assert (cost.rollback_steps, cost.rollback_ns) == (74, 74 * 10**9)
    assert cost.lost_ns == 154 * 10**9
    assert cost.lost_gpu_ns == 4 * cost.lost_ns
    assert cost.gpus == 4
    assert cost.money is not None
    assert round(cost.money, 4) == round(4 * 154 / 3600 * 3.0, 4)


def test_what_recovered_it_names_the_checkpoint_and_its_age() -> None:
    recovery = written().recovery
    assert recovery.restored is not None
    assert (recovery.restored.checkpoint, recovery.restored.step) == ("c500", 500)
    assert recovery.restored.age_ns == 74 * 10**9
    assert (recovery.layer, recovery.num_tries, recovery.outcome) == (
        "launcher",
        1,
        "held_at_first",
    )


def test_a_stop_that_was_wanted_asks_neither_whose_it_was_nor_who_follows_up() -> None:
    stopped = {"cause": "preemption", "suspect_rank": None, "suspect_node": None}
    asked = written(incident=stopped, notices=[]).questions
    assert not any(one.startswith(("Whose", "Who ", "Should somebody")) for one in asked)


def test_a_suspect_that_a_record_names_is_not_doubted() -> None:
    doubted = "Was it rank 3?"
    weak = written(incident={"suspect_rule": "the only rank that was reported"}).questions
    assert any(one.startswith(doubted) for one in weak)
    firm = written(incident={"suspect_rule": "the record names it"}).questions
    assert not any(one.startswith(doubted) for one in firm)


def test_what_was_imported_is_told_as_that_and_asks_for_no_alert() -> None:
    read = [
        replace(one, anchor=0, monotonic=one.anchor + one.monotonic)
        for one in timeline(KILLED.replace(" steps ", " summary "))
    ]
    found = postmortem(answers(read, 754, notices=[]))
    assert {line.source for line in found.timeline} == {"imported log", "ledger"}
    told = "All of it was read from imported logs: no agent, launcher or machine was watched."
    assert told in found.gaps
    assert not any("kernel log" in gap for gap in found.gaps)
    assert not any(one.startswith("Should somebody") for one in found.questions)


def test_a_checkpoint_that_was_written_again_after_it_was_read_is_as_old_as_the_first() -> None:
    again = f"{KILLED}700 scheduled c500\n701 finalized c500\n"
    restored = written(again).recovery.restored
    assert restored is not None
    assert (restored.durable_since, restored.age_ns) == (at(500), 74 * 10**9)
