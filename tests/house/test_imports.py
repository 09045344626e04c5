"""What an import loads, and who may import whom."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LOADED = """
import sys
before = set(sys.modules)
sys.path.insert(0, {source!r})
import {module}
tops = {{name.partition('.')[0] for name in set(sys.modules) - before}}
print(*sorted(tops - set(sys.stdlib_module_names) - {{'headway'}}))
"""


@pytest.mark.parametrize(
    "module",
    ["headway.exporter", "headway.exporter.recording.recorder", "headway.cli", "headway.wire"],
)
def test_importing_it_loads_the_standard_library_alone(module: str) -> None:
    program = LOADED.format(source=str(ROOT / "src"), module=module)

    # Isolated and without site: nothing that this environment preloads can hide an import.
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], check=True, capture_output=True, text=True
    )

    assert ended.stdout.split() == []


def test_building_the_command_line_loads_the_standard_library_alone() -> None:
    program = LOADED.format(source=str(ROOT / "src"), module="headway.cli; headway.cli.parser()")

    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], check=True, capture_output=True, text=True
    )

    assert ended.stdout.split() == []


@pytest.mark.slow
def test_the_import_contracts_hold() -> None:
    ended = lint_imports(ROOT)

    assert ended.returncode == 0, ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("storage/client.py", "import headway.exporter"),
        ("collector/api.py", "import headway.dashboard"),
        ("collector/api.py", "import torch"),
        ("dashboard/app.py", "import duckdb"),
        ("exporter/recording/recorder.py", "import headway.collector"),
        ("exporter/agent/agent.py", "import sqlalchemy"),
        ("src/headway/wire.py", "import headway.ledger"),
        ("src/headway/ledger/ledger.py", "import time"),
        ("src/headway/nowhere.py", "import headway.cli"),
    ],
)
def test_the_import_contracts_catch_an_offender(tmp_path: Path, module: str, line: str) -> None:
    for name in ("alerts", "collector", "dashboard", "exporter", "grafana", "storage", "src"):
        subprocess.run(["cp", "-R", ROOT / name, tmp_path / name], check=True)
    subprocess.run(["cp", ROOT / "pyproject.toml", tmp_path], check=True)
    with (tmp_path / module).open("a", encoding="utf-8") as offender:
        offender.write(line + "\n")

    ended = lint_imports(tmp_path)

    assert ended.returncode == 1
    assert " 0 broken" not in ended.stdout
    assert Path(module).stem in ended.stdout


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys; from importlinter.cli import lint_imports_command as run; sys.exit(run())"
    )
    return subprocess.run(
        [sys.executable, "-P", "-c", program, "--no-cache"],
        cwd=root,
        env={"PYTHONPATH": str(root / "src"), "PATH": ""},
        capture_output=True,
        text=True,
    )
