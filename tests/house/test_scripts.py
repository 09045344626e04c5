"""The scripts find what they need or say what is missing."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = '. scripts/environment.sh; printf "%s|" "$root" "$python"; '


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder whose name has a space, with the script that the others source."""
    copy = tmp_path / "a clone"
    (copy / "scripts").mkdir(parents=True)
    (copy / "bin").mkdir()
    script = (ROOT / "scripts" / "environment.sh").read_text(encoding="utf-8")
    (copy / "scripts" / "environment.sh").write_text(script, encoding="utf-8")
    for name in ("pyproject.toml", "setup.py", "constraints.txt"):
        (copy / name).write_text(name, encoding="utf-8")
    return copy


def program(folder: Path, name: str, text: str) -> None:
    path = folder / "bin" / name
    path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def bash(folder: Path, command: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=folder,
        env={"PATH": path or f"{folder / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    "name",
    ["scripts/audit", "scripts/demo", "scripts/test", "scripts/environment.sh", ".ci/run"],
)
def test_every_script_is_valid_bash(name: str) -> None:
    subprocess.run(["/bin/bash", "-n", ROOT / name], check=True)


@pytest.mark.parametrize("name", ["scripts/audit", "scripts/demo", "scripts/test", ".ci/run"])
def test_every_command_can_be_run(name: str) -> None:
    assert os.access(ROOT / name, os.X_OK)


def test_the_root_is_found_where_its_name_has_a_space(folder: Path) -> None:
    ended = bash(folder, SOURCE)

    assert ended.stdout == f"{folder}|{folder}/.venv/bin/python|"


def test_a_python_that_is_too_old_is_said(folder: Path) -> None:
    for name in ("python3.11", "python3.12", "python3"):
        program(folder, name, '[ "$1" = --version ] && echo "Python 3.9.1"; exit 1')

    ended = bash(
        folder, f"{SOURCE} make_environment exporter", path=f"{folder / 'bin'}:/usr/bin:/bin"
    )

    assert ended.returncode == 2
    assert "headway needs Python 3.11 or 3.12" in ended.stderr
    assert "found: Python 3.9.1" in ended.stderr
    assert not (folder / ".venv").exists()


# Stands for Python: "-m venv" makes a folder with a copy of this program, "-m pip" takes a note.
PYTHON = """
case "$*" in
  "-m venv --clear "*)
    mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; echo "command = venv $4" > "$4/pyvenv.cfg" ;;
  "-m pip "*) echo "$*" >> "$NOTES"; exit "${PIP_STATUS-0}" ;;
esac
"""


def install(folder: Path, extras: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = "".join(f"export {name}={value}; " for name, value in environment.items())
    notes = f"export NOTES='{folder}/notes'; touch \"$NOTES\"; "
    return bash(folder, f"{notes}{settings}{SOURCE} make_environment {extras}")


def installations(folder: Path) -> list[str]:
    return (folder / "notes").read_text(encoding="utf-8").splitlines()


def test_an_environment_is_made_once_and_again_when_the_pins_change(folder: Path) -> None:
    program(folder, "python3.11", PYTHON)

    assert install(folder, "exporter").returncode == 0
    assert install(folder, "exporter").returncode == 0
    assert len(installations(folder)) == 1
    assert f"-c {folder}/constraints.txt -e {folder}[exporter]" in installations(folder)[0]

    (folder / "constraints.txt").write_text("torch==9", encoding="utf-8")
    assert install(folder, "exporter").returncode == 0
    assert len(installations(folder)) == 2


def test_another_set_of_extras_is_added_to_the_same_environment(folder: Path) -> None:
    program(folder, "python3.11", PYTHON)

    install(folder, "exporter")
    install(folder, "exporter,dev")
    install(folder, "exporter")

    assert len(installations(folder)) == 2


def test_an_environment_that_was_moved_is_made_anew(folder: Path) -> None:
    program(folder, "python3.11", PYTHON)
    install(folder, "exporter")
    moved = folder.rename(folder.parent / "another clone")

    assert install(moved, "exporter").returncode == 0

    assert len(installations(moved)) == 2
    assert str(moved) in (moved / ".venv" / "pyvenv.cfg").read_text(encoding="utf-8")


def test_a_failed_installation_is_said_and_tried_again(folder: Path) -> None:
    program(folder, "python3.11", PYTHON)

    failed = install(folder, "exporter", PIP_STATUS="1")

    assert failed.returncode == 2
    assert "the installation failed" in failed.stderr
    assert install(folder, "exporter").returncode == 0
    assert len(installations(folder)) == 2


VERSIONS = 'touch "$NOTES"; make_nvrx_versions'


def test_other_versions_of_nvrx_are_installed_once_beside_the_environment(folder: Path) -> None:
    program(folder, "python3.11", PYTHON)
    install(folder, "dev")
    notes = f"export NOTES='{folder}/notes'; "

    for _ in range(2):
        assert bash(folder, f"{notes}{SOURCE}{VERSIONS}").returncode == 0

    common, older, newer = installations(folder)[1:]
    assert f"--target {folder}/.venv/nvrx/common grpcio==" in common
    assert f"--target {folder}/.venv/nvrx/0.6.0 " in older
    assert older.endswith("nvidia-resiliency-ext==0.6.0")
    assert newer.endswith("nvidia-resiliency-ext==0.7.0")


def test_versions_of_nvrx_that_cannot_be_had_are_said_and_tried_again(folder: Path) -> None:
    program(folder, "python3.11", PYTHON)
    install(folder, "dev")
    notes = f"export NOTES='{folder}/notes'; "

    failed = bash(folder, f"{notes}export PIP_STATUS=1; {SOURCE}{VERSIONS}")

    assert failed.returncode == 2
    assert "the installation failed" in failed.stderr
    assert not (folder / ".venv" / "nvrx" / "headway.stamp").exists()
