"""The seeded fault schedule and its memory."""

import os
from pathlib import Path

import pytest

from headway.exporter.training.faults import (
    BREAKS_SAVES,
    MOMENTS,
    STAGED,
    PlannedFault,
    schedule,
    single,
)
from headway.exporter.training.injector import FaultInjector, InjectedFaultError

PUBLISHED = {
    "seed": 42,
    "num_faults": 5,
    "after_step": 10,
    "max_steps": 2000,
    "world_size": 16,
}


def test_the_published_parameters_give_the_published_steps_and_ranks() -> None:
    faults = schedule(**PUBLISHED)
    assert [fault.step for fault in faults] == [62, 239, 574, 1320, 1529]
    assert [fault.rank for fault in faults] == [4, 12, 12, 2, 1]
    assert {fault.type for fault in faults} == {"exception"}


@pytest.mark.parametrize(("second", "weights"), [("hang", (0.6, 0.4)), ("sigkill", (0.7, 0.3))])
def test_the_published_weights_change_the_third_fault_alone(
    second: str, weights: tuple[float, float]
) -> None:
    faults = schedule(**PUBLISHED, types=("exception", second), weights=weights)
    expected = ["exception", "exception", second, "exception", "exception"]
    assert [fault.type for fault in faults] == expected


def test_two_ranks_leave_only_rank_1_to_strike() -> None:
    faults = schedule(**{**PUBLISHED, "world_size": 2})
    assert {fault.rank for fault in faults} == {1}


