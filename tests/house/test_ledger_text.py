"""The report in a terminal: the same numbers as the object, with their formulas."""

import io
import json
from collections.abc import Iterator

import pytest

from headway import cli
from headway.cli.ledger_text import print_report, print_runs
from headway.ledger import ledger
from headway.metrics import CATEGORIES, INFRASTRUCTURE_FORMULA, TRAINING_FORMULA
from headway.report import report as report_of
from headway.wording import last_heard, ratio_range
from sample_run import Sample, sample
from stub_collector import collector
from timeline import at, timeline


@pytest.fixture(scope="module")
def run() -> Sample:
    """Return a finished run with five exceptions."""
    return sample()


@pytest.fixture
def endpoint(run: Sample) -> Iterator[str]:
    """Serve it."""
    with collector([run]) as address:
        yield address


def text(report: dict[str, object]) -> str:
    out = io.StringIO()
    print_report(report, out)
    return out.getvalue()


def line(said: str, start: str) -> str:
    (found,) = [row.strip() for row in said.splitlines() if row.strip().startswith(start)]
    return found


def test_both_goodputs_stand_beside_their_formulas(run: Sample) -> None:
    said = text(run.report)

    for title, key, formula in (
        ("Training goodput", "training_goodput", TRAINING_FORMULA),
        ("Infrastructure goodput", "infrastructure_goodput", INFRASTRUCTURE_FORMULA),
    ):
        assert ratio_range(**run.report[key]) in line(said, title)
        assert formula.split(" - ")[0] in line(said, title)


def test_every_category_has_its_time_and_its_share(run: Sample) -> None:
    said = text(run.report)

    for name, category in CATEGORIES.items():
        assert f"{run.report['categories'][name] / 1e9:,.3f} s" in line(said, f"{category.title} ")


def test_saves_tell_what_they_cost_and_what_became_of_them(run: Sample) -> None:
    said = text(run.report)
    writing = run.report["checkpoint_writing"]

    assert "10 ms" in line(said, "of that, for the copy")
    assert "5.4 MB" in line(said, "Written  ")
    assert f"{writing['saves']['claimed']} claimed" in line(said, "Saves")
    assert "3.6 %, at most 4.1 %" in line(said, "Write time against the interval")
    assert "3,000.0 MB" in line(said, "Least memory available meanwhile")
    assert "Fell back" not in said


def test_fallbacks_and_restarts_from_zero_are_told_with_what_was_there(run: Sample) -> None:
    resume = {"attempt": "a", "time": 0, "requested": "c20", "checkpoint": "c10"}
    lost = {**resume, "checkpoint": None, "newest": None}
    changed = {"fallbacks": [resume], "restarts_from_zero": [lost]}
    writing = {**run.report["checkpoint_writing"], **changed}
    said = text({**run.report, "checkpoint_writing": writing})

    assert "c10 instead of c20" in line(said, "Fell back at 1970-01-01 00:00:00 UTC")
    assert "although c20 was there" in line(said, "Began from zero at 1970")


def test_a_run_without_a_save_says_nothing_of_saves(run: Sample) -> None:
    writing = {**run.report["checkpoint_writing"], "saves": {"claimed": 0}}
    said = text({**run.report, "checkpoint_writing": writing})

    assert "Checkpoint writing" not in said


def test_saves_without_any_duration_yet_are_counted_without_an_empty_table(run: Sample) -> None:
    spreads = {
        name: {**spread, "count": 0}
        for name, spread in run.report["checkpoint_writing"].items()
        if isinstance(spread, dict) and "p95" in spread
    }
    said = text(
        {**run.report, "checkpoint_writing": {**run.report["checkpoint_writing"], **spreads}}
    )

    assert "Checkpoint writing" not in said
    assert "claimed" in line(said, "Saves ")


def test_restarts_are_listed_by_layer_and_cause_and_rollbacks_by_incident(run: Sample) -> None:
    said = text(run.report)

    assert line(said, "in process").split() == ["in", "process", "exception", "5"]
    for rollback in run.report["rollbacks"]:
        assert str(rollback["steps"]) in line(said, rollback["incident"])


