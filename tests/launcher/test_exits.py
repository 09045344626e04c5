"""Who ended a rank: only evidence decides."""

import pytest

from headway.exporter.launcher.exits import Ending, ended_by


@pytest.mark.parametrize(
    ("ending", "by"),
    [
        (Ending(code=0), "itself"),
        (Ending(code=1), "itself"),
        (Ending(code=-11), "itself"),
        (Ending(code=-6), "itself"),
        (Ending(code=-9), "unknown"),
        (Ending(code=137), "itself"),
        (Ending(code=None), "unknown"),
        (Ending(code=-15), "unknown"),
        (Ending(code=-9, out_of_memory=True), "kernel"),
        (Ending(code=-9, out_of_memory=True, closed_by_launcher=True), "kernel"),
        (Ending(code=-15, out_of_memory=True), "unknown"),
        (Ending(code=-15, closed_by_launcher=True), "launcher"),
        (Ending(code=143, closed_by_launcher=True), "launcher"),
        (Ending(code=-9, closed_by_launcher=True), "launcher"),
        (Ending(code=None, closed_by_launcher=True), "launcher"),
        (Ending(code=0, closed_by_launcher=True), "itself"),
        (Ending(code=-9, watchdog_fired=True), "launcher"),
        (Ending(code=1, watchdog_fired=True), "itself"),
        (Ending(code=-15, stopped_by="scheduler"), "scheduler"),
        (Ending(code=-2, stopped_by="person"), "person"),
        (Ending(code=-11, stopped_by="person"), "itself"),
        (Ending(code=-15, stopped_by="person", closed_by_launcher=True), "launcher"),
    ],
)
def test_the_evidence_tells_who_ended_a_rank(ending: Ending, by: str) -> None:
    assert ended_by(ending) == by
