"""Runs `headway import` in this process and gives back what it prints."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headway.cli import main

LOGS = Path(__file__).parent / "data" / "logs"
SECOND = 10**9


def imported(capsys: Any, *paths: Path | str, kind: str = "auto", more: Sequence[str] = ()) -> Any:
    """Return the JSON object that the import of some logs prints."""
    assert main(["import", kind, *map(str, paths), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def one_run(capsys: Any, *paths: Path | str, **options: Any) -> Any:
    """Return the only run of an import."""
    (run,) = imported(capsys, *paths, **options)["runs"]
    return run


def written(folder: Path, text: str, name: str = "train.log") -> Path:
    """Write a log and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def expected(name: str) -> Any:
    """Return what is expected of an excerpt."""
    return json.loads((LOGS / f"{name}.expected.json").read_text())


def utc(ns: int) -> datetime:
    """Return a time as a date without a zone, to the microsecond."""
    seconds, rest = divmod(ns, SECOND)
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None, microsecond=rest // 1000)


def spent(run: Any) -> dict[str, float]:
    """Return the seconds of each category that has some."""
    return {name: time / SECOND for name, time in run["categories"].items() if time}
