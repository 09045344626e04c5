"""The systemd units: what systemd says of them, and what they rest on."""

import shutil
import subprocess
from pathlib import Path

import pytest

from headway.cli.refusal import WRONG_USE
from headway.collector.server import STOP_SECONDS
from headway.exporter.agent.agent import FLUSH_TIME
from headway.settings import CollectorSettings, load

FOLDER = Path(__file__).parents[2] / "deploy" / "systemd"
AGENT = FOLDER / "headway-agent.service"
COLLECTOR = FOLDER / "headway-collector.service"
PROGRAM = "/opt/headway/bin/headway"
_MOST_EXPOSED = "30"
"""Tenths on the scale of systemd-analyze, which calls less than 40 OK."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="no systemd-analyze here"
)


def read(unit: Path) -> dict[str, str]:
    """Return what the section of the service says; a setting that repeats is joined."""
    found: dict[str, str] = {}
    section = unit.read_text(encoding="utf-8").partition("[Service]")[2].partition("[Install]")[0]
    for line in section.splitlines():
        name, equals, value = line.partition("=")
        if equals and not name.startswith("#"):
            found[name] = f"{found[name]} {value}" if name in found else value
    return found


def variables(unit: Path) -> dict[str, str]:
    return dict(item.split("=") for item in read(unit)["Environment"].split())


@needs_systemd
@pytest.mark.parametrize("unit", [AGENT, COLLECTOR], ids=lambda unit: unit.stem)
def test_systemd_has_nothing_to_say(unit: Path, tmp_path: Path) -> None:
    copy = tmp_path / unit.name  # the program is not installed here
    text = unit.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true")
    copy.write_text(text, encoding="utf-8")
    said = subprocess.run(
        ["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False
    )
    about_it = [line for line in said.stderr.splitlines() if unit.name in line]
    assert (said.returncode, about_it) == (0, [])


def test_the_unit_has_time_to_flush_and_keeps_its_memory_from_the_users_folder() -> None:
    service, given = read(AGENT), variables(AGENT)
    assert float(service["TimeoutStopSec"]) > FLUSH_TIME
    assert service["ExecStart"] == f"{PROGRAM} agent"
    assert given["HEADWAY_AGENT_STATE"] == f"/var/lib/{service['StateDirectory']}"
    assert service["ExecStartPre"].endswith(f"-m 1777 {given['HEADWAY_SPOOL']}")
    assert given["HEADWAY_SPOOL"].startswith(service["ReadWritePaths"])


def test_the_collector_keeps_its_files_in_its_own_folder_and_has_time_to_stop() -> None:
    service, given = read(COLLECTOR), variables(COLLECTOR)
    settings = load(CollectorSettings, {}, given)
    state = Path("/var/lib") / service["StateDirectory"]
    assert settings.database.parent == settings.tokens.parent == state
    assert service["ExecStart"] == f"{PROGRAM} collect"
    assert float(service["TimeoutStopSec"]) > STOP_SECONDS
    assert int(service["LimitNOFILE"]) > settings.connections


@pytest.mark.parametrize("unit", [AGENT, COLLECTOR], ids=lambda unit: unit.stem)
def test_what_only_a_person_can_correct_is_not_tried_again_and_again(unit: Path) -> None:
    service = read(unit)
    assert service["Restart"] == "always"
    assert int(service["RestartPreventExitStatus"]) == WRONG_USE


@needs_systemd
def test_the_collector_can_do_little_else_on_its_machine() -> None:
    judged = ["security", "--offline=true", f"--threshold={_MOST_EXPOSED}", str(COLLECTOR)]
    said = subprocess.run(["systemd-analyze", *judged], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout[-2000:]
