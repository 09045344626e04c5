"""What an alert needs is derived from the report."""

from typing import Any

from headway.collector.exposition import attempts_without_durable_step


def without(attempts: list[int], checkpoints: list[tuple[int, int, str]]) -> int:
    """Attempts by their starts; checkpoints by finalization, step and state."""
    report: dict[str, Any] = {
        "attempt_list": [{"start": start} for start in attempts],
        "checkpoints": [
            {"finalized": finalized, "step": step, "state": state}
            for finalized, step, state in checkpoints
        ],
    }
    return attempts_without_durable_step(report)


def test_attempts_count_until_a_durable_checkpoint_moves_the_run_forward() -> None:
    assert without([0], []) == 1
    assert without([0, 10, 20], []) == 3
    assert without([0, 10, 20], [(5, 500, "claimed")]) == 2
    assert without([0, 10, 20], [(5, 500, "claimed"), (15, 600, "verified")]) == 1
    assert without([0, 10], [(5, 500, "claimed"), (15, 600, "claimed")]) == 0


def test_a_checkpoint_that_holds_no_more_than_before_is_no_progress() -> None:
    assert without([0, 10, 20], [(5, 500, "verified"), (15, 500, "claimed")]) == 2


def test_only_durable_checkpoints_count() -> None:
    states = ("scheduled", "failed", "revoked")
    assert without([0, 10], [(15, 600, state) for state in states]) == 2
