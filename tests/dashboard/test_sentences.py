"""The Run page opens with plain words that agree with the report."""

from datetime import UTC

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


def test_numbers_of_a_live_run_have_an_age_and_those_of_an_ended_run_are_final() -> None:
    live, ended = sample(live=True).report, sample().report

    text = sentences.data_age(live, live["as_of"] + 3 * SECOND, 5.0, UTC)

    assert "3.0 s old; provisional, refreshed every 5 s." in text
    assert sentences.data_age(ended, 0, 5.0, UTC).endswith("these numbers are final.")


def test_a_run_without_a_durable_checkpoint_says_what_a_failure_would_cost() -> None:
    report = sample().report | {"checkpoint": None, "steps_at_risk": 12}

    assert sentences.checkpoint_age(report) == "none yet"
    assert "would lose all 12 steps" in sentences.checkpoint(report)


def test_progress_names_the_target_only_where_it_is_known() -> None:
    report = sample().report
    assert sentences.progress(report) == "400 of 400"

    report["steps"] = report["steps"] | {"highest": 12345, "target": None}
    assert sentences.progress(report) == "12,345"
