"""Runs a training of another framework that fails and resumes, and reports on what it recorded."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headway.exporter.spooling.reader import SpoolReader, spools
from run_report import report_on
from training_run import environment


def fail_and_resume(
    command: Sequence[str], fail_at: int, folder: Path, *, path: Sequence[Path] = ()
) -> dict[str, Any]:
    """Run `python COMMAND CHECKPOINTS [FAIL_AT]` twice and return the report on the run.

    `path` is put before the interpreter's own.
    """
    checkpoints, spool = folder / "checkpoints", folder / "spool"
    checkpoints.mkdir()
    variables = environment(spool)
    variables["PYTHONPATH"] = ":".join([*map(str, path), variables["PYTHONPATH"]])
    variables |= {"HEADWAY_RUN": "line", "HEADWAY_RUN_ID": "7"}
    for arguments in ([str(fail_at)], []):
        ended = subprocess.run(
            [sys.executable, *command, str(checkpoints), *arguments],
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == len(arguments), ended.stderr
        assert bool(arguments) == ("no such batch" in ended.stderr)
    envelopes = []
    for spooled in spools(spool):
        batch = SpoolReader(spooled).read(limit=10**6)
        assert batch.finished
        envelopes += batch.envelopes
    assert {envelope.run for envelope in envelopes} <= {"line-7", None}
    return report_on(envelopes)


def assert_complete(told: dict[str, Any], *, rollback: int) -> None:
    """Check the report on 20 steps, saved every 5, of which the 18th failed the first time."""
    assert told["run_name"] == "line"
    assert told["state"] == "completed"
    assert told["steps"]["target"] == 20
    assert told["steps"]["surviving"] == 20
    assert told["problems"] == []
    saved = {(item["step"], item["state"]) for item in told["checkpoints"]}
    resumed = 17 - rollback
    assert {(5, "claimed"), (resumed, "verified"), (20, "claimed")} <= saved
    assert {step for step, _ in saved} == {5, 10, 15, 20}
    (incident,) = told["incidents"]
    assert incident["cause"] == "exception"
    assert incident["rollback_steps"] == rollback
    first, second = told["attempt_list"]
    assert (first["first_step"], first["last_step"]) == (1, 17)
    assert (second["resumed"], second["last_step"]) == (resumed, 20)
    for category in ("productive", "checkpoint_save", "evaluation", "startup"):
        assert told["categories"][category] > 0, category
