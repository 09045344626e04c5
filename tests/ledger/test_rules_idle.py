"""Rules 23 and 24: restart while somebody brings a run back, down while nobody does."""

import pytest

from reckoning import parts, spent

BROKEN = """
    0       attempt A launcher
    0-100   steps 1-10
    100     ended code=1
"""
NEXT = """
    200     attempt B launcher
    200-210 steps 11
"""


@pytest.mark.parametrize(
    ("phase", "part"),
    [
        ("finalize", "teardown"),
        ("rendezvous", "rendezvous"),
        ("spawn", "other"),
        ("health_check", "other"),
    ],
)
def test_rule_23_a_launcher_at_work_is_restart(phase, part):
    text = BROKEN + f"120 launcher {phase}\n150 launcher {phase} ended" + NEXT
    assert spent(text, 210) == {"productive": 110, "restart": 30, "down": 70}
    assert parts(text, 210, "restart") == {part: 30}


@pytest.mark.parametrize("phase", ["backoff", "wait_nodes"])
def test_rule_24_a_launcher_that_waits_is_down(phase):
    text = BROKEN + f"120 launcher {phase}\n150 launcher {phase} ended" + NEXT
    assert spent(text, 210) == {"productive": 110, "down": 100}


def test_rule_23_a_phase_without_an_end_lasts_to_the_launchers_next_word():
    text = BROKEN + "120 launcher rendezvous\n140 launcher backoff" + NEXT
    assert spent(text, 210) == {"productive": 110, "restart": 20, "down": 80}


def test_rule_23_a_phase_without_an_end_lasts_to_the_next_attempt():
    text = BROKEN + "120 launcher spawn" + NEXT
    assert spent(text, 210) == {"productive": 110, "restart": 80, "down": 20}


def test_rule_23_an_end_belongs_to_the_begin_just_before_it():
    text = (
        BROKEN
        + "120 launcher spawn\n150 attempt F launcher\n170 launcher spawn\n170 launcher spawn ended"
        + NEXT
    )
    # F shows no sign of life after its start, and what it followed ended with it
    assert spent(text, 210) == {"productive": 110, "restart": 30, "down": 70}


def test_rule_23_before_an_in_process_attempt_the_processes_live_on():
    text = BROKEN + NEXT.replace("launcher", "in_process")
    assert spent(text, 210) == {"productive": 110, "restart": 100}


def test_rule_24_an_in_process_attempt_after_all_exits_was_down_before():
    text = BROKEN + "100 exit code=1 by=itself" + NEXT.replace("launcher", "in_process")
    assert spent(text, 210) == {"productive": 110, "down": 100}


def test_rule_24_without_a_launcher_nobody_restarts_it():
    assert spent(BROKEN + NEXT, 210) == {"productive": 110, "down": 100}


def test_rule_24_down_is_queued_without_gpus_and_held_with_them():
    text = "0 allocation 4" + BROKEN + "120 allocation 0\n170 allocation 4" + NEXT
    assert parts(text, 210, "down") == {"held": 50, "queued": 50}


def test_rule_24_an_agent_is_no_rank():
    text = BROKEN + "\n".join(f"{second} launcher wait_nodes" for second in range(110, 200, 10))
    assert spent(text + NEXT, 210) == {"productive": 110, "down": 100}