def test_the_longest_phases_stand_beside_the_timeout_they_came_nearest_to(run: Sample) -> None:
    said = text(run.report)

    step = line(said, "Step ").split("  ")
    words = [cell.strip() for cell in step if cell]
    assert words == ["Step", "3.0 s", "5.0 %", "in process soft timeout 1", "1", "1"]
    assert "process group" not in said
    assert line(said, "In process").split()[-2:] == ["15", "20"]


def test_a_run_without_a_checkpoint_says_none_and_not_zero(run: Sample) -> None:
    said = text({**run.report, "checkpoint": None, "checkpoint_efficiency": None})

    assert line(said, "Newest durable checkpoint").endswith("none")
    assert "unknown" in line(said, "Checkpoint efficiency")


def test_problems_and_flags_are_shown(run: Sample) -> None:
    problem = {"kind": "resume_above_highest", "detail": "resumed at 900", "count": 2}
    said = text({**run.report, "problems": [problem], "flags": ["single_rank"]})

    assert "resumed at 900" in line(said, "resume above highest")
    assert "single rank" in line(said, "Flags")


def test_a_run_of_no_length_has_no_shares(run: Sample) -> None:
    nothing = dict.fromkeys(run.report["categories"], 0)

    said = text({**run.report, "elapsed_ns": 0, "categories": nothing})

    assert "unknown" in line(said, "Productive")


def test_report_prints_a_run_by_its_name(
    run: Sample, endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", "demo", "--endpoint", endpoint]) == 0
    assert str(run.report["run"]) in capsys.readouterr().out


def test_report_as_json_is_the_object_of_the_api(
    run: Sample, endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", "demo", "--json", "--endpoint", endpoint]) == 0
    assert json.loads(capsys.readouterr().out) == run.report


def test_report_without_a_run_lists_the_runs(
    run: Sample, endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", "--endpoint", endpoint]) == 0
    assert str(run.report["run"]) in capsys.readouterr().out


def test_a_list_of_runs_is_not_cut_where_the_terminal_is_narrow(
    run: Sample, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "llama-8b-f9fa3576-5d9d-4867-aa06-7cf1c1517a49"
    vague = {"low": 0.258, "high": 0.585}
    print_runs([{**run.report, "run": name, "training_goodput": vague}])

    said = line(capsys.readouterr().out, name)
    assert "25.8 to 58.5 %" in said
    assert str(run.report["state"]) in said


SILENT = """
0      attempt A launcher world=1
0-100  steps 1-100
"""


def test_a_run_whose_processes_are_gone_is_running_and_says_when_it_was_last_heard_of(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = report_of(ledger(timeline(SILENT), at(350)))
    assert (found["state"], found["last_event"]) == ("running", at(100))
    assert text(found).splitlines()[0].endswith("running, provisional; last heard 4 min 10 s ago")
    print_runs([found])
    listed = capsys.readouterr().out
    assert "last heard 4 min 10 s ago" in " ".join(listed.split())
    print_runs([report_of(ledger(timeline(SILENT), at(102)))])
    assert "last heard" not in capsys.readouterr().out
    ended = report_of(ledger(timeline(SILENT + "110 run_ended completed"), at(350)))
    assert (ended["last_event"], last_heard(ended)) == (at(110), None)


def test_no_run_yet_says_how_to_start_one(capsys: pytest.CaptureFixture[str]) -> None:
    with collector([]) as endpoint:
        assert cli.main(["report", "--endpoint", endpoint]) == 0
    assert "Start one with `headway demo`" in capsys.readouterr().out


def test_an_unknown_run_is_a_sentence_with_the_next_step(
    endpoint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", "nosuch", "--endpoint", endpoint]) == 2

    said = capsys.readouterr().err
    assert "nosuch" in said
    assert "Traceback" not in said
