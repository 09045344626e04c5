"""`headway compare` against a real collector."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from headway.cli import main
from headway.events import RunStarted
from incident_collector import Running, running
from timeline import at, timeline

RUN = """
    0       run_started llama
    0       attempt A launcher world=1
    1       configured timeouts=process_group:10
    0-100   steps 1-100
    100     fault exception
    101     exit code=1 by=itself
    140     attempt B launcher world=1
    141     configured timeouts=process_group:20
    150-300 steps 1-150
    300     run_ended completed
"""
ODD = "0 run_started odd\n0 attempt A launcher world=1\n0-90 steps 1-90\n90 run_ended completed"


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("compared") / "events.duckdb"
    odd = [
        replace(one, event=RunStarted(run_name="a=b")) if isinstance(one.event, RunStarted) else one
        for one in timeline(ODD, "a=b-1")
    ]
    events = [*timeline(RUN, "llama-1"), *odd]
    with running(path, events, at(400)) as found:
        yield found


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("llama", "run:a=b", (300, 90)),
        ("llama#1", "llama-1#2", (140, 160)),
        ("process_group=20s", "timeouts.process_group=10s", (160, 140)),
        ("@100s", "@300s/100s", (100, 290)),
        ("llama@60s/30s", "llama#2@/30s", (30, 130)),
    ],
)
def test_every_kind_of_side_is_understood(
    collector: Running,
    capsys: pytest.CaptureFixture[str],
    one: str,
    other: str,
    expected: tuple[int, int],
) -> None:
    assert main(["compare", one, other, "--endpoint", collector.address, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert tuple(found[side]["elapsed_ns"] // 10**9 for side in ("one", "other")) == expected


def test_the_text_says_what_differs_and_what_may_be_chance(
    collector: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "llama#1", "llama#2", "--endpoint", collector.address]) == 0
    said = capsys.readouterr().out
    assert "A: llama#1: 2 min 20 s" in said
    assert "Training goodput" in said
    assert "too few to tell it from chance" in said
    assert "timeouts.process_group" in said
    assert "95% of such comparisons" in said


@pytest.mark.parametrize(
    ("one", "words"),
    [
        ("", "a side is empty"),
        ("llama#x", "names no attempt"),
        ("llama#0", "names no attempt"),
        ("@", "has no time"),
        ("@soon", "cannot read the time"),
        ("gone", "gone"),
    ],
)
def test_what_is_no_side_is_refused(
    collector: Running, capsys: pytest.CaptureFixture[str], one: str, words: str
) -> None:
    assert main(["compare", one, "llama", "--endpoint", collector.address]) == 2
    assert words in capsys.readouterr().err
