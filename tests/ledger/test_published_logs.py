"""Two logs that another project published with its own figures, beside ours."""

import csv
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headway import events as e
from headway.collector.ledgers import Ledgers
from headway.formulas import alternatives, slowdown
from headway.ledger import ledger
from timeline import SECOND, Timeline, at

MINUTE = 60 * SECOND
DATA = Path(__file__).parents[1] / "data" / "goodput"


def expected(name):
    return json.loads((DATA / f"{name}.expected.json").read_text())


def worked_example():
    """Turn the rows (in minutes) into events; a step number in it is a completed count."""
    built = Timeline()
    completed = since = start = 0
    with (DATA / "goodput_worked_example.csv").open() as rows:
        for row in csv.DictReader(rows):
            time, kind, step = int(row["minute"]) * MINUTE, row["event"], row["step"]
            if kind in ("job_started", "job_restarted"):
                start += 1
                built.attempt = f"start {start}"
                built.emit(time, e.AttemptStarted(layer="scheduler"))
            elif kind == "checkpoint_loaded":
                completed = int(step)
                built.emit(time, e.PhaseEnded(phase="checkpoint_load", duration=time - since))
                built.emit(time, e.Resumed(completed=completed, checkpoint=f"c{completed}"))
            elif kind == "step_finished":
                count = int(step) - completed
                built.emit(
                    time,
                    e.StepsSummary(
                        first_step=completed + 1, num_steps=count, duration=time - since
                    ),
                )
                completed = int(step)
            elif kind == "checkpoint_saved":
                built.emit(time, e.PhaseEnded(phase="checkpoint_save", duration=time - since))
                built.emit(time, e.CheckpointScheduled(checkpoint=f"c{step}", step=int(step)))
                built.emit(time, e.CheckpointFinalized(checkpoint=f"c{step}", step=int(step)))
            elif kind == "job_crashed":
                built.emit(time, e.AttemptEnded(exit_code=1))
            else:
                built.emit(time, e.RunEnded(reason="completed"))
            since = time
    return built.envelopes


def test_the_published_worked_example_has_its_published_parts():
    wanted = expected("goodput_worked_example")
    published, checks = wanted["published"], wanted["checks"]
    book = ledger(worked_example(), at(wanted["total"] * 60))
    spent = {name: amount / MINUTE for name, amount in book.categories.items() if amount}
    reference = checks["reference_min_per_step"] * MINUTE

    assert sum(spent.values()) == wanted["total"]
    assert spent["checkpoint_load"] == published["checkpoint_loading"]
    assert spent["checkpoint_save"] == published["checkpoint_saving"]
    assert spent["rolled_back"] == published["training_progress_loss"]
    assert spent["down"] == published["job_restart"]
    assert slowdown(book, reference) / MINUTE == published["training_slowdown"]
    effective = spent["productive"] - published["training_slowdown"]
    assert effective == published["effective_computation"]
    theirs = {figure.name: figure for figure in alternatives(book, reference)}
    assert theirs["reference_step"].ratio == pytest.approx(published["goodput_percent"] / 100)
    assert book.newest_step - book.first_base == checks["net_progress_steps"]
    # our own figure: steps that survive, at the speed they really had
    assert book.training_goodput.low == pytest.approx(125 / 200)


def event_log():
    """Turn the log into events; a save tells that the steps up to it were completed."""
    built = Timeline()
    completed = start = since = 0
    lines = (DATA / "goodput_event_log.jsonl").read_text().splitlines()
    stamps = [json.loads(line) for line in lines]
    zero = datetime.fromisoformat(stamps[0]["timestamp"]).replace(tzinfo=UTC)
    for record in stamps:
        when = datetime.fromisoformat(record["timestamp"]).replace(tzinfo=UTC)
        past = when - zero
        time = (past.seconds * 10**6 + past.microseconds) * 1000
        kind = record["event_type"]
        if kind == "job_started":
            start += 1
            built.attempt = f"start {start}"
            built.emit(time, e.AttemptStarted(layer="scheduler"))
        elif kind == "checkpoint_loaded":
            completed = record["step"]
            built.emit(time, e.PhaseEnded(phase="checkpoint_load", duration=time - since))
            origin = f"c{completed}" if completed else None
            built.emit(time, e.Resumed(completed=completed, checkpoint=origin))
        elif kind == "checkpoint_saved":
            step = record["step"]
            built.emit(
                time,
                e.StepsSummary(
                    first_step=completed + 1, num_steps=step - completed, duration=time - since
                ),
            )
            built.emit(time, e.CheckpointScheduled(checkpoint=f"c{step}", step=step))
            built.emit(time, e.CheckpointFinalized(checkpoint=f"c{step}", step=step))
            completed = step
        else:
            built.emit(time, e.AttemptEnded())  # the log tells no exit code
        since = time
    built.emit(since, e.RunEnded(reason="completed"))
    return built.envelopes, since


def test_the_published_event_log_gives_their_figure_and_ours_beside_it():
    wanted = expected("goodput_event_log")
    envelopes, end = event_log()
    book = ledger(envelopes, at(0) + end)
    reference = round(wanted["published"]["reference_step_time_s"] * SECOND)
    theirs = {figure.name: figure for figure in alternatives(book, reference)}["reference_step"]

    assert theirs.ratio == pytest.approx(wanted["goodput_percent"] / 100, abs=5e-6)
    assert theirs.denominator == round(wanted["total_s"] * SECOND)
    assert sum(book.categories.values()) == book.elapsed == theirs.denominator
    # From each load to the last save after it the log shows 15.822891 s and 16.113239 s of steps;
    # the second after each belongs to the last step (rule 16), what follows is in doubt.
    sure = (15.822891 + 16.113239 + 2) / wanted["total_s"]
    doubt = (2.334065 - 1 + 2.004928 - 1) / wanted["total_s"]
    assert book.training_goodput.low == pytest.approx(sure, abs=1e-7)
    assert book.training_goodput.high == pytest.approx(sure + doubt, abs=1e-7)
    assert book.newest_step == 10_000
    assert book.steps.rework == 0


def test_rule_4_counts_of_completed_steps_become_steps_from_1():
    # "loaded 25" means that 25 steps are done and the next is the 26th, as "finished 50" means 50
    book = ledger(worked_example(), at(200 * 60))
    told = [(a.resumed, a.first_step, a.last_step) for a in book.attempts]
    assert told == [(25, 26, 70), (50, 51, 75)]
    assert book.first_base == 25
    assert (book.steps.executed, book.steps.rework) == (70, 20)


def test_rule_4_two_runs_in_one_stream_are_two_ledgers():
    mixed = Ledgers(lambda: at(400 * 60))
    second = [replace(event, run="other", producer="other") for event in worked_example()]
    mixed.add([event for pair in zip(worked_example(), second, strict=True) for event in pair])
    assert sorted(s.ledger.run for s in mixed.snapshots()) == ["other", "run"]
    assert all(s.report["attempts"] == 2 for s in mixed.snapshots())
