"""The runs of the ledger bench mean the same to both sides and hold what their case says."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.goodput.headway_side import next_step, run_envelopes
from benchmarks.goodput.runs import SAVE, SECOND, Case, attempts, productive
from headway.ledger import ledger

ROOT = Path(__file__).parents[2]
SMALL = Case(name="small", steps=200, restarts=3, save_interval=10, lost=4, evaluation_interval=20)


@pytest.mark.parametrize("most", [1, 1000])
def test_headway_finds_the_true_time_of_every_run_of_the_bench(most: int) -> None:
    run = list(attempts(SMALL))
    envelopes = list(run_envelopes(run, most))

    asked = ledger(envelopes, run[-1].busy_until)

    assert asked.categories["productive"] == productive(run)
    assert asked.categories["rolled_back"] > 0
    assert asked.categories["checkpoint_save"] == sum(len(one.saves) for one in run) * SAVE
    assert asked.steps.highest == asked.steps.surviving == SMALL.steps
    assert asked.steps.rework == SMALL.restarts * SMALL.lost
    assert len(asked.attempts) == SMALL.restarts + 1


def test_a_poll_of_the_bench_adds_one_step() -> None:
    run = list(attempts(SMALL))
    envelopes = [*run_envelopes(run, 1000), next_step(run[-1], 0)]

    asked = ledger(envelopes, run[-1].busy_until + 2 * SECOND)

    assert asked.steps.highest == SMALL.steps + 1
    assert asked.categories["productive"] == productive(run) + 2 * SECOND


@pytest.mark.parametrize("name", ["", "dance", "../ledger"])
def test_an_unknown_bench_is_answered_with_the_known_ones(name: str) -> None:
    ended = subprocess.run([ROOT / "scripts" / "bench", name], capture_output=True, text=True)

    assert ended.returncode == 2
    assert f"unknown bench '{name}'; known: " in ended.stderr
    assert "ledger" in ended.stderr
