"""Drills: real trainings broken on purpose, judged by what was expected before there was a drill.

`expected/README.md` says what is expected and why. A drill takes half a minute, so that only some
run by default: each layer and each fault at least once. `scripts/drills` runs all, and
HEADWAY_DRILL_SEED lets the faults strike after another step.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gpu_scenario import Scenario
from headway.cli import main
from headway.cli.drill_plan import FAULTS, LAYERS, PLACES, SAVES, left_out

EXPECTED = Path(__file__).parent / "expected"
TABLE = {layer: json.loads((EXPECTED / f"{layer}.json").read_text()) for layer in LAYERS}
GPU_FAULTS = json.loads((EXPECTED / "gpu_faults.json").read_text())
SEED = int(os.environ.get("HEADWAY_DRILL_SEED", "42"))
BY_DEFAULT = [
    ("in_process", "exception", "evaluation", "async"),
    ("in_process", "hang", "step", "sync"),
    ("launcher", "oom", "step", "sync"),
    ("launcher", "hang", "save", "async"),
    ("launcher", "checkpoint_fail", "save", "async"),
    ("both", "sigkill", "step", "sync"),
    ("scheduler", "node_lost", "step", "async"),
    ("scheduler", "preemption", "step", "async"),
    ("torchrun", "sigkill", "load", "sync"),
    ("torchrun", "checkpoint_torn", "save", "sync"),
]
EVERY = [
    (layer, fault, place, save)
    for save in SAVES
    for layer in LAYERS
    for fault, places in TABLE[layer]["expected"].items()
    for place in places
    if fault != "none"
]
NOT_HERE = (
    "this machine cannot stage an oom",  # its evidence is replayed in test_replays.py
    "has no policy 'min-healthy'",
)
"""What a drill says that needs another machine or another NVRx."""
EVERYTHING = os.environ.get("HEADWAY_DRILLS") == "all"
SELECTED = EVERY if EVERYTHING else BY_DEFAULT


@pytest.mark.parametrize("layer", LAYERS)
def test_every_drill_is_expected_or_left_out_with_a_reason(layer: str) -> None:
    for fault in FAULTS:
        for place in PLACES:
            expected = place in TABLE[layer]["expected"].get(fault, {})
            reasons = TABLE[layer]["left_out"].get(fault, {})
            reason = reasons.get("*") or reasons.get(place)
            assert expected == (reason is None), f"{fault} at {place}"
            assert left_out(layer, fault, place) == reason, f"{fault} at {place}"


def test_a_drill_that_means_nothing_is_refused_with_the_reason() -> None:
    ended = drill("torchrun", "preemption", "step", "async")

    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr == (
        "headway: no drill of preemption at step under torchrun\n"
        f"{TABLE['torchrun']['left_out']['preemption']['*']}\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize(("layer", "fault", "place", "save"), SELECTED)
def test_a_drill_shows_what_was_expected(layer: str, fault: str, place: str, save: str) -> None:
    ended = drill(layer, fault, place, save)
    if ended.returncode == 2 and any(words in ended.stderr for words in NOT_HERE):
        pytest.skip(ended.stderr.splitlines()[0])
    assert ended.returncode == 0, ended.stderr

    told = json.loads(ended.stdout)
    expected = TABLE[layer]["expected"][fault][place]
    problems = [*run_problems(expected, told), *incident_problems(expected["incident"], told, save)]
    assert not problems, ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("save", ["sync", "async"])
def test_a_training_that_nothing_breaks_tells_how_efficient_its_checkpoints_are(save: str) -> None:
    ended = drill("in_process", "none", "step", save)
    assert ended.returncode == 0, ended.stderr

    told = json.loads(ended.stdout)
    assert run_problems(TABLE["in_process"]["expected"]["none"]["step"], told) == []
    assert told["incidents"] == []
    parts = told["categories"]
    faultless = sum(
        parts[name]
        for name in ("productive", "rolled_back", "checkpoint_save", "data_wait", "evaluation")
    )
    saved = parts["checkpoint_save"]
    assert 0 < saved < faultless
    assert told["checkpoint_efficiency"] == pytest.approx(1 - saved / faultless)


@pytest.mark.slow
@pytest.mark.parametrize("name", GPU_FAULTS if EVERYTHING else list(GPU_FAULTS)[:1])
def test_a_kernel_line_blames_a_gpu_or_not(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = GPU_FAULTS[name]
    options = [word for line in expected["lines"] for word in ("--kernel-line", line)]
    options += ["--kernel-line-after", str(expected["after"])]
    driver = Scenario(tmp_path / "gpus.json").environment
    options += ["--keep", str(tmp_path / "kept")]

    ended = drill("in_process", "exception", "step", "sync", *options, **driver)
    assert ended.returncode == 0, ended.stderr

    told = json.loads(ended.stdout)
    (incident,) = told["incidents"]
    names = ("cause", "suspect_gpu", "suspect_rank", "suspect_node")
    assert [incident[one] for one in names] == [expected[one] for one in names], ended.stdout
    charged = [(one["device"], one["steps"]) for one in told["gpu_losses"] if one["gpu_ns"]]
    blamed = expected["suspect_gpu"]
    assert charged == ([] if blamed is None else [(blamed, incident["rollback_steps"])])
    if expected.get("folded"):
        noise = [words for words in incident["evidence"] if "Xid 45" in words]
        assert noise == [f"Xid 45 on {blamed} (3 times), a consequence"]

    database = str(tmp_path / "kept" / "headway.duckdb")
    assert main(["attach", "--run", "drill", "--database", database, "--json"]) == 0
    (attached,) = json.loads(capsys.readouterr().out)
    assert attached["title"] == "drill: exception under in_process"
    assert attached["content"] == told


def drill(
    layer: str, fault: str, place: str, save: str, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "headway", "drill", "--json"),
            *("--layer", layer, "--fault", fault, "--at", place, "--save", save),
            *("--seed", str(SEED), *options),
        ],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=600,
    )


def run_problems(expected: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    """Return what differs in what is told of the run as a whole."""
    states: dict[str, list[int]] = {"failed": [], "revoked": []}
    for checkpoint in told["checkpoints"]:
        states.setdefault(checkpoint["state"], []).append(checkpoint["step"])
    compared = {
        "attempts": (expected["attempts"], told["attempts"]),
        "failed starts": (expected["failed_starts"], told["failed_starts"]),
        "restarts": (expected["restarts"], told["restarts"]),
        "failed checkpoints": (expected.get("failed_checkpoints", []), states["failed"]),
        "revoked checkpoints": (expected.get("revoked_checkpoints", []), states["revoked"]),
        "incidents": (0 if expected["incident"] is None else 1, len(told["incidents"])),
        "state": ("completed", told["state"]),
        "highest step": (40, told["steps"]["highest"]),
        "sum of the ledger": (told["elapsed_ns"], sum(told["categories"].values())),
        "lost events": (0, told["dropped_events"]),
    }
    return differences(compared)


def incident_problems(
    expected: Mapping[str, Any] | None, told: Mapping[str, Any], save: str
) -> list[str]:
    """Return what differs in what is told of the incident."""
    if expected is None or not told["incidents"]:
        return []
    incident = told["incidents"][0]
    highest = 23 + SEED % 5 if expected["highest"] == "F" else expected["highest"]
    rollbacks = [
        highest - (highest if restored == "F" else restored)
        for restored in expected["restored"][save]
    ]
    warned = "warns_of" in expected
    phases = incident["phases"]
    compared = {
        **{
            name: (of_mode(expected[name], save), incident[name])
            for name in ("cause", "layer", "suspect_rank", "suspect_node", "outcome")
        },
        # all but the run's first attempt try to recover it
        "attempts to recover": (told["attempts"] - 1, incident["attempts"]),
        "rollback": (True, incident["rollback_steps"] in rollbacks),
        "rollback, once more": (
            [incident["rollback_steps"]],
            [rollback["steps"] for rollback in told["rollbacks"]],
        ),
        "steps executed": (40 + incident["rollback_steps"], told["steps"]["executed"]),
        "valid": (expected["valid"], incident["recovery_valid"]["valid"]),
        "warnings": (
            [f"below checkpoint 'step-{expected['warns_of']:06d}'"] if warned else [],
            [warning.partition(", ")[2].partition(" of ")[0] for warning in incident["warnings"]],
        ),
        "phases without time": ([], [name for name in expected["phases"] if not phases[name]]),
        "phases with time": ([], [name for name in expected["no_phases"] if phases[name]]),
    }
    return differences(compared)


def of_mode(expected: object, save: str) -> object:
    return expected[save] if isinstance(expected, dict) else expected


def differences(compared: Mapping[str, tuple[object, object]]) -> list[str]:
    return [
        f"{name}: expected {expected!r}, told {told!r}"
        for name, (expected, told) in compared.items()
        if expected != told
    ]
