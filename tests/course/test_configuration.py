"""What each attempt was configured with, and what changed."""

from headway.course.configuration import Change, changed, configurations
from headway.events import AttemptStarted, RunConfigured
from headway.ledger import Ledger, ledger
from timeline import Timeline, at, seconds


def two_attempts(first: RunConfigured | None, second: RunConfigured | None) -> Ledger:
    built = Timeline()
    for begin, attempt, configured in ((0, "A", first), (10, "B", second)):
        built.attempt = attempt
        for rank in (0, 4) if attempt == "A" else (0, 8):
            started = AttemptStarted(
                layer="launcher", world_size=2, visible_devices=str(rank), scheduler_job="77"
            )
            built.emit(seconds(begin), started, rank)
        if configured is not None:
            built.emit(seconds(begin + 1), configured)
    return ledger(built.envelopes, at(20))


def changes(first: RunConfigured | None, second: RunConfigured | None) -> list[Change]:
    found = configurations(two_attempts(first, second))
    assert found[0].changes == ()
    return [one for one in found[1].changes if one.field != "nodes"]


def test_a_changed_an_added_and_a_lost_option_are_told() -> None:
    first = RunConfigured(options={"lr": 0.1, "seed": 1}, versions={"torch": "2.12"})
    second = RunConfigured(options={"lr": 0.2, "seed": 1, "clip": 1.0}, versions={"torch": "2.13"})

    assert changes(first, second) == [
        Change(field="options", name="clip", before=None, after=1.0),
        Change(field="options", name="lr", before=0.1, after=0.2),
        Change(field="versions", name="torch", before="2.12", after="2.13"),
    ]


def test_what_an_attempt_does_not_say_it_took_over() -> None:
    first = RunConfigured(target_step=100, options={"lr": 0.1})

    found = configurations(two_attempts(first, None))

    assert [one.told for one in found] == [True, False]
    assert {one.name: one.value for one in found[1].settings if one.field == "options"} == {
        "lr": 0.1
    }
    assert changes(first, RunConfigured(target_step=200)) == [
        Change(field="target_step", name=None, before=100, after=200)
    ]


def test_nodes_that_were_left_and_taken_are_told() -> None:
    found = configurations(two_attempts(None, None))[1].changes

    assert found == (Change(field="nodes", name=None, before=("node-b",), after=("node-c",)),)


def test_of_the_ranks_devices_those_of_the_lowest_are_told() -> None:
    found = configurations(two_attempts(None, None))[0].settings

    assert {one.field: one.value for one in found}["visible_devices"] == "0"
    assert {one.field: one.value for one in found}["scheduler_job"] == "77"


def test_equal_settings_differ_in_nothing() -> None:
    settings = {("options", "lr"): 0.1, ("nodes", None): ("a", "b")}

    assert changed(settings, dict(settings)) == []


def test_the_runs_target_survives_a_later_attempt_that_names_none() -> None:
    found = two_attempts(RunConfigured(target_step=100), RunConfigured(options={"lr": 0.1}))

    assert found.steps.target == 100