def test_no_fault_needs_no_second_rank() -> None:
    assert schedule(**{**PUBLISHED, "num_faults": 0, "world_size": 1}) == ()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"world_size": 1}, "start at least 2 ranks"),
        ({"max_steps": 12}, "5 faults do not fit into steps 11 to 12; ask for at most 2"),
        ({"max_steps": 3}, "at most 0"),
        ({"types": ("expection",)}, "unknown fault type 'expection'; known: exception, hang"),
        ({"weights": (1.0, 2.0)}, "1 fault types with 2 weights"),
    ],
)
def test_impossible_numbers_are_refused_with_the_next_step(
    changed: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        schedule(**{**PUBLISHED, **changed})


FAULTS = tuple(
    PlannedFault(step=step, rank=rank, type="exception") for step, rank in [(3, 1), (5, 2), (6, 1)]
)


class Rank:
    """One rank's injector and what it announced."""

    def __init__(self, rank: int, memory: Path, faults: tuple[PlannedFault, ...] = FAULTS) -> None:
        self.announced: list[str] = []
        self.waits: list[float] = []
        self.injector = FaultInjector(
            faults,
            rank=rank,
            memory=memory,
            announce=self.announced.append,
            wait_for_stop=self.wait,
        )

    def wait(self, seconds: float) -> bool:
        """Be told to stop in the third second."""
        self.waits.append(seconds)
        return len(self.waits) > 2

    def strikes(self, completed: int, at: str = "step") -> int | None:
        """Return the step of the fault that struck by an exception, if any."""
        before = len(self.announced)
        try:
            self.injector.strike(at, completed)
        except InjectedFaultError:
            return int(self.announced[before].partition("after step ")[2].split()[0])
        return None


def test_a_fault_strikes_its_rank_once_after_its_step(tmp_path: Path) -> None:
    rank = Rank(1, tmp_path / "faults")
    assert [rank.strikes(step) for step in (1, 2, 3, 3, 4, 5, 6, 7)] == [
        *(None, None, 3),
        *(None, None, None, 6),
        None,
    ]


def test_a_fault_is_remembered_by_the_next_process(tmp_path: Path) -> None:
    assert Rank(1, tmp_path).strikes(3) == 3
    after = Rank(1, tmp_path)
    assert after.strikes(3) is None
    assert [fault.step for fault in after.injector.pending()] == [5, 6]


def test_faults_passed_while_their_rank_was_down_strike_one_by_one(tmp_path: Path) -> None:
    rank = Rank(1, tmp_path)
    assert [rank.strikes(9), rank.strikes(9), rank.strikes(9)] == [3, 6, None]
    assert [fault.step for fault in rank.injector.pending()] == [5]


def test_a_fault_of_another_rank_leaves_this_one_alone(tmp_path: Path) -> None:
    rank = Rank(0, tmp_path)
    assert [rank.strikes(step) for step in range(9)] == [None] * 9
    assert rank.announced == []


SINGLE = {
    "kind": "exception",
    "at": None,
    "rank": None,
    "step": None,
    "max_steps": 40,
    "world_size": 2,
    "checkpoint_every": 10,
    "evaluate_every": 7,
}


@pytest.mark.parametrize(
    ("asked", "planned"),
    [
        ({}, PlannedFault(step=15, rank=1, type="exception", at="step")),
        ({"at": "startup"}, PlannedFault(step=0, rank=1, type="exception", at="startup")),
        ({"at": "load"}, PlannedFault(step=0, rank=1, type="exception", at="load")),
        ({"at": "load", "step": 1}, PlannedFault(step=1, rank=1, type="exception", at="load")),
        (
            {"kind": "checkpoint_torn", "rank": 0},
            PlannedFault(step=15, rank=0, type="checkpoint_torn", at="save"),
        ),
        ({"max_steps": 5}, PlannedFault(step=4, rank=1, type="exception", at="step")),
    ],
)
def test_a_single_fault_strikes_the_last_rank_between_two_checkpoints_unless_told_otherwise(
    asked: dict[str, object], planned: PlannedFault
) -> None:
    assert single(**{**SINGLE, **asked}) == planned


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"kind": "meteor"}, "unknown fault 'meteor'; known: exception, hang"),
        ({"at": "noon"}, "cannot strike at 'noon'; known: startup, load"),
        ({"kind": "checkpoint_fail", "at": "step"}, "strikes at a save, not at step"),
        ({"at": "evaluation", "evaluate_every": 0}, "needs --evaluate-every"),
        ({"rank": 2}, "no rank 2 to strike; choose one of 0 to 1"),
        ({"rank": -1}, "no rank -1"),
        ({"step": 40}, "at step after step 40 of 40; choose 0 to 39"),
        ({"at": "startup", "step": 3}, "choose 0$"),
    ],
)
def test_a_single_fault_that_can_never_strike_is_refused(
    asked: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        single(**{**SINGLE, **asked})


def planned(kind: str, at: str, *, step: int = 3) -> tuple[PlannedFault, ...]:
    return (PlannedFault(step=step, rank=1, type=kind, at=at),)


@pytest.mark.parametrize("at", MOMENTS)
def test_a_fault_strikes_at_its_own_moment_only(tmp_path: Path, at: str) -> None:
    rank = Rank(1, tmp_path, planned("exception", at))
    for other in MOMENTS:
        if other != at:
            assert rank.strikes(9, other) is None
    assert rank.strikes(2, at) is None
    assert rank.strikes(9, at) == 3
    assert rank.strikes(9, at) is None


@pytest.mark.parametrize("kind", STAGED)
def test_what_a_process_cannot_do_to_itself_is_waited_for_until_the_stop(
    tmp_path: Path, kind: str
) -> None:
    rank = Rank(1, tmp_path, planned(kind, "step"))
    assert rank.strikes(3) is None
    assert len(rank.waits) == 3
    assert rank.strikes(4) is None
    assert len(rank.waits) == 3


def test_the_mark_of_a_fault_names_the_process_that_it_struck(tmp_path: Path) -> None:
    Rank(1, tmp_path, planned("preemption", "step")).strikes(3)
    (mark,) = tmp_path.iterdir()
    assert mark.name == "step-000003-rank-1-preemption"
    assert mark.read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("kind", BREAKS_SAVES)
def test_every_rank_knows_of_a_threatened_save_and_one_breaks_it_once(
    tmp_path: Path, kind: str
) -> None:
    one, other = (Rank(rank, tmp_path, planned(kind, "save")) for rank in (1, 0))
    assert one.strikes(9, "save") is None
    assert not one.injector.threatens(kind, 2)
    assert one.injector.threatens(kind, 3)
    assert other.injector.threatens(kind, 3)
    assert not other.injector.breaks(kind, 3)
    assert one.injector.breaks(kind, 3)
    assert one.announced == [f"injecting {kind} planned at save after step 3 into rank 1"]
    assert not other.injector.threatens(kind, 4)
    assert not one.injector.breaks(kind, 4)
