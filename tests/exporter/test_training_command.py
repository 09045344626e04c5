"""The training's command line refuses what cannot work, with the next step."""

from pathlib import Path

import pytest

from headway.exporter.training import loop


def test_without_a_launcher_it_says_which_one_to_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert loop.main(["--directory", str(tmp_path)]) == 2
    expected = "WORLD_SIZE is not set: start this program with torchrun\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--faults", "1", "--fault-types", "meteor"], "unknown fault type 'meteor'"),
        (["--faults", "400"], "ask for at most 390"),
        (["--faults", "1", "--fault-weights", "1,2"], "1 fault types with 2 weights"),
        (["--faults", "1", "--fault-weights", "heavy"], "heavy"),
        (["--fault", "exception", "--fault-at", "evaluation"], "needs --evaluate-every"),
        (["--fault", "checkpoint_torn", "--fault-at", "load"], "strikes at a save, not at load"),
        (["--fault", "hang", "--fault-rank", "2"], "choose one of 0 to 1"),
    ],
)
def test_faults_that_cannot_be_planned_end_it_with_a_sentence(
    options: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert loop.main(["--directory", str(tmp_path), *options]) == 2
    assert words in capsys.readouterr().err
