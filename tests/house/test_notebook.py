"""The example notebook runs from its first cell to its last, and finds what there is to find."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from incident_collector import running

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "after_an_incident.ipynb"


def cells() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="ascii"))["cells"]
    return found


def test_it_is_kept_without_what_it_once_printed() -> None:
    for cell in cells():
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
            ast.parse("".join(cell["source"]))


def test_every_cell_runs_on_a_collector(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path / "events.duckdb") as collector:
        assert collector.service._upkeep.say()
        monkeypatch.setenv("HEADWAY_ENDPOINT", collector.address)
        known: dict[str, Any] = {}
        for cell in cells():
            if cell["cell_type"] == "code":
                exec("".join(cell["source"]), known)  # noqa: S102  # our own file
        (incident,) = collector.client.incidents()
    assert incident["headline"] in capsys.readouterr().out
    assert list(known["worst"]["incident"]) == [incident["incident"]]
    assert list(known["recovery"].index) == ["exception"]
    assert known["phases"].shape[0] == 6
    assert known["nodes"].to_dict("records")[0]["incidents"] == 1
