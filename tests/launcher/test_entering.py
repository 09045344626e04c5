"""Which commands are Python launchers that can be entered, and that all others stay as they are."""

import sys
from pathlib import Path

import pytest

from headway.exporter.launcher.entering import ENTRY, entered

SCRIPT = """#!{python}
import sys
from torch.distributed.run import main
if __name__ == '__main__':
    sys.exit(main())
"""


def script(folder: Path, name: str = "torchrun", python: str = "/usr/bin/python3") -> str:
    path = folder / name
    path.write_text(SCRIPT.format(python=python))
    path.chmod(0o755)
    return str(path)


def test_a_script_of_pip_is_entered_with_its_own_interpreter(tmp_path: Path) -> None:
    path = script(tmp_path)
    assert entered([path, "--nnodes", "1", "train.py"], 7) == [
        "/usr/bin/python3",
        str(ENTRY),
        "7",
        "script",
        path,
        "--nnodes",
        "1",
        "train.py",
    ]


def test_it_is_found_as_the_shell_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(tmp_path, "ft_launcher")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = entered(["ft_launcher", "x"], 7)
    assert found is not None
    assert found[3:] == ["script", path, "x"]


def test_a_module_behind_python_is_entered() -> None:
    command = [sys.executable, "-u", "-m", "torch.distributed.run", "--standalone", "t.py"]
    assert entered(command, 7) == [
        sys.executable,
        "-u",
        str(ENTRY),
        "7",
        "module",
        "torch.distributed.run",
        "--standalone",
        "t.py",
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["python", "train.py"],
        ["python", "-m", "train"],
        ["python", "-I", "-m", "torch.distributed.run"],
        ["python", "-c", "pass", "-m", "torch.distributed.run"],
        ["python", "-m"],
        ["bash", "-c", "torchrun train.py"],
        ["srun", "torchrun", "train.py"],
        ["no-such-folder/torchrun", "train.py"],
    ],
)
def test_any_other_command_is_not(command: list[str]) -> None:
    assert entered(command, 7) is None


@pytest.mark.parametrize("python", ["/bin/sh", "/usr/bin/env python3", "python3"])
def test_nor_is_a_script_whose_interpreter_is_not_certain(tmp_path: Path, python: str) -> None:
    assert entered([script(tmp_path, python=python)], 7) is None


def test_nor_is_a_program_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "torchrun"
    path.write_bytes(b"\x7fELF\x00\xff")
    path.chmod(0o755)
    assert entered([str(path)], 7) is None


@pytest.mark.parametrize(
    ("written", "python"),
    [
        ('"/a path/bin/python3.11"', "/a path/bin/python3.11"),
        (f"/{'long/' * 30}python3", f"/{'long/' * 30}python3"),
        ('"$(dirname "$0")"/python3', None),  # who knows where a link leads
        ('"/a path/bin/pypy"', None),
    ],
)
def test_a_script_that_starts_its_python_through_the_shell_is_entered_where_that_is_certain(
    tmp_path: Path, written: str, python: str | None
) -> None:
    """As pip writes it for a path that is long or holds a space; run by the shell, it is Python."""
    path = Path(script(tmp_path))
    _, _, rest = path.read_text().partition("\n")
    path.write_text(f"#!/bin/sh\n'''exec' {written} \"$0\" \"$@\"\n' '''\n{rest}")
    found = entered([str(path), "train.py"], 7)
    assert (None if found is None else found[0]) == python
