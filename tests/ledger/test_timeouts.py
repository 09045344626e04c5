"""The longest of each phase beside the timeouts that guard it, and the restarts that are left."""

import pytest

from headway.events import Envelope, Steps
from headway.ledger import Timeline, ledger
from headway.ledger.longest import FIRST_HEARTBEAT, HEARTBEAT, REGROUPING
from headway.ledger.timeouts import Guarded, longest_phases
from headway.report import report
from timeline import SECOND, at, timeline

RUN = """
    0       configured timeouts=in_process.soft_timeout:60,in_process.barrier_timeout:120
    0       attempt A launcher world=2
    0       attempt A launcher world=2 rank=1
    10-20   phase checkpoint_load
    10-22   phase checkpoint_load rank=1
    30-40   steps 1-5 each=1.5 wait=0.5
    30-40   steps 1-5 each=2 rank=1
    40-48   phase checkpoint_save
    48-54   steps 6-8 each=2
    54      fault exception rank=1
    55      wrapper rendezvous
    57      wrapper rendezvous ended
    60      attempt B in_process world=2
    60-90   phase checkpoint_load error=OSError
    90-110  steps 1-2 each=10
"""


def found(events: list[Envelope], until: float = 200) -> dict[tuple[str, str | None], Guarded]:
    known = longest_phases(ledger(events, at(until)))
    return {(one.phase, one.timeout): one for one in known}


def longest(text: str) -> dict[str, tuple[float, int]]:
    """Return each phase's longest in seconds, and its rank."""
    return {
        phase: (one.longest / SECOND, one.rank) for (phase, _), one in found(timeline(text)).items()
    }


def test_the_longest_of_each_phase_is_kept_with_its_rank() -> None:
    assert longest(RUN) == {
        "checkpoint_load": (12, 1),  # the one that failed does not tell how long it takes
        "checkpoint_save": (8, 0),
        "data_wait": (0.5, 0),
        "step": (10, 0),
        HEARTBEAT: (10, 0),  # the save and a step
        FIRST_HEARTBEAT: (40, 0),  # from 60 to 100
        REGROUPING: (2, 0),
    }


def test_each_is_compared_with_the_timeouts_that_guard_it() -> None:
    events = timeline(RUN)
    known = found(events)

    assert known["checkpoint_load", "in_process.soft_timeout"].ratio == pytest.approx(12 / 60)
    assert known["checkpoint_load", "in_process.soft_timeout"].limit == 60 * SECOND
    assert known[REGROUPING, "in_process.barrier_timeout"].ratio == pytest.approx(2 / 120)
    assert known[HEARTBEAT, None].ratio is None  # no timeout is configured for it
    identities = {envelope.attempt for envelope in events if envelope.attempt}
    assert known["step", "in_process.soft_timeout"].attempt in identities


@pytest.mark.parametrize(
    ("timeouts", "phase", "guards"),
    [
        ("launcher.section_timeout.step:5", "step", ["launcher.section_timeout.step"]),
        (
            "launcher.section_timeout.step:5,launcher.out_of_section_timeout:9",
            "checkpoint_load",
            ["launcher.out_of_section_timeout"],
        ),
        ("launcher.heartbeat_timeout:9", HEARTBEAT, ["launcher.heartbeat_timeout"]),
        ("launcher.heartbeat_timeout:9", "step", [None]),
        (
            "launcher.initial_heartbeat_timeout:9",
            FIRST_HEARTBEAT,
            ["launcher.initial_heartbeat_timeout"],
        ),
        (
            "in_process.hard_timeout:9,process_group:9,in_process.soft_timeout:8",
            "step",
            ["in_process.soft_timeout", "in_process.hard_timeout", "process_group"],
        ),
        ("in_process.soft_timeout:8,process_group:9", "data_wait", ["in_process.soft_timeout"]),
        ("in_process.heartbeat_interval:8", "step", [None]),
        ("in_process.soft_timeout:0", "step", [None]),
    ],
)
def test_a_timeout_guards_what_it_would_end(
    timeouts: str, phase: str, guards: list[str | None]
) -> None:
    events = timeline(f"100 configured timeouts={timeouts}\n{RUN}")

    assert [timeout for name, timeout in found(events) if name == phase] == guards


def test_import_and_startup_are_guarded_by_nothing_but_a_section_of_their_own() -> None:
    timeouts = (
        "in_process.soft_timeout:60,launcher.out_of_section_timeout:60,process_group:60,"
        "launcher.section_timeout.startup:60"
    )
    events = timeline(
        f"""
        0       configured timeouts={timeouts}
        0       attempt A
        0-9     phase startup
        1-5     phase import
        """
    )

    section = "launcher.section_timeout.startup"
    assert list(found(events)) == [("import", None), ("startup", section)]


def test_a_summary_tells_its_longest_step_without_the_wait() -> None:
    known = longest(
        """
        0       attempt A
        0-20    summary 1-10 wait=5 longest=6 longest_step=3
        """
    )

    assert known["step"] == (6, 0)
    assert "data_wait" not in known  # only the sum is known


def test_a_phase_that_never_ended_is_no_measure_of_how_long_it_takes() -> None:
    assert "evaluation" not in longest("0 attempt A\n5-5 phase evaluation open=1")


def test_reading_on_after_every_record_finds_the_same_and_only_what_is_known() -> None:
    events = timeline(RUN)
    growing = Timeline("run")
    for position, envelope in enumerate(events, start=1):
        growing.add([envelope])
        until = max(one.anchor + one.monotonic for one in events[:position])
        assert longest_phases(growing.ledger(until)) == longest_phases(
            ledger(events[:position], until)
        )
    early = [one for one in events if not isinstance(one.event, Steps)]
    assert HEARTBEAT not in {one.phase for one in longest_phases(ledger(early, at(200)))}


def test_the_report_shows_what_each_layer_said_last_about_the_restarts_left() -> None:
    events = timeline(
        """
        0       attempt A
        0       budget in_process 3 limit=3
        0       budget launcher 2 limit=2
        5       budget in_process 2 limit=3
        9       budget launcher 1
        """
    )

    assert report(ledger(events, at(8)))["restart_budgets"] == {
        "in_process": {"remaining": 2, "limit": 3},
        "launcher": {"remaining": 2, "limit": 2},
    }
    newest = report(ledger(events, at(10)))["restart_budgets"]["launcher"]
    assert newest == {"remaining": 1, "limit": None}


def test_the_report_lists_the_longest_phases_in_ns() -> None:
    listed = report(ledger(timeline(RUN), at(200)))["longest_phases"]

    loads = [one for one in listed if one["phase"] == "checkpoint_load"]
    assert loads == [
        {
            "phase": "checkpoint_load",
            "longest_ns": 12 * SECOND,
            "rank": 1,
            "attempt": loads[0]["attempt"],
            "timeout": "in_process.soft_timeout",
            "timeout_ns": 60 * SECOND,
            "ratio": 0.2,
        }
    ]
