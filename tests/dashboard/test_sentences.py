"""The Run page opens with plain words that agree with the report."""

from datetime import UTC

import pytest

from headway.dashboard import sentences
from headway.wording import duration, percent, ratio_range
from sample_run import SECOND, sample


def test_the_headline_says_what_lasted_what_was_up_and_the_largest_loss() -> None:
    report = sample().report

    text = sentences.headline(report)

    lost = report["categories"]["rolled_back"]
    assert text == (
        f"{percent(report['training_goodput']['low'])} of {duration(report['elapsed_ns'])} became "
        "lasting progress; the machines were up "
        f"{percent(report['infrastructure_goodput']['low'])} of it. Largest loss: Rolled back, "
        f"{percent(lost / report['elapsed_ns'])} ({duration(lost)})."
    )


def test_time_without_evidence_makes_the_headline_a_range() -> None:
    report = sample(gap=5.0).report

    text = sentences.headline(report)

    assert text.startswith(ratio_range(**report["training_goodput"]))
    assert " to " in text.split("%")[0]
    assert "range because" in sentences.definition(report, "training_goodput")


def test_a_run_that_has_not_stepped_yet_claims_nothing() -> None:
    report = sample().report
    report["categories"] = {"startup": 14 * SECOND, "productive": 0}
    report["elapsed_ns"] = 14 * SECOND

    assert sentences.headline(report) == "No step has lasted yet, 14 s into the run."

    report["elapsed_ns"] = 0
    assert "just begun" in sentences.headline(report)


def test_a_goodput_shows_its_terms_and_formula() -> None:
    report = sample().report
    productive = duration(report["categories"]["productive"])

    assert sentences.ratio_terms(report, "training_goodput") == (
        f"{productive} of {duration(report['elapsed_ns'])}"
    )
    assert "Formula: productive / elapsed." in sentences.definition(report, "training_goodput")


def test_a_live_run_says_since_when_it_runs_and_an_ended_one_that_its_numbers_are_final() -> None:
    live, ended = sample(live=True).report, sample().report

    live["as_of"] = live["last_event"] + 90 * SECOND
    said = sentences.state(live, UTC)
    assert said.startswith("Running. Last heard 1 min 30 s ago. Began 2025-")
    assert sentences.state(ended, UTC).endswith("these numbers are final.")


@pytest.mark.parametrize(
    ("arrival", "expected"),
    [
        (None, ("unknown", "record target_step")),
        ({"low": 60, "high": 60, "steps_left": 0}, ("reached", "every step is done")),
        ({"low": None, "high": None, "steps_left": 9}, ("unknown", "no lasting step yet")),
        ({"low": 60, "high": None, "steps_left": 9}, ("50 s", "or longer: stopped of late")),
        ({"low": 60, "high": 60, "steps_left": 9}, ("50 s", "at a steady rate")),
        ({"low": 60, "high": 130, "steps_left": 9}, ("50 s", "up to 2 min 0 s")),
        ({"low": 5, "high": 130, "steps_left": 9}, ("0 s", "up to 2 min 0 s")),
    ],
)
def test_the_time_to_the_target_is_told_with_its_bounds_or_what_it_needs(
    arrival: dict[str, int | None] | None, expected: tuple[str, str]
) -> None:
    if arrival is not None:
        arrival = {
            name: value * SECOND if value is not None and name != "steps_left" else value
            for name, value in arrival.items()
        }
    report = sample(live=True).report | {"arrival": arrival}

    assert sentences.arrival(report, 10 * SECOND) == expected


def test_of_an_ended_run_the_time_it_took_is_told_with_its_rate() -> None:
    report = sample().report

    took, rate = sentences.arrival(report, 0)

    assert took == duration(report["elapsed_ns"])
    steps = report["steps"]["surviving"] * 3_600 * SECOND / report["elapsed_ns"]
    assert rate == f"{round(steps):,} steps per hour"


def test_a_run_without_a_durable_checkpoint_says_what_a_failure_would_cost() -> None:
    report = sample().report | {"checkpoint": None, "steps_at_risk": 12}

    assert sentences.checkpoint_age(report) == "none yet"
    assert "would lose all 12 steps" in sentences.checkpoint(report)


def test_progress_names_the_target_only_where_it_is_known() -> None:
    report = sample().report
    assert sentences.progress(report) == "400 of 400"

    report["steps"] = report["steps"] | {"highest": 12345, "target": None}
    assert sentences.progress(report) == "12,345"
