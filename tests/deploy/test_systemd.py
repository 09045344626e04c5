"""The systemd unit: what systemd says of it, and what it rests on."""

import configparser
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from headway.exporter.agent import FLUSH_TIME

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "headway-agent.service"
PROGRAM = "/opt/headway/bin/headway"


def read() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=True, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text(encoding="utf-8"))
    return parser


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_has_nothing_to_say(tmp_path: Path) -> None:
    copy = tmp_path / UNIT.name  # the program is not installed here
    text = UNIT.read_text(encoding="utf-8").replace(PROGRAM, sys.executable)
    copy.write_text(text, encoding="utf-8")
    said = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    about_it = [line for line in said.stderr.splitlines() if UNIT.name in line]
    assert (said.returncode, about_it) == (0, [])


def test_the_unit_has_time_to_flush_and_keeps_its_memory_from_the_users_folder() -> None:
    service = read()["Service"]
    assert float(service["TimeoutStopSec"]) > FLUSH_TIME
    assert service["ExecStart"] == f"{PROGRAM} agent"
    variables = dict(item.split("=") for item in service["Environment"].split())
    assert variables["HEADWAY_AGENT_STATE"] == f"/var/lib/{service['StateDirectory']}"
    assert service["ExecStartPre"].endswith(f"-m 1777 {variables['HEADWAY_SPOOL']}")
    assert variables["HEADWAY_SPOOL"].startswith(service["ReadWritePaths"])
