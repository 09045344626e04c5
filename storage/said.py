"""The rows that a report becomes in the tables of what the ledger says."""

import json
from collections.abc import Mapping
from typing import Any

from headway.metrics import CATEGORIES
from headway.report import summary
from headway.storage.keeping import Rows
from headway.storage.tables import ATTEMPTS, CHECKPOINTS, INCIDENTS, RUNS

_RENAMED = {"started": "start", "ended": "end"}
"""Columns whose names in a report are words of SQL."""
_IN_NS = {"rollback": "rollback_ns", "lost": "lost_ns", "lost_gpu": "lost_gpu_ns"}


def rows_of(report: Mapping[str, Any]) -> Rows:
    """Return what a run's report says as rows, without revision."""
    run = report["run"]
    return {
        RUNS: [_run(report)],
        ATTEMPTS: [
            {"run": run, **_columns(attempt, ATTEMPTS.c.keys(), _RENAMED)}
            for attempt in report["attempt_list"]
        ],
        INCIDENTS: [
            {
                "run": run,
                **_columns(incident, INCIDENTS.c.keys(), _IN_NS),
                "content": json.dumps(incident),
            }
            for incident in report["incidents"]
        ],
        CHECKPOINTS: [
            {"run": run, "number": number, **_columns(save, CHECKPOINTS.c.keys(), {})}
            for number, save in enumerate(report["checkpoints"], start=1)
        ],
    }


def _columns(
    values: Mapping[str, Any], columns: list[str], renamed: Mapping[str, str]
) -> dict[str, Any]:
    return {
        column: values[name]
        for column in columns
        if (name := renamed.get(column, column)) in values
    }


def _run(report: Mapping[str, Any]) -> dict[str, Any]:
    training, infrastructure = report["training_goodput"], report["infrastructure_goodput"]
    return {
        "run": report["run"],
        "run_name": report["run_name"],
        "state": report["state"],
        "provisional": report["provisional"],
        "started": report["start"],
        "ended": report["end"],
        "as_of": report["as_of"],
        "elapsed": report["elapsed_ns"],
        **{name: report["categories"][name] for name in CATEGORIES},
        "training_goodput_low": training["low"],
        "training_goodput_high": training["high"],
        "infrastructure_goodput_low": infrastructure["low"],
        "infrastructure_goodput_high": infrastructure["high"],
        "gpus": report["gpu_time"]["gpus"],
        "gpu_elapsed": report["gpu_time"]["elapsed_gpu_ns"],
        "attempts": report["attempts"],
        "failed_starts": report["failed_starts"],
        "highest_step": report["steps"]["highest"],
        "surviving_steps": report["steps"]["surviving"],
        "rework_steps": report["steps"]["rework"],
        "labels": json.dumps(report["labels"]),
        # a few lines that only a report holds, and that people want to compare over many runs
        "summary": json.dumps(
            {**summary(report), "longest_phases": report.get("longest_phases", [])}
        ),
    }
