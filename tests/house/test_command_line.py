"""The command: one sentence and the next step instead of a traceback, and the exit status."""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headway import cli
from headway.cli import doctor_machine, generate
from headway.cli.findings import WARNING
from headway.cli.refusal import NO, Refusal
from headway.settings import SettingError

ROOT = Path(__file__).parents[2]


def ending(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (Refusal("no collector", "start one"), 2, "headway: no collector\nstart one\n"),
        (Refusal("the training failed", status=NO), 1, "headway: the training failed\n"),
        (SettingError("port must be int"), 2, "headway: port must be int\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_is_a_sentence_and_a_status(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    sentence: str,
) -> None:
    monkeypatch.setattr(generate, "run", ending(error))

    assert cli.main(["generate"]) == status
    assert capsys.readouterr().err == sentence


def test_a_misspelled_variable_is_told_by_every_command_and_stops_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEADWAY_ENDPIONT", "http://collector:8750")
    for command in ("generate", "doctor"):  # the doctor has it among its findings
        monkeypatch.setattr(f"headway.cli.{command}.run", lambda _: 0)
    assert cli.main(["generate"]) == 0
    assert capsys.readouterr().err == (
        "headway: nothing reads the variable HEADWAY_ENDPIONT; did you mean HEADWAY_ENDPOINT?\n"
    )
    assert cli.main(["doctor"]) == 0
    assert capsys.readouterr().err == ""
    (finding,) = [one for one in doctor_machine.settings() if one.verdict == WARNING]
    assert finding.next_step == "did you mean HEADWAY_ENDPOINT?"


def test_a_missing_package_names_the_extra_that_brings_it() -> None:
    program = (
        "import sys; sys.modules['httpx'] = None; "
        "from headway.cli import main; sys.exit(main(['report']))"
    )

    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert ended.returncode == 2
    assert "needs the package 'httpx', which is not installed" in ended.stderr
    assert "pip install 'headway[server]'" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("arguments", [[], ["dance"], ["report", "--cups", "3"]])
def test_wrong_use_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)

    assert left.value.code == 2
    assert "usage: headway" in capsys.readouterr().err


def test_a_setting_that_does_not_fit_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["collect", "--port", "x"]) == 2
    assert "port must be int, got 'x' from the argument" in capsys.readouterr().err


def test_a_collector_that_is_down_is_a_sentence_with_the_next_step(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["report", "demo", "--endpoint", "http://127.0.0.1:9"]) == 2

    said = capsys.readouterr().err
    assert "No collector answers at http://127.0.0.1:9" in said
    assert "Start one with `headway collect`" in said


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    program = (
        "import sys; from headway.cli import generate, main; "
        "generate.run = lambda _: print('line ' * 100_000) or 0; sys.exit(main(['generate']))"
    )

    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == ""
    assert child.returncode == 0


def test_every_command_has_a_description() -> None:
    for name in cli.COMMANDS:
        (parser,) = [
            action.choices[name]
            for action in cli.parser()._actions
            if isinstance(action, argparse._SubParsersAction)
        ]
        assert parser.description.endswith(".")
